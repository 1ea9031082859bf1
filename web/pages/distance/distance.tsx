// Distance: what an encoding alone makes of the tokens between a query and a key.

import type { JSX } from "preact";
import { t5Bucket } from "../../../src/encodings/t5-relative-bias.ts";
import { LogSlider, Switch, TextField } from "../../parts/controls.tsx";
import { download } from "../../parts/download.ts";
import { exact, whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { Plot } from "./plot.tsx";
import {
  biasCurves,
  type Curve,
  type CurveName,
  chosenCurves,
  curves,
  distances,
  factor,
  headDim,
  type Kind,
  maxReach,
  problem,
  reach,
  read,
  rotaryCurves,
  setReach,
  setRead,
  theta,
  toggle,
  trained,
} from "./state.ts";
import { Vectors } from "./vectors.tsx";

export function Distance(): JSX.Element {
  const text = words.value.distance;
  const clock = words.value.clock;
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <form class="card controls" onSubmit={(event) => event.preventDefault()}>
        <div class="row">
          <TextField label={clock.theta} value={theta} numeric />
          <TextField label={clock.headDim} value={headDim} numeric />
          <TextField label={clock.trained} value={trained} numeric />
          <TextField label={text.factor} value={factor} numeric />
        </div>
        {problem.value === null ? null : (
          <p class="problem" role="alert">
            {problem.value}
          </p>
        )}
        <LogSlider label={text.reach} value={reach.value} max={maxReach} onChange={setReach} />
        <LogSlider label={text.read} value={read.value} max={reach.value} onChange={setRead} />
      </form>
      <Part kind="rotary" names={rotaryCurves} title={text.rotary} lead={text.rotaryLead} />
      <Part kind="bias" names={biasCurves} title={text.bias} lead={text.biasLead}>
        <Bucket />
      </Part>
      <Vectors />
      <p>
        <button type="button" onClick={() => download("scores-by-distance.csv", "text/csv", csv())}>
          {clock.csv}
        </button>
      </p>
    </>
  );
}

function Part(props: {
  readonly kind: Kind;
  readonly names: readonly CurveName[];
  readonly title: string;
  readonly lead: string;
  readonly children?: JSX.Element;
}): JSX.Element {
  const text = words.value.distance;
  const { kind, names, title, lead, children } = props;
  const shown = curves.value.filter((curve) => curve.kind === kind);
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <p>{lead}</p>
      <fieldset class="curves">
        <legend class="hidden">{title}</legend>
        {names.map((name) => (
          <Switch
            key={name}
            label={text.curves[name]}
            colour={`var(--curve-${name})`}
            checked={chosenCurves.value.has(name)}
            onChange={(on) => toggle(name, on)}
          />
        ))}
      </fieldset>
      {shown.length === 0 ? (
        <p role="status">{text.nothing}</p>
      ) : (
        <>
          <Plot kind={kind} label={title} />
          <h3 class="above">{text.at(whole(read.value))}</h3>
          <dl class="numbers">
            {shown.map((curve) => (
              <Reading key={`${curve.name} ${curve.head}`} of={curve} />
            ))}
            {children}
          </dl>
        </>
      )}
    </section>
  );
}

/** Which of T5's buckets the distance falls into. */
function Bucket(): JSX.Element | null {
  if (!chosenCurves.value.has("t5")) return null;
  return (
    <>
      <dt>{words.value.distance.bucket}</dt>
      <dd data-curve="t5-bucket">{t5Bucket(-read.value, { bidirectional: false })}</dd>
    </>
  );
}

function Reading({ of }: { readonly of: Curve }): JSX.Element {
  return (
    <>
      <dt>{nameOf(of)}</dt>
      <dd data-curve={of.head === null ? of.name : `${of.name}-${of.head}`}>{exact(of.here)}</dd>
    </>
  );
}

function nameOf({ name, head }: Curve): string {
  const text = words.value.distance;
  return head === null ? text.curves[name] : text.head(text.curves[name], head);
}

function csv(): string {
  const all = curves.value;
  const head = ["distance", ...all.map(({ name, head: of }) => (of === null ? name : `${name}-head-${of}`))].join(",");
  const rows = distances.value.map((distance, i) =>
    [distance, ...all.map(({ scores }) => exact(scores[i]!))].join(","),
  );
  return `${[head, ...rows].join("\n")}\n`;
}
