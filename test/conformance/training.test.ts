// Training against torch, step by step: whole runs of small decoders with every encoding, from the same weights and on
// the same tokens, and AdamW alone (test/fixtures/training.json, made by reference/training.py in float64). Ours is
// float32 on ONNX Runtime, and on the reference kernels.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { alibi, nope, rope, sinusoidal } from "../../src/encodings/index.ts";
import { type Backend, onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import { graphBuilder } from "../../src/graph/index.ts";
import { fromNumbers, scalar, type Tensor, toNumbers } from "../../src/tensor/index.ts";
import {
  adamW,
  chain,
  clipByGlobalNorm,
  learnedEncoding,
  smallDecoder,
  Trainer,
  type TrainingEncoding,
  warmupCosine,
} from "../../src/training/index.ts";

interface Run {
  readonly name: string;
  readonly encoding: string;
  readonly gpt: boolean;
  readonly queryKeyNorm: boolean;
  readonly numKeyValueHeads: number;
  readonly window: number | null;
  readonly tied: boolean;
  readonly tokens: number[];
  readonly targets: number[];
  readonly shapes: Record<string, number[]>;
  readonly initial: Record<string, number[]>;
  readonly losses: number[];
  readonly gradientNorms: number[];
  readonly final: Record<string, { readonly sum: number; readonly first: number[] }>;
}
interface AdamWRun {
  readonly name: string;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  readonly learningRate: number;
  readonly initial: number[];
  readonly gradients: number[][];
  readonly weights: number[][];
}
const fixture = JSON.parse(readFileSync(new URL("../fixtures/training.json", import.meta.url), "utf8")) as {
  sizes: Record<
    "vocabSize" | "hiddenSize" | "numHeads" | "numLayers" | "intermediateSize" | "batchSize" | "length" | "steps",
    number
  >;
  adamW: AdamWRun[];
  runs: Run[];
};
const { sizes } = fixture;
const headDim = sizes.hiddenSize / sizes.numHeads;

function encodingOf(name: string): TrainingEncoding {
  switch (name) {
    case "rope":
      return rope({ headDim, maxPositionEmbeddings: 16, rope: { ropeType: "default", ropeTheta: 100 } });
    case "none":
      return nope();
    case "sinusoidal":
      return sinusoidal({ hiddenSize: sizes.hiddenSize });
    case "learned":
      return { site: "embedding", learned: "absolute", numPositions: sizes.length + 2 };
    case "t5":
      return { site: "attention-bias", learned: "t5", numBuckets: 8, maxDistance: 12 };
    case "alibi":
      return alibi({ numHeads: sizes.numHeads });
    case "kerple-log":
      return { site: "attention-bias", learned: "kerple", kind: "logarithmic" };
    case "kerple-power":
      return { site: "attention-bias", learned: "kerple", kind: "power" };
    case "fire":
      return { site: "attention-bias", learned: "fire", hiddenUnits: 5 };
    default:
      throw new Error(`no encoding ${name}`);
  }
}

function createTrainer(
  run: Run,
  backend: Backend,
  microBatches: number,
  recomputeAttention: boolean,
): Promise<Trainer> {
  const spec = smallDecoder({
    ...sizes,
    numKeyValueHeads: run.numKeyValueHeads,
    queryKeyNorm: run.queryKeyNorm,
    tied: run.tied,
    ...(run.gpt ? { norm: "layer" as const, mlp: "plain" as const, bias: true } : {}),
    ...(run.window === null ? {} : { windows: [run.window, null] }),
  });
  const schedule = warmupCosine({ peak: 0.01, steps: sizes.steps, warmup: 2, final: 0.1 });
  const weights = new Map(
    Object.entries(run.initial).map(([name, values]) => [
      name,
      fromNumbers("f32", run.shapes[name]!, values) as Tensor,
    ]),
  );
  return Trainer.create({
    backend,
    spec,
    encodings: [encodingOf(run.encoding)],
    batchSize: sizes.batchSize,
    length: sizes.length,
    optimizer: chain(clipByGlobalNorm(1), adamW({ learningRate: schedule })),
    microBatches,
    recomputeAttention,
    weights,
  });
}

function batchOf(run: Run, step: number): { tokens: Tensor<"i64">; targets: Tensor<"i64"> } {
  const { batchSize, length } = sizes;
  const size = batchSize * length;
  const cut = (values: number[]): Tensor<"i64"> =>
    fromNumbers("i64", [batchSize, length], values.slice(step * size, (step + 1) * size)) as Tensor<"i64">;
  return { tokens: cut(run.tokens), targets: cut(run.targets) };
}

function distance(got: number, expected: number): number {
  return Math.abs(got - expected) / Math.max(1, Math.abs(expected));
}

const ways: [string, Backend, number, boolean][] = [
  ["reference kernels", referenceBackend, 1, false],
  ["onnxruntime-node", onnxRuntimeBackend({ provider: "node" }), 1, false],
  ["onnxruntime-node, a sequence at a time, probabilities worked out again", onnxRuntimeBackend(), 3, true],
  ["onnxruntime-wasm", onnxRuntimeBackend({ provider: "wasm" }), 1, false],
];

/** What adds the same to all scores of a query changes no softmax: its gradient is rounding alone, which Adam makes as
 *  large as any other. */
function driftsFreely(name: string): boolean {
  return name.endsWith("key.bias") || /fire\.layers\.\d\.bias/.test(name);
}

describe.each(ways)("whole runs agree with torch: %s", (_, backend, microBatches, recompute) => {
  test.each(fixture.runs.map((run) => [run.name, run] as const))("%s", async (_name, run) => {
    await using trainer = await createTrainer(run, backend, microBatches, recompute);
    // FIRE's free numbers move ReLUs, and so what is not free.
    const slack = run.encoding === "fire" ? 10 : 1;
    for (let step = 0; step < sizes.steps; step++) {
      const got = await trainer.update(batchOf(run, step));
      // Loss and norm before each update, so that an error in any update shows in the next.
      expect(distance(got.loss, run.losses[step]!)).toBeLessThan(2e-5 * slack);
      expect(distance(got.reports.gradientNorm!, run.gradientNorms[step]!)).toBeLessThan(5e-5 * slack);
    }
    const weights = await trainer.weights();
    expect([...weights.keys()].sort()).toEqual(Object.keys(run.final).sort());
    for (const [name, { sum, first }] of Object.entries(run.final)) {
      if (driftsFreely(name)) continue;
      const values = toNumbers(weights.get(name)!);
      let total = 0;
      for (const x of values) total += x;
      expect(Math.abs(total - sum) / Math.sqrt(values.length), name).toBeLessThan(1e-4 * slack);
      first.forEach((x, i) => void expect(distance(values[i]!, x), name).toBeLessThan(1e-4 * slack));
    }
  });
});

describe("a learned encoding as it was trained", () => {
  test.each(
    fixture.runs.filter(({ encoding }) => "learned" in encodingOf(encoding)).map((run) => [run.name, run] as const),
  )("%s: the encoding of its weights gives the same losses", async (_, run) => {
    const learned = encodingOf(run.encoding);
    if (!("learned" in learned)) throw new Error("not learned");
    await using trainer = await createTrainer(run, referenceBackend, 1, false);
    const batch = batchOf(run, 0);
    const expected = toNumbers(await trainer.losses(batch));
    const all = await trainer.weights();
    // The same blocks with fixed encodings, one a layer where layers have their own.
    const own = learned.site === "attention-bias" && learned.learned !== "t5";
    const fixed = Array.from({ length: own ? sizes.numLayers : 1 }, (_v, layer) =>
      learnedEncoding(learned, all, layer),
    );
    const isEncodingWeight = (name: string): boolean => /positions\.|relativeBias|kerple|fire/.test(name);
    await using plain = await Trainer.create({
      ...trainer.options,
      spec: {
        ...trainer.options.spec,
        layers: trainer.options.spec.layers.map((layer, i) => ({ ...layer, group: own ? i : 0 })),
      },
      encodings: fixed,
      weights: new Map([...all].filter(([name]) => !isEncodingWeight(name))),
    });
    const got = toNumbers(await plain.losses(batch));
    got.forEach((x, i) => void expect(distance(x, expected[i]!)).toBeLessThan(2e-6));
  });
});

describe("adamW agrees with torch.optim.AdamW at every step", () => {
  test.each(fixture.adamW.map((run) => [run.name, run] as const))("%s", async (_, run) => {
    const g = graphBuilder("adamW");
    const size = run.initial.length;
    const gradient = g.input("gradient", "f32", [size]);
    const weights = g.state("weights", "f32", [size]);
    const optimizer = adamW(run);
    const state = optimizer.init(g, size, "");
    const names = new Set<string>();
    const { update, state: after } = optimizer.update(g, gradient, state, {
      weights,
      decayMask: null,
      scalar: (name) => {
        names.add(name);
        return g.input(name, "f32", []);
      },
      report: () => {},
    });
    g.assign(weights, g.add(weights, update));
    for (const [name, value] of Object.entries(state)) g.assign(value, after[name]!);
    await using session = await onnxRuntimeBackend().load(g.build());
    await session.writeState("weights", fromNumbers("f32", [size], run.initial) as Tensor);
    let worst = 0;
    for (const [step, values] of run.gradients.entries()) {
      const scalars = Object.entries(optimizer.scalars(step)).map(([name, x]) => [name, scalar("f32", x)] as const);
      expect(new Set(scalars.map(([name]) => name))).toEqual(names);
      await session.run({ gradient: fromNumbers("f32", [size], values), ...Object.fromEntries(scalars) });
      const got = toNumbers(await session.readState("weights"));
      got.forEach((x, i) => {
        worst = Math.max(worst, distance(x, run.weights[step]![i]!));
      });
    }
    expect(run.gradients.length).toBeGreaterThanOrEqual(40);
    expect(worst).toBeLessThan(1e-6); // 4e-7 seen
  });
});
