// A loaded model: scores and generates under any position encoding, without being loaded again. Positions are data: a
// strategy changes what the graph is fed with. What evaluation, training and the command line call.

import type { Finding } from "../formats/finding.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import type { ModelSource } from "../formats/model-files.ts";
import {
  buildDecoder,
  type Checkpoint,
  createPositions,
  type DecoderProgram,
  type GroupPositions,
  type LearnedPositions,
  type ModelSpec,
  openCheckpoint,
  type PositionChoice,
  type Positions,
  parseStrategy,
  readLearnedPositions,
  type Strategy,
  viewCount,
  viewedGroups,
} from "../models/index.ts";
import { type Backend, DisposedError, type Session, type Weights } from "./backend.ts";
import { isFileWeight } from "./binding.ts";
import { cacheSizes, Decoder, type RunOptions } from "./decoder.ts";
import { chooseCapacity, choosePrecision, type LoadModelOptions, type Precision } from "./load-options.ts";
import { onnxRuntimeBackend } from "./onnxruntime/index.ts";
import { readParameters, weightsOf } from "./parameters.ts";
import { argMax, isGreedy, logProbability, type SamplingOptions, sampler } from "./sampling.ts";

/** How a call sees positions. */
export interface EncodingOptions {
  /** A strategy, its short form ("yarn:4"), or a rope_parameters object, for the layers that the file's own
   *  rope_parameters speaks of. */
  readonly scaling?: Strategy | string | Readonly<Record<string, unknown>>;
  /** Removes positions (cos 1, sin 0) and multiplies queries by DroPE's temperature, 1 + c · ln(length / trained). */
  readonly drop?: boolean | { readonly coefficient: number };
  /** A factor on each query; null: none, even where the file has one. */
  readonly logitTemperature?: PositionChoice["logitTemperature"];
  /** Encodings of one's own, by index of the description's group. */
  readonly encodings?: PositionChoice["encodings"];
  /** The length of the whole sequence that length-dependent encodings see in the reading "whole"; the number of tokens
   *  when absent. */
  readonly length?: number;
  /**
   * Which table a length-dependent encoding (dynamic, longrope, a temperature by length) uses.
   * whole: one for the final length, as one forward pass gives. growing: that of each prefix, as decoding without a cache
   * gives; whatever is behind a change of the table is computed again, so a table that changes with every token costs a
   * pass a token.
   */
  readonly reading?: Reading;
}

export type Reading = "whole" | "growing";

export interface ScoreOptions extends EncodingOptions, RunOptions {}

/** What was computed, as far as a report must say it. */
export interface RunFacts {
  readonly positions: readonly GroupPositions[];
  /** Where tables depend on the length: which reading; null otherwise. */
  readonly reading: Reading | null;
  readonly precision: Precision;
  /** Of quantised products: 0 in float32, 4 with activations rounded to int8; null for float32 weights. */
  readonly accuracyLevel: 0 | 4 | null;
  readonly backend: string;
}

export interface Score extends RunFacts {
  /** Nats: index i is the loss of token i + 1 given tokens 0 … i. */
  readonly negativeLogLikelihood: Float64Array;
  /** Wall time of the runs. */
  readonly seconds: number;
}

export interface LogLikelihood {
  /** Σ ln p of the continuation's tokens. */
  readonly logLikelihood: number;
  /** Whether each of them is the likeliest at its place. */
  readonly isGreedy: boolean;
}

export interface GenerateOptions extends EncodingOptions, SamplingOptions, RunOptions {
  /** 128 when absent; fewer where positions or the capacity end. */
  readonly maxTokens?: number;
  /** Generation ends before one of these tokens. */
  readonly stop?: readonly number[];
  /** Gives each token's log-probability: a pass over the vocabulary in JavaScript. */
  readonly logProbabilities?: boolean;
  /** Of quantised weights: no rounding of activations, at a third of the speed. */
  readonly exact?: boolean;
}

