// longhand export --verify: llama.cpp and our engine read the same tokens, the one with what was exported, the other
// under the encoding that was asked for. Mean losses of a range of positions are compared: single tokens of quantised
// weights differ by more, since llama.cpp rounds activations to 8 bits. On SmolLM2's Q4_1 by 0.075 nats (standard deviation,
// unchanged file), so that 64 tokens would tell 0.02 from nothing by luck, and 512 do.

import type { ExportVerification } from "../advice/export/types.ts";
import { loadLanguageModel } from "../engine/index.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import type { Strategy } from "../models/strategy.ts";
import { random as randomOf } from "../tensor/random.ts";
import { readText } from "./encoding-options.ts";
import { llamaCppLosses } from "./llama-cpp.ts";
import type { ProgressLine } from "./progress.ts";

const tolerance = 0.02;
/** Tokens of a range, where there are so many; fewest that are worth a mean. */
const mostTokens = 512;
const fewestTokens = 64;
/** The first tokens know too little to compare. */
const skipped = 32;

export interface VerifyRequest {
  /** The model as it was given. */
  readonly path: string;
  /** The GGUF that llama.cpp loads. */
  readonly file: string;
  readonly strategy: Strategy;
  readonly length: number;
  readonly trainedLength: number | null;
  readonly text?: string;
  /** Tokens to read; a little past the trained length when absent. */
  readonly tokens?: number;
  readonly threads?: number;
}

export async function verifyExport(
  request: VerifyRequest,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<ExportVerification> {
  const { path, strategy, length, trainedLength } = request;
  const count = Math.min(length, request.tokens ?? (trainedLength ?? length) + mostTokens + 1);
  const tokens = await tokensFor(request, count);
  if (tokens.length < skipped + 2 * fewestTokens + 1) {
    throw new RangeError(
      `--verify: expected a text of at least ${skipped + 2 * fewestTokens + 1} tokens, got ${tokens.length}`,
    );
  }
  const ranges = rangesOf(tokens.length - 1, trainedLength);
  const at = ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
  const threads = request.threads === undefined ? {} : { threads: request.threads };
  // llama.cpp first: where it is missing, nothing is computed in vain.
  const theirs = await llamaCppLosses(request.file, {
    tokens,
    at,
    ...threads,
    signal,
    onProgress: (done, total) => line.show("llama.cpp reads tokens", done, total),
  });
  const model = await loadLanguageModel(path, { ...threads, signal });
  const score = async (scaling: Strategy): Promise<Float64Array> => {
    const onProgress = ({ done, total }: { done: number; total: number }) => line.show("scoring tokens", done, total);
    return (await model.score(tokens, { scaling, signal, onProgress })).negativeLogLikelihood;
  };
  let ours: Float64Array;
  let unchanged: Float64Array;
  try {
    ours = await score(strategy);
    unchanged = strategy.kind === "as-is" ? ours : await score({ kind: "as-is" });
  } finally {
    line.end();
    await model.dispose();
  }
  let start = 0;
  const compared = ranges.map(({ from, to }) => {
    const tokensInRange = to - from + 1;
    const indices = Array.from({ length: tokensInRange }, (_, i) => start + i);
    start += tokensInRange;
    const mean = (loss: (k: number) => number): number => indices.reduce((sum, k) => sum + loss(k), 0) / tokensInRange;
    const differences = indices.map((k) => Math.abs(theirs.losses[k]! - ours[at[k]!]!));
    return {
      from: from + 1,
      to: to + 1,
      tokens: tokensInRange,
      ours: mean((k) => ours[at[k]!]!),
      theirs: mean((k) => theirs.losses[k]!),
      largestDifference: Math.max(...differences),
      unchanged: mean((k) => unchanged[at[k]!]!),
    };
  });
  const passed = compared.every((range) => Math.abs(range.theirs - range.ours) <= tolerance);
  return { passed, engine: theirs.engine, tolerance, ranges: compared };
}

/** Early positions and the last ones, which lie past the trained length where enough of them do; `losses` there are. */
function rangesOf(losses: number, trainedLength: number | null): { from: number; to: number }[] {
  const half = Math.floor((losses - skipped) / 2);
  const past = trainedLength === null ? 0 : losses - trainedLength;
  const last = Math.min(mostTokens, losses - skipped - fewestTokens, past >= fewestTokens ? past : half);
  const first = Math.min(mostTokens, losses - last - skipped);
  return [
    { from: skipped, to: skipped + first - 1 },
    { from: losses - last, to: losses - 1 },
  ];
}

/** The text's tokens; without one, random words said again and again, which a model learns to expect. */
async function tokensFor({ path, text }: VerifyRequest, count: number): Promise<number[]> {
  const tokenizer = await openTokenizer(path);
  if (text !== undefined) {
    const tokens = tokenizer.encode(await readText(text), { parseSpecial: false });
    return tokens.slice(0, count);
  }
  const random = randomOf(7);
  const words = "the sea river old house light morning winter garden stone letter captain silver road window".split(
    " ",
  );
  let phrase = "";
  for (let i = 0; i < 48; i++) phrase += `${i === 0 ? "" : " "}${words[Math.floor(random.uniform() * words.length)]!}`;
  const once = tokenizer.encode(`${phrase}. `, { parseSpecial: false, addSpecial: false });
  const start = tokenizer.encode("", { parseSpecial: false });
  const out = [...start];
  while (out.length < count) out.push(...once);
  return out.slice(0, count);
}
