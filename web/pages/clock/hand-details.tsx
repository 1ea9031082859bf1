// The exact numbers of the hand that is pointed at, or was chosen.

import type { JSX } from "preact";
import type { InspectedGroup } from "../../../src/advice/inspect.ts";
import { rotaryTables } from "../../../src/encodings/rope/tables.ts";
import { exact, short, whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { group, position, scaledGroup, scaling, shown } from "./state.ts";

export function HandDetails(): JSX.Element {
  const text = words.value.clock;
  return (
    <section class="card" aria-labelledby="hand-title">
      <h3 id="hand-title">{text.hand(shown.value)}</h3>
      <Numbers of={group.value!} name={text.asTrained} mark="file" />
      {scaledGroup.value === null ? null : (
        <Numbers
          of={scaledGroup.value}
          name={`${text.underStrategy}${words.value.shell.colon}${scaling.value}`}
          mark="strategy"
        />
      )}
    </section>
  );
}

function Numbers(props: { readonly of: InspectedGroup; readonly name: string; readonly mark: string }): JSX.Element {
  const text = words.value.clock;
  const { of, name, mark } = props;
  const hand = of.hands[shown.value]!;
  const omega = of.inverseFrequencies[shown.value]!;
  const { cos, sin } = rotaryTables({ inverseFrequencies: [omega], attentionFactor: 1 }, [position.value]);
  return (
    <>
      <h4>{name}</h4>
      <dl class="numbers" data-of={mark}>
        <dt>{text.wavelength}</dt>
        <dd data-number="wavelength">{hand.wavelength === null ? text.still : exact(hand.wavelength)}</dd>
        <dt>{text.frequency}</dt>
        <dd data-number="frequency">{exact(omega)}</dd>
        <dt>{text.turnsTrained}</dt>
        <dd>{short(hand.turnsInTraining)}</dd>
        <dt>{text.turnsTarget}</dt>
        <dd>{short(hand.turnsAtTarget)}</dd>
        <dt>{text.seen}</dt>
        <dd class={hand.seen ? "good" : "bad"}>{hand.seen ? text.yes : text.no}</dd>
        <dt>
          {text.here(whole(position.value))}
          {words.value.shell.colon}
          {text.cosine}
        </dt>
        <dd data-number="cos">{exact(cos[0]!)}</dd>
        <dt>{text.sine}</dt>
        <dd data-number="sin">{exact(sin[0]!)}</dd>
      </dl>
    </>
  );
}