export interface GeneratedToken {
  readonly token: number;
  /** ln p under the model, before temperature and cuts; null unless it was asked for. */
  readonly logProbability: number | null;
}

/** DroPE's coefficient for a pretrained model that was recalibrated (2512.12167, section 4). */
const dropCoefficient = 0.103;

/**
 * Loads a model.
 *
 * @param model a folder with config.json and safetensors, a .gguf, or a llama2.c .bin; or, in a browser too, the files of
 *   such a model (File objects, `memorySource`, `blobSource`), which stay open
 * @throws FormatError for what is no model or a family that cannot be run; MissingWeightError, RangeError and
 *   FormatError for weights that are missing, misshapen or not finite
 */
export async function loadLanguageModel(model: ModelSource, options: LoadModelOptions = {}): Promise<LanguageModel> {
  const checkpoint = await openCheckpoint(model);
  try {
    return await createLanguageModel(checkpoint, options);
  } catch (error) {
    await checkpoint.close();
    throw error;
  }
}

/** A model from an open checkpoint. The model closes it when it is disposed of. */
export async function createLanguageModel(
  checkpoint: Checkpoint,
  options: LoadModelOptions = {},
): Promise<LanguageModel> {
  const backend = options.backend ?? onnxRuntimeBackend();
  const { spec } = checkpoint;
  if (spec.encoder !== undefined) {
    throw new RangeError(
      `load: expected a decoder alone, got an encoder and a decoder in ${checkpoint.description.name}; ` +
        "use loadSequenceToSequenceModel",
    );
  }
  const { precision, form } = choosePrecision(options, checkpoint);
  const { initial, limit } = chooseCapacity(options);
  const attentionBias = options.attentionBias ?? "columns";
  // Where the kernel without scores is the slower one, sinks choose the other.
  const keepsScores = !backend.capabilities.fusedAttention;
  const common = {
    queryFactors: true,
    windowCaches: true,
    attentionBias,
    neutralSinks: keepsScores,
    ...form,
  } as const;
  const program = buildDecoder(spec, common);
  const learned = await readLearnedPositions(checkpoint);
  const { signal, onProgress, threads } = options;
  const decoding =
    precision === "quantized"
      ? buildDecoder(spec, { ...common, accuracyLevel: 4, neutralSinks: true, losses: false })
      : undefined;
  const atOnce = decoding !== undefined && options.decoding === true;
  // The same weights, so what is read serves both.
  const wanted = new Map([...program.parameters, ...(atOnce ? decoding.parameters : [])]);
  const inFiles = backend.capabilities.fileWeights;
  const parameters = await readParameters({ parameters: wanted }, checkpoint, {
    inFiles,
    ...(signal === undefined ? {} : { signal }),
    ...(onProgress === undefined ? {} : { onProgress: (done: number, total: number) => onProgress({ done, total }) }),
  });
  signal?.throwIfAborted();
  const shared = threads === undefined ? {} : { threads };
  // Those that are checked and stay in their files need no second reading.
  const inPlace = new Map([...parameters].filter(([, weight]) => isFileWeight(weight)));
  const { spareRows, windows } = program;
  const sizes = cacheSizes(program, initial);
  const exact = await backend.load(program.graph, parameters, { sizes, ...shared, ownsWeights: !atOnce });
  const load = async ({ graph }: DecoderProgram, weights: Weights): Promise<Session> =>
    backend.load(graph, weights, { shareStates: exact, ...shared, ownsWeights: true });
  const loaded = atOnce ? await load(decoding, parameters) : undefined;
  const fast = decoding && (async () => loaded ?? load(decoding, await readParameters(decoding, checkpoint)));
  /** The same weights once more, in a program with a cache of its own whose keys are not turned. */
  const loadViews = async (): Promise<Decoder> => {
    const groups = viewedGroups(checkpoint.description);
    // Views have kernels of their own, without sinks.
    const viewed = buildDecoder(spec, { ...common, neutralSinks: false, keyViews: { groups, count: viewCount } });
    const others = new Map([...viewed.parameters].filter(([name]) => !inPlace.has(name)));
    const weights = new Map([...inPlace, ...(await readParameters({ parameters: others }, checkpoint))]);
    const options = { sizes: cacheSizes(viewed, initial), ...shared, ownsWeights: true };
    const session = await backend.load(viewed.graph, weights, options);
    return new Decoder({ ...viewed, exact: session, keepsScores }, spec, initial, limit);
  };
  return new LanguageModel({
    checkpoint,
    backend,
    precision,
    learned,
    attentionBias,
    // What positions are made of is fed in, not a parameter.
    unused: checkpoint.unusedTensors([...weightsOf(program), ...learned.weights]),
    decoder: new Decoder(
      { exact, spareRows, windows, keepsScores, ...(fast === undefined ? {} : { fast }) },
      spec,
      initial,
      limit,
    ),
    loadViews,
  });
}

