// What the built-in models were measured to read: loss by position, from their cards.

import type { JSX } from "preact";
import { builtInNames } from "../../../../src/formats/built-in-models.ts";
import { lossesOf } from "../../../parts/built-in.ts";
import { Chart } from "../../../parts/chart.tsx";
import { Switch } from "../../../parts/controls.tsx";
import { whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { shownModels } from "../state.ts";

const colours: Readonly<Record<string, string>> = {
  "longhand-rope": "curve-rope",
  "longhand-nope": "curve-dynamic",
  "longhand-alibi": "curve-linear",
  "longhand-t5": "curve-ntk",
  "longhand-sinusoidal": "curve-llama3",
  "longhand-drope": "curve-yarn",
};
const drawn = builtInNames.filter((name) => name in colours);

export function MeasuredLosses({ initial }: { readonly initial: readonly string[] }): JSX.Element {
  const text = words.value.lecture;
  const own = text.measured;
  const shown = shownModels.value === "" ? initial : shownModels.value.split(",").filter((name) => name in colours);
  const found = drawn.filter((name) => shown.includes(name)).map((name) => ({ name, state: lossesOf(name).value }));
  const ready = found.flatMap(({ name, state }) => (state.kind === "ready" ? [{ name, losses: state.value }] : []));
  const problem = found.map(({ state }) => state).find((state) => state.kind === "error");
  const ranges = ready[0]?.losses ?? [];
  const label = ready
    .map(({ name, losses }) => `${name}: ${losses.map(({ from, to, mean }) => `${from}–${to} ${mean}`).join(", ")}`)
    .join(". ");
  return (
    <figure class="figure measured">
      <figcaption>{own.caption}</figcaption>
      <fieldset class="curves">
        <legend class="hidden">{own.models}</legend>
        {drawn.map((name) => (
          <Switch
            key={name}
            label={name}
            colour={`var(--${colours[name]})`}
            checked={shown.includes(name)}
            onChange={(on) => {
              const next = drawn.filter((one) => (one === name ? on : shown.includes(one)));
              // An empty choice stands for the figure's own, so "none" needs a name.
              shownModels.value = next.length === 0 ? "-" : next.join(",");
            }}
          />
        ))}
      </fieldset>
      {found.some(({ state }) => state.kind === "loading") ? <p role="status">{text.loading}</p> : null}
      {problem === undefined ? null : <p class="problem">{`${text.unreadable}: ${problem.message}`}</p>}
      <Chart
        label={`${own.caption}, ${own.label}. ${label}`}
        x={{ from: 1, to: 4096, log: true, label: text.position }}
        y={{ from: 1, to: 4, label: own.label }}
        marks={[{ x: 256, label: text.trained }]}
        lines={ready.map(({ name, losses }) => ({
          colour: colours[name]!,
          // A range is level from its first position to its last.
          x: losses.flatMap(({ from, to }) => [from, to]),
          y: losses.flatMap(({ mean }) => [mean, mean]),
          low: losses.flatMap(({ low }) => [low, low]),
          high: losses.flatMap(({ high }) => [high, high]),
        }))}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section class="scroll flat" aria-label={own.caption} tabIndex={0}>
        <table class="losses">
          <thead>
            <tr>
              <th scope="col">{text.position}</th>
              {ready.map(({ name }) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ranges.map(({ from, to }, i) => (
              <tr key={from}>
                <th scope="row">
                  {whole(from)}–{whole(to)}
                </th>
                {ready.map(({ name, losses }) => (
                  <td key={name} data-number={`${name}-${from}`}>
                    {losses[i]!.mean.toFixed(3)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p class="hint">{own.note}</p>
    </figure>
  );
}
