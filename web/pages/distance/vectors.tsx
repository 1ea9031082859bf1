// Score against distance on one query and one key of a real layer: content held still, the place of the key alone moved.

import { computed, type ReadonlySignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { alibi } from "../../../src/encodings/alibi.ts";
import { nope } from "../../../src/encodings/nope.ts";
import type { PositionEncoding } from "../../../src/encodings/position-encoding.ts";
import { rope } from "../../../src/encodings/rope/rope.ts";
import { vectorScores } from "../../../src/encodings/vector-scores.ts";
import { applyStrategy, parseStrategy } from "../../../src/models/strategy.ts";
import { firstLayerOf, type ReadLayer } from "../../parts/built-in.ts";
import { Chart } from "../../parts/chart.tsx";
import { Choice, Switch, TextField } from "../../parts/controls.tsx";
import { parameter } from "../../shell/address.ts";
import { exact, whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { distances, factor, reach, read, setRead } from "./state.ts";

/** Those whose first layer a token alone decides. */
const modelNames = ["longhand-rope", "longhand-alibi", "longhand-t5", "longhand-nope"];
const modelText: Signal<string> = parameter("vector-model", modelNames[0]!);
const queryText: Signal<string> = parameter("vector-query", "e");
const keyText: Signal<string> = parameter("vector-key", "t");
const headText: Signal<string> = parameter("vector-head", "1");
const curvesText: Signal<string> = parameter("vector-curves", "own,linear,drop");

const model: ReadonlySignal<string> = computed(() =>
  modelNames.includes(modelText.value) ? modelText.value : modelNames[0]!,
);

/** A byte's token is its number; null for what is no single byte. */
const tokenOf = (text: string): number | null =>
  text.length === 1 && text.charCodeAt(0) < 128 ? text.charCodeAt(0) : null;

type CurveId = "own" | "linear" | "ntk" | "yarn" | "drop";
const colours: Readonly<Record<CurveId, string>> = {
  own: "curve-rope",
  linear: "curve-linear",
  ntk: "curve-ntk",
  yarn: "curve-yarn",
  drop: "curve-dynamic",
};

/** The model's own positions, and what may stand in their place. */
function encodings({ description, learned }: ReadLayer): readonly (readonly [CurveId, PositionEncoding])[] {
  const group = description.groups[0]!;
  const { position } = group;
  const drop = ["drop", nope()] as const;
  switch (position.kind) {
    case "rope": {
      const under = (text: string): PositionEncoding => {
        const config = applyStrategy(parseStrategy(text), { ...group, position }, description);
        return config === "drop" ? nope() : rope({ ...config, layout: position.layout });
      };
      const scaled = (["linear", "ntk", "yarn"] as const).map(
        (name) => [name, under(`${name}:${factor.value.trim()}`)] as const,
      );
      return [["own", under("none")], ...scaled, drop];
    }
    case "alibi":
      return [["own", alibi({ numHeads: position.numHeads, maxBias: position.maxBias })], drop];
    case "t5":
      return [["own", learned.biases[0]!], drop];
    default:
      return [["own", nope()]];
  }
}

interface VectorCurve {
  readonly id: CurveId;
  readonly scores: Float64Array;
  readonly here: number;
}
interface Result {
  readonly curves: readonly VectorCurve[];
  readonly numHeads: number;
  readonly error: string | null;
}
const none: Result = { curves: [], numHeads: 4, error: null };

const result: ReadonlySignal<Result> = computed(() => {
  const state = firstLayerOf(model.value).value;
  if (state.kind === "loading") return none;
  if (state.kind === "error") return { ...none, error: state.message };
  const { layer } = state.value;
  const tokens = [tokenOf(queryText.value), tokenOf(keyText.value)];
  const [q, k] = tokens;
  if (typeof q !== "number" || typeof k !== "number") return none;
  const head = Math.min(layer.numHeads, Math.max(1, Math.round(Number(headText.value)) || 1)) - 1;
  const [query, key] = [layer.query(q, head), layer.key(k, head)];
  const queryPosition = reach.value;
  const options = { queryPosition, scale: layer.scale, head, sequenceLength: queryPosition + 1 };
  try {
    const curves = encodings(state.value).map(([id, encoding]) => {
      const at = (places: readonly number[]): Float64Array =>
        vectorScores(encoding, query, key, {
          ...options,
          keyPositions: places.map((distance) => queryPosition - distance),
        });
      return { id, scores: at(distances.value), here: at([read.value])[0]! };
    });
    return { curves, numHeads: layer.numHeads, error: null };
  } catch (error) {
    return { ...none, error: error instanceof Error ? error.message : String(error) };
  }
});

export function Vectors(): JSX.Element {
  const text = words.value.distance;
  const own = text.vectors;
  const { curves: all, numHeads, error } = result.value;
  const chosen = curvesText.value.split(",");
  const curves = all.filter(({ id }) => chosen.includes(id));
  const wrong = (of: Signal<string>): string | null => (tokenOf(of.value) === null ? own.oneByte : null);
  // ALiBi's line leaves every frame; the axis then ends a little below what the content gives.
  const content = all.find(({ id }) => id === "drop")?.here ?? all[0]?.here ?? 0;
  let [low, high] = [content - 1, content + 1];
  for (const { scores } of curves) {
    for (const score of scores) [low, high] = [Math.min(low, score), Math.max(high, score)];
  }
  low = Math.max(low, content - 40);
  const readings = curves.map(({ id, here }) => `${own.curves[id]} ${exact(here)}`).join(", ");
  return (
    <section class="card controls" aria-label={own.title}>
      <h2>{own.title}</h2>
      <p>{own.lead}</p>
      <div class="row">
        <Choice label={own.model} value={modelText} options={modelNames.map((value) => ({ value, label: value }))} />
        <TextField label={own.query} value={queryText} error={wrong(queryText)} />
        <TextField label={own.key} value={keyText} error={wrong(keyText)} />
        <Choice
          label={own.head}
          value={headText}
          options={Array.from({ length: numHeads }, (_, head) => ({ value: `${head + 1}`, label: `${head + 1}` }))}
        />
      </div>
      {firstLayerOf(model.value).value.kind === "loading" ? <p role="status">{words.value.lecture.loading}</p> : null}
      {error === null ? null : (
        <p class="problem" role="alert">
          {error}
        </p>
      )}
      {all.length === 0 ? null : (
        <>
          <fieldset class="curves above">
            <legend class="hidden">{own.title}</legend>
            {all.map(({ id }) => (
              <Switch
                key={id}
                label={own.curves[id]}
                colour={`var(--${colours[id]})`}
                checked={chosen.includes(id)}
                onChange={(on) => {
                  const ids = Object.keys(colours);
                  curvesText.value = ids.filter((one) => (one === id ? on : chosen.includes(one))).join(",");
                }}
              />
            ))}
          </fieldset>
          <Chart
            tall
            label={`${own.title}: ${model.value}. ${text.at(whole(read.value))}: ${readings}`}
            x={{ from: 0, to: reach.value, log: true, label: words.value.lecture.distance }}
            y={{ from: Math.floor(low), to: Math.ceil(high), label: own.score }}
            marks={reach.value > 256 ? [{ x: 256, label: words.value.clock.axisTrained }] : []}
            lines={curves.map(({ id, scores }) => ({ colour: colours[id], x: distances.value, y: scores }))}
            read={read.value}
            onRead={setRead}
          />
          <h3 class="above">{text.at(whole(read.value))}</h3>
          <dl class="numbers">
            {curves.map(({ id, here }) => (
              <div key={id}>
                <dt>{own.curves[id]}</dt>
                <dd data-vector={id}>{exact(here)}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}