interface Parts {
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly precision: Precision;
  readonly learned: LearnedPositions;
  readonly attentionBias: "columns" | "dense";
  readonly unused: readonly Finding[];
  readonly decoder: Decoder;
  readonly loadViews: () => Promise<Decoder>;
}

export class LanguageModel implements AsyncDisposable {
  readonly description: ModelDescription;
  readonly spec: ModelSpec;
  readonly precision: Precision;
  /** What had to be assumed, and what the files hold that nothing reads. */
  readonly findings: readonly Finding[];
  readonly #backend: Backend;
  readonly #checkpoint: Checkpoint;
  readonly #learned: LearnedPositions;
  readonly #attentionBias: "columns" | "dense";
  readonly #decoder: Decoder;
  readonly #loadViews: () => Promise<Decoder>;
  /** For positions that need it; loaded when such are first wanted. */
  #views: Promise<Decoder> | undefined;
  #disposed = false;

  /** Use `loadLanguageModel`. */
  constructor(parts: Parts) {
    this.description = parts.checkpoint.description;
    this.spec = parts.checkpoint.spec;
    this.precision = parts.precision;
    this.findings = [...parts.checkpoint.description.findings, ...parts.unused];
    this.#backend = parts.backend;
    this.#checkpoint = parts.checkpoint;
    this.#learned = parts.learned;
    this.#attentionBias = parts.attentionBias;
    this.#decoder = parts.decoder;
    this.#loadViews = parts.loadViews;
  }

  /** The positions of a choice: what a call will use, checked without running anything. */
  positions(options: EncodingOptions = {}): Positions {
    const { drop, encodings } = options;
    const scaling = readScaling(options.scaling);
    if (drop !== undefined && drop !== false && scaling !== undefined && scaling.kind !== "drop") {
      throw new RangeError("score: expected drop or a scaling, got both");
    }
    const dropped = drop !== undefined && drop !== false;
    const strategy: Strategy | undefined = dropped ? { kind: "drop" } : scaling;
    const { trainedLength } = this.description;
    const coefficient = typeof drop === "object" ? drop.coefficient : dropCoefficient;
    const temperature =
      options.logitTemperature !== undefined
        ? options.logitTemperature
        : dropped && trainedLength !== null
          ? ({ kind: "drope", coefficient, trainedLength } as const)
          : undefined;
    return createPositions(
      this.description,
      {
        ...(strategy === undefined ? {} : { scaling: strategy }),
        ...(temperature === undefined ? {} : { logitTemperature: temperature }),
        ...(encodings === undefined ? {} : { encodings }),
      },
      this.#learned,
      this.#attentionBias,
    );
  }

