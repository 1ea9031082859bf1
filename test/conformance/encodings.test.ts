import { describe } from "vitest";
import {
  alibi,
  droppedRope,
  fire,
  fope,
  fopeFrequencies,
  kerple,
  learnedAbsolute,
  nope,
  type PositionEncoding,
  type RopeParameters,
  rope,
  sinusoidal,
  t5RelativeBias,
  xpos,
} from "../../src/encodings/index.ts";
import { randomNumbers } from "../support/attention.ts";
import { type ConformanceOptions, runEncodingConformance } from "./encodings.ts";

const random = randomNumbers(1);
const numbers = (length: number) => Float64Array.from({ length }, random);
const positiveNumbers = (length: number) => numbers(length).map((x) => 0.1 + Math.abs(x));

const queriesGrow = "queries grow and keys shrink with position; only their product is relative";
const xposWaivers = { waive: { "keeps norms": queriesGrow, "same tables for queries and keys": queriesGrow } };
const kept = fopeFrequencies({ headDim: 16, trainedLength: 512 }).length;
const fopeWaivers = { waive: { relative: "a mixture of rotations is none", "keeps norms": "cos² + sin² is not 1" } };
const common = { ropeTheta: 10000 };
const original = { ...common, factor: 4, originalMaxPositionEmbeddings: 1024 };
const pairs = Array.from({ length: 8 }, (_, i) => 1 + i);

const ropes: Record<string, RopeParameters> = {
  default: { ...common, ropeType: "default" },
  partial: { ...common, ropeType: "default", partialRotaryFactor: 0.5 },
  linear: { ...common, ropeType: "linear", factor: 4 },
  ntk: { ...common, ropeType: "ntk", factor: 4 },
  "ntk-by-parts": { ...original, ropeType: "ntk-by-parts" },
  dynamic: { ...common, ropeType: "dynamic", factor: 4 },
  "dynamic with alpha": { ...common, ropeType: "dynamic", factor: 1, alpha: 1000 },
  yarn: { ...original, ropeType: "yarn" },
  llama3: { ...original, ropeType: "llama3", lowFreqFactor: 1, highFreqFactor: 4 },
  longrope: {
    ...common,
    ropeType: "longrope",
    originalMaxPositionEmbeddings: 1024,
    shortFactor: pairs.map(() => 1),
    longFactor: pairs,
  },
  proportional: { ...common, ropeType: "proportional", partialRotaryFactor: 0.5 },
  "dynamic-linear": { ...common, ropeType: "dynamic-linear", originalMaxPositionEmbeddings: 1024 },
  "dynamic-yarn": { ...common, ropeType: "dynamic-yarn", originalMaxPositionEmbeddings: 1024 },
  gradient: { ...original, ropeType: "gradient" },
  table: { ...common, ropeType: "table", inverseFrequencies: pairs.map((i) => 1 / i) },
};

const encodings: Record<string, readonly [PositionEncoding, ConformanceOptions?]> = {
  nope: [nope()],
  "sinusoidal interleaved": [sinusoidal({ hiddenSize: 12 })],
  "sinusoidal of fairseq": [sinusoidal({ hiddenSize: 12, layout: "concatenated", exponent: "fairseq" })],
  "sinusoidal with a limit": [sinusoidal({ hiddenSize: 12, maxPositions: 512 })],
  "learned-absolute": [learnedAbsolute({ table: numbers(60), hiddenSize: 6, offset: 2 })],
  "learned-absolute of one row": [learnedAbsolute({ table: numbers(6), hiddenSize: 6 })],
  "t5 causal": [t5RelativeBias({ numHeads: 3, weights: numbers(96), bidirectional: false })],
  "t5 bidirectional": [
    t5RelativeBias({ numHeads: 2, weights: numbers(20), bidirectional: true, numBuckets: 10, maxDistance: 20 }),
  ],
  alibi: [alibi({ numHeads: 6 })],
  "alibi bidirectional": [alibi({ numHeads: 5, bidirectional: true })],
  "alibi padded": [alibi({ numHeads: 3, paddedHeads: 8 })],
  "kerple logarithmic": [kerple({ kind: "logarithmic", r1: positiveNumbers(3), r2: positiveNumbers(3) })],
  "kerple power": [kerple({ kind: "power", r1: positiveNumbers(3), r2: positiveNumbers(3), bidirectional: true })],
  fire: [
    fire({
      layers: [
        { weight: numbers(8), bias: numbers(8) },
        { weight: numbers(32), bias: numbers(4) },
      ],
      c: 0.1,
      threshold: 12,
    }),
    { waive: { relative: "distances count as a share of the query's own position" } },
  ],
  xpos: [xpos({ headDim: 16 }), xposWaivers],
  "xpos with a centre": [xpos({ headDim: 16, layout: "half", centre: 3000 }), xposWaivers],
  fope: [
    fope({
      headDim: 16,
      trainedLength: 512,
      cosCoefficients: numbers(kept * kept),
      sinCoefficients: numbers(kept * kept),
      padding: "zero-frequency",
    }),
    fopeWaivers,
  ],
  "dropped rope": [droppedRope({ headDim: 16 })],
};
for (const [name, parameters] of Object.entries(ropes)) {
  for (const layout of ["half", "interleaved"] as const) {
    encodings[`rope ${name}, ${layout}`] = [
      rope({ headDim: 16, maxPositionEmbeddings: 4096, rope: parameters, layout }),
    ];
  }
}

describe.each(Object.entries(encodings))("%s", (_, [encoding, options]) => {
  runEncodingConformance(encoding, options);
});
