// The lecture's exercises: each asks for one number, and the answer is computed by the same functions that a reader of
// the question would use, never written down. The built-in models' files are asked for where an answer is measured.

import { alibi } from "../encodings/alibi.ts";
import { ntkBase } from "../encodings/rope/scaling/ntk.ts";
import { rotaryTables } from "../encodings/rope/tables.ts";
import { sinusoidalHands } from "../encodings/sinusoidal.ts";
import { t5Bucket } from "../encodings/t5-relative-bias.ts";
import { compareOrders } from "../evaluation/order-blindness.ts";
import { type BuiltInModels, builtInModel } from "../formats/built-in-models.ts";
import { type LossByPosition, lossByPositionOfCard } from "../formats/model-card.ts";
import { opened } from "../formats/model-files.ts";
import { openModel } from "../formats/open-model.ts";
import { type ScalingByHand, scalingByHand } from "./scaling-by-hand.ts";

/** The twelve ideas, in the order of the lecture. */
export const ideas = [
  "order",
  "absolute",
  "clock",
  "relative",
  "t5",
  "alibi",
  "rope",
  "interpolation",
  "ntk",
  "yarn",
  "dynamic",
  "none",
] as const;
export type Idea = (typeof ideas)[number];

/** Llama 2's clock, of which several exercises speak. */
export const llama2: { readonly headDim: number; readonly theta: number; readonly trainedLength: number } = {
  headDim: 128,
  theta: 10000,
  trainedLength: 4096,
};

/** Losses by position as they stand on a built-in model's card. */
export async function measuredLosses(name: string, models?: BuiltInModels): Promise<LossByPosition[]> {
  const files = await builtInModel(name, models);
  const card = await opened(files, "README.md", async (source) =>
    new TextDecoder().decode(await source.read(0, source.size)),
  );
  return lossByPositionOfCard(card);
}

/** The first whole number from `from` on of which something holds. */
function first(from: number, to: number, holds: (n: number) => boolean): number {
  for (let n = from; n <= to; n++) if (holds(n)) return n;
  throw new Error(`internal: expected an answer from ${from} to ${to}`);
}

const ofLlama2 = (targetLength: number, rope: Parameters<typeof scalingByHand>[0]["rope"]): ScalingByHand =>
  scalingByHand({ headDim: llama2.headDim, trainedLength: llama2.trainedLength, targetLength, rope });

const answers: { readonly [I in Idea]: (models?: BuiltInModels) => number | Promise<number> } = {
  /** Layers that a causal mask alone needs to part two orders. */
  async order() {
    for (let numLayers = 1; numLayers <= 4; numLayers++) {
      const { identical } = await compareOrders("你打我", "我打你", { encoding: "none", causal: true, numLayers });
      if (!identical) return numLayers;
    }
    throw new Error("internal: expected the orders to part");
  },
  /** The first position, from 0, that longhand-learned has no row for. */
  async absolute(models) {
    const { groups } = await openModel(await builtInModel("longhand-learned", models));
    const { position } = groups[0]!;
    if (position.kind !== "learned") throw new Error("internal: expected a learned table");
    return position.numPositions;
  },
  /** Whole tokens that hand 32 of 64 takes for a turn. */
  clock: () => Math.round(sinusoidalHands(128)[32]!.wavelength),
  /** Of 1 .. 50, the R whose matrix brings the fastest hand nearest to where it was. */
  relative() {
    const offsets = Array.from({ length: 50 }, (_, i) => i + 1);
    const { cos } = rotaryTables({ inverseFrequencies: [1], attentionFactor: 1 }, offsets);
    return offsets[cos.indexOf(Math.max(...cos))]!;
  },
  /** The distance from which all keys share T5's last bucket. */
  t5: () => first(0, 1000, (distance) => t5Bucket(-distance, { bidirectional: false }) === 31),
  /** The distance at which the flattest of eight heads takes four off the score. */
  alibi() {
    const encoding = alibi({ numHeads: 8 });
    return first(0, 10_000, (distance) => encoding.bias([distance], [0])[7]! <= -4);
  },
  /** Hands of Llama 2 that never finish a turn in training. */
  rope: () => ofLlama2(llama2.trainedLength, { ropeType: "default", ropeTheta: llama2.theta }).unfinished,
  /** The least whole factor of Position Interpolation under which no hand of Llama 2 reaches new angles at 32,768. */
  interpolation: () =>
    first(1, 64, (factor) => ofLlama2(32_768, { ropeType: "linear", ropeTheta: llama2.theta, factor }).unseen === 0),
  /** NTK's base for Llama 2 at factor 4. */
  ntk: () => ntkBase(llama2.theta, 4, llama2.headDim),
  /** Hands of Llama 2 that YaRN of factor 4 leaves exactly as they were. */
  yarn: () =>
    ofLlama2(16_384, {
      ropeType: "yarn",
      ropeTheta: llama2.theta,
      factor: 4,
      originalMaxPositionEmbeddings: llama2.trainedLength,
    }).unchanged,
  /** How many times slower the slowest hand of Llama 2 turns under dynamic scaling of factor 4 at twice its length. */
  dynamic: () => ofLlama2(8192, { ropeType: "dynamic", ropeTheta: llama2.theta, factor: 4 }).slowest,
  /** The first position of the measured range in which longhand-drope reads better than longhand-rope. */
  async none(models) {
    const [rope, drope] = await Promise.all([
      measuredLosses("longhand-rope", models),
      measuredLosses("longhand-drope", models),
    ]);
    const better = rope.findIndex(({ mean }, i) => drope[i]!.mean < mean);
    return rope[better]!.from;
  },
};

/** How far an answer may be off: half a unit of what the question asks for. */
const tolerance = 0.5;

export interface Verdict {
  readonly right: boolean;
  /** Which side of the answer the given number lies on. */
  readonly side: "below" | "above" | "on";
  readonly answer: number;
}

/**
 * Judges an answer.
 *
 * @param models where the built-in models are; beside the package when absent (Node)
 * @throws RangeError for an answer that is no finite number; FormatError where a model's file cannot be read
 */
export async function judgeAnswer(idea: Idea, given: number, models?: BuiltInModels): Promise<Verdict> {
  if (!Number.isFinite(given)) throw new RangeError(`judgeAnswer: expected a number, got ${given}`);
  const answer = await answers[idea](models);
  const right = Math.abs(given - answer) < tolerance;
  return { right, side: right ? "on" : given < answer ? "below" : "above", answer };
}