  /**
   * The loss of every token but the first, in chunks over the cache.
   *
   * @param tokens at least 2
   * @throws RangeError, before any work, for a token outside the vocabulary, a sequence longer than the positions or the
   *   capacity, or a scaling that the model cannot take; the signal's reason when it is aborted
   */
  async score(tokens: ArrayLike<number>, options: ScoreOptions = {}): Promise<Score> {
    this.#alive();
    const ids = Int32Array.from(tokens);
    if (ids.length < 2) throw new RangeError(`score: expected at least 2 tokens, got ${ids.length}`);
    const positions = this.positions(options);
    const reading = this.#reading(positions, options, "whole");
    // The last token is never fed in, so a table as long as the sequence less one would do; but it is part of the
    // sequence that the model is asked about.
    this.#expectLength(ids.length, positions);
    const decoder = await this.#decoderFor(positions);
    const begin = performance.now();
    const losses = new Float64Array(ids.length - 1);
    if (reading !== "growing") {
      const tables = positions.tables(this.#wholeLength(ids.length, options));
      const { losses: got } = await decoder.run(ids, tables, { lossesFrom: 1 }, options);
      losses.set(got);
    } else {
      await this.#scoreGrowing(decoder, ids, positions, losses, options);
    }
    return {
      ...this.#facts(positions, reading),
      negativeLogLikelihood: losses,
      seconds: (performance.now() - begin) / 1000,
    };
  }

  /** Runs of prefixes whose table is the same are one pass; each change of the table is a new one. */
  async #scoreGrowing(
    decoder: Decoder,
    ids: Int32Array,
    positions: Positions,
    losses: Float64Array,
    options: RunOptions,
  ): Promise<void> {
    const { onProgress, ...rest } = options;
    const total = ids.length - 1;
    let from = 1;
    while (from < ids.length) {
      // The loss of token i sees a prefix of i tokens.
      const key = positions.key(from);
      let to = from + 1;
      while (to < ids.length && positions.key(to) === key) to++;
      const prefix = ids.subarray(0, to);
      const { losses: got } = await decoder.run(prefix, positions.tables(from), { lossesFrom: from }, rest);
      losses.set(got, from - 1);
      onProgress?.({ done: to - 1, total });
      from = to;
    }
  }

