// The distance page's state: which encodings, of which shape, how far. The scores are the library's.

import { computed, type ReadonlySignal, type Signal } from "@preact/signals";
import { alibi } from "../../../src/encodings/alibi.ts";
import { kerple } from "../../../src/encodings/kerple.ts";
import type { PositionEncoding } from "../../../src/encodings/position-encoding.ts";
import { rope } from "../../../src/encodings/rope/rope.ts";
import { scoreByDistance } from "../../../src/encodings/score-by-distance.ts";
import { sinusoidal } from "../../../src/encodings/sinusoidal.ts";
import { describeHuggingFace } from "../../../src/formats/huggingface/index.ts";
import { applyStrategy, parseStrategy } from "../../../src/models/strategy.ts";
import { learnedOf } from "../../parts/built-in.ts";
import { parameter } from "../../shell/address.ts";

/** The clock's own: both pages speak of one model. */
export const theta: Signal<string> = parameter("theta", "10000");
export const headDim: Signal<string> = parameter("dim", "128");
export const trained: Signal<string> = parameter("trained", "4096");
export const factor: Signal<string> = parameter("factor", "4");
const curvesText: Signal<string> = parameter("curves", "rope,yarn,alibi,kerple");
const reachText: Signal<string> = parameter("reach", "16384");
const readText: Signal<string> = parameter("read", "1000");

export const maxReach = 1_048_576;
const clamped = (text: string, min: number, max: number): number => {
  const value = Math.round(Number(text));
  return Number.isFinite(value) ? Math.min(max, Math.max(min, value)) : min;
};
export const reach: ReadonlySignal<number> = computed(() => clamped(reachText.value, 16, maxReach));
export const read: ReadonlySignal<number> = computed(() => clamped(readText.value, 0, reach.value));
export function setReach(value: number): void {
  reachText.value = String(value);
}
export function setRead(value: number): void {
  readText.value = String(value);
}

export const rotaryCurves = ["rope", "linear", "ntk", "dynamic", "yarn", "llama3", "sinusoidal"] as const;
export const biasCurves = ["alibi", "kerple", "t5"] as const;
export type CurveName = (typeof rotaryCurves)[number] | (typeof biasCurves)[number];
export type Kind = "rotary" | "bias";

export const chosenCurves: ReadonlySignal<ReadonlySet<string>> = computed(() => new Set(curvesText.value.split(",")));
export function toggle(name: CurveName, on: boolean): void {
  const all: readonly CurveName[] = [...rotaryCurves, ...biasCurves];
  curvesText.value = all.filter((one) => (one === name ? on : chosenCurves.value.has(one))).join(",");
}

/** Heads of ALiBi; its steepest and its flattest are drawn. */
const numHeads = 8;

/** The model whose learned T5 bias is shown. */
export const t5Model = "longhand-t5";

/** null while it is being read. */
function encodingOf(name: CurveName): PositionEncoding | null {
  const size = Number(headDim.value);
  if (name === "sinusoidal") return sinusoidal({ hiddenSize: size, theta: Number(theta.value) });
  if (name === "alibi") return alibi({ numHeads });
  if (name === "t5") {
    const learned = learnedOf(t5Model).value;
    if (learned.kind === "error") throw new Error(learned.message);
    return learned.kind === "ready" ? (learned.value.biases[0] ?? null) : null;
  }
  if (name === "kerple") return kerple({ kind: "logarithmic", r1: [1], r2: [1] });
  const description = describeHuggingFace({
    model_type: "llama",
    hidden_size: size,
    head_dim: size,
    num_attention_heads: 1,
    num_key_value_heads: 1,
    num_hidden_layers: 1,
    rope_theta: Number(theta.value),
    max_position_embeddings: Number(trained.value),
  });
  const [group] = description.groups;
  const { position } = group!;
  if (position.site !== "query-key") throw new Error("internal: expected a rotary group");
  const strategy = parseStrategy(name === "rope" ? "none" : `${name}:${factor.value.trim()}`);
  const config = applyStrategy(strategy, { ...group!, position }, description);
  if (config === "drop") throw new Error("internal: expected a rotation");
  return rope(config);
}

export interface Curve {
  readonly name: CurveName;
  readonly kind: Kind;
  /** ALiBi's and T5's: its head, counted from 1; null where there is one head. */
  readonly head: number | null;
  readonly scores: ArrayLike<number>;
  /** At the distance that is read. */
  readonly here: number;
}

/** Points of a curve: as many as a wide screen has columns. */
const numPoints = 1024;
/** Whole distances, even on a logarithmic axis; every one of them while there are few. */
export const distances: ReadonlySignal<readonly number[]> = computed(() => {
  const end = Math.log1p(reach.value);
  const points = Array.from({ length: numPoints }, (_, i) => Math.round(Math.expm1((i / (numPoints - 1)) * end)));
  return [...new Set(points)];
});

interface Curves {
  readonly curves: readonly Curve[];
  readonly error: string | null;
}
const result: ReadonlySignal<Curves> = computed(() => {
  try {
    const curves = [...rotaryCurves, ...biasCurves]
      .filter((name) => chosenCurves.value.has(name))
      .flatMap((name) => curvesOf(name));
    return { curves, error: null };
  } catch (error) {
    return { curves: [], error: error instanceof Error ? error.message : String(error) };
  }
});
export const curves: ReadonlySignal<readonly Curve[]> = computed(() => result.value.curves);
export const problem: ReadonlySignal<string | null> = computed(() => result.value.error);

function curvesOf(name: CurveName): Curve[] {
  const encoding = encodingOf(name);
  if (encoding === null) return [];
  const points = distances.value;
  const scores = scoreByDistance(encoding, points, reach.value);
  const here = scoreByDistance(encoding, [read.value], reach.value);
  const kind = encoding.site === "attention-bias" ? "bias" : "rotary";
  const heads = name === "alibi" ? [0, numHeads - 1] : name === "t5" ? Array.from(here, (_, head) => head) : [0];
  return heads.map((head) => ({
    name,
    kind,
    head: heads.length === 1 ? null : head + 1,
    scores: scores.subarray(head * points.length, (head + 1) * points.length),
    here: here[head]!,
  }));
}