  /**
   * The log-likelihood of a continuation after a context, as tasks with choices ask for it. Contexts that begin alike
   * share their computation while the encoding stays the same.
   *
   * @throws RangeError for an empty context or continuation, and as `score` does
   */
  async loglikelihood(
    context: ArrayLike<number>,
    continuation: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<LogLikelihood> {
    this.#alive();
    if (context.length === 0 || continuation.length === 0) {
      throw new RangeError(
        `loglikelihood: expected a context and a continuation of at least one token, got ${context.length} and ` +
          `${continuation.length}`,
      );
    }
    const ids = new Int32Array(context.length + continuation.length);
    ids.set(context);
    ids.set(continuation, context.length);
    const positions = this.positions(options);
    const reading = this.#reading(positions, options, "whole");
    this.#expectLength(ids.length, positions);
    const { vocabSize } = this.spec;
    let logLikelihood = 0;
    let isGreedy = true;
    const decoder = await this.#decoderFor(positions);
    const whole = positions.tables(this.#wholeLength(ids.length, options));
    // Logits of some rows at a time; the cache makes that cheap, and [T, V] never exists.
    const step = reading === "growing" ? 1 : 64;
    for (let at = context.length; at < ids.length; at += step) {
      const to = Math.min(ids.length, at + step);
      const tables = reading === "growing" ? positions.tables(at) : whole;
      const { logits } = await decoder.run(ids.subarray(0, to - 1), tables, { logits: to - at }, options);
      for (let i = at; i < to; i++) {
        const row = logits.subarray((i - at) * vocabSize, (i - at + 1) * vocabSize);
        logLikelihood += logProbability(row, ids[i]!);
        isGreedy &&= argMax(row) === ids[i];
      }
    }
    return { logLikelihood, isGreedy };
  }

  /**
   * Tokens after a prompt, one at a time. Leaving the loop ends it. Several may be under way at once: each step restores
   * the cache that it needs.
   *
   * The reading is "growing" when absent: each token sees the table of the sequence so far, as a full pass would.
   *
   * @throws RangeError, before any work, for an empty prompt, or one that leaves no position for a token
   */
  async *generate(prompt: ArrayLike<number>, options: GenerateOptions = {}): AsyncGenerator<GeneratedToken, RunFacts> {
    this.#alive();
    const { maxTokens = 128, stop = [] } = options;
    if (prompt.length === 0) throw new RangeError("generate: expected a prompt of at least one token, got none");
    if (!Number.isInteger(maxTokens) || maxTokens < 1) {
      throw new RangeError(`generate: expected maxTokens to be an integer of at least 1, got ${maxTokens}`);
    }
    const choose = sampler(options);
    const wanted = isGreedy(options) && options.logProbabilities !== true ? { likeliest: true } : { logits: 1 };
    const positions = this.positions(options);
    const reading = this.#reading(positions, options, "growing");
    this.#expectLength(prompt.length, positions);
    // The last token chosen is not fed in: it may stand one past the last position.
    const decoder = await this.#decoderFor(positions);
    const most = Math.min(prompt.length + maxTokens, positions.maxLength + 1, decoder.limit + 1);
    const ids = new Int32Array(most);
    ids.set(prompt);
    await decoder.reserve(most - 1);
    const final = this.#wholeLength(most - 1, options);
    let tables = positions.tables(reading === "growing" ? prompt.length : final);
    const fast = options.exact !== true;
    for (let length = prompt.length; length < most; length++) {
      this.#alive();
      if (reading === "growing" && positions.key(length) !== tables.key) tables = positions.tables(length);
      const { logits, likeliest } = await decoder.run(ids.subarray(0, length), tables, { ...wanted, fast }, options);
      const token = likeliest ?? choose(logits);
      if (stop.includes(token)) break;
      ids[length] = token;
      yield { token, logProbability: options.logProbabilities ? logProbability(logits, token) : null };
    }
    return this.#facts(positions, reading, fast);
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#decoder.dispose();
    await (await this.#views?.catch(() => undefined))?.dispose();
    await this.#checkpoint.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #decoderFor(positions: Positions): Promise<Decoder> {
    if (!positions.views) return this.#decoder;
    this.#views ??= this.#loadViews();
    try {
      return await this.#views;
    } catch (error) {
      this.#views = undefined;
      throw error;
    }
  }

  #wholeLength(length: number, options: EncodingOptions): number {
    const asked = options.length ?? length;
    if (!Number.isInteger(asked) || asked < 1) {
      throw new RangeError(`score: expected a length that is an integer of at least 1, got ${asked}`);
    }
    return asked;
  }

  #reading(positions: Positions, options: EncodingOptions, fallback: Reading): Reading | null {
    const { reading } = options;
    if (reading !== undefined && reading !== "whole" && reading !== "growing") {
      throw new RangeError(`score: expected reading "whole" or "growing", got ${JSON.stringify(reading)}`);
    }
    return positions.dependsOnLength ? (reading ?? fallback) : null;
  }

  #expectLength(length: number, positions: Positions): void {
    if (length > positions.maxLength) {
      throw new RangeError(
        `score: expected at most ${positions.maxLength} tokens, as many as the model has positions for, got ${length}`,
      );
    }
    this.#decoder.expectRoom(length);
  }

  #facts(positions: Positions, reading: Reading | null, fast = false): RunFacts {
    return {
      positions: positions.groups,
      reading,
      precision: this.precision,
      accuracyLevel: this.precision === "float32" ? null : fast ? 4 : 0,
      backend: this.#backend.name,
    };
  }

  #alive(): void {
    if (this.#disposed) throw new DisposedError(`model: expected one that is in use, got a disposed one`);
  }
}

export function readScaling(scaling: EncodingOptions["scaling"]): Strategy | undefined {
  if (scaling === undefined) return undefined;
  if (typeof scaling === "string") return parseStrategy(scaling);
  if (isStrategy(scaling)) return scaling;
  return { kind: "parameters", value: scaling as Readonly<Record<string, unknown>> };
}

function isStrategy(scaling: object): scaling is Strategy {
  const { kind } = scaling as { kind?: unknown };
  return typeof kind === "string" && ["as-is", "none", "drop", "short", "parameters", "self-extend"].includes(kind);
}
