// A loaded model with an encoder and a decoder (T5): scores and generates a text given another, under its learned bias
// or any other. As a LanguageModel, with what the encoder reads as first argument; the encoder runs once a text.

import type { Finding } from "../formats/finding.ts";
import type { ModelDescription, PositionGroup } from "../formats/model-description.ts";
import type { ModelSource } from "../formats/model-files.ts";
import {
  type BiasPositions,
  BiasRows,
  biasInputs,
  buildEncoderDecoder,
  buildEncoderDecoderDecoder,
  type Checkpoint,
  createBiasPositions,
  type LearnedBiases,
  type ModelSpec,
  openCheckpoint,
  type PositionTables,
} from "../models/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { type Backend, DisposedError, type Session } from "./backend.ts";
import { type Computed, Decoder, type RunOptions, type Wanted } from "./decoder.ts";
import {
  type EncodingOptions,
  type GeneratedToken,
  type GenerateOptions,
  type LogLikelihood,
  type RunFacts,
  readScaling,
  type Score,
  type ScoreOptions,
} from "./language-model.ts";
import { chooseCapacity, choosePrecision, type LoadModelOptions, type Precision } from "./load-options.ts";
import { onnxRuntimeBackend } from "./onnxruntime/index.ts";
import { readParameters, weightsOf } from "./parameters.ts";
import { argMax, isGreedy, logProbability, sampler } from "./sampling.ts";
import { chunkRows, Encoder, embeddedSession } from "./sequence-to-sequence.ts";

export interface SequenceToSequenceGenerateOptions extends GenerateOptions {
  /** What the decoder's text begins with; the model's start token when absent. */
  readonly decoderTokens?: ArrayLike<number>;
}

/**
 * Loads a model with an encoder and a decoder.
 *
 * @param model a folder with config.json and safetensors, or a .gguf; or the files of such a model
 * @throws as `loadLanguageModel`; FormatError for a decoder alone
 */
export async function loadSequenceToSequenceModel(
  model: ModelSource,
  options: LoadModelOptions = {},
): Promise<SequenceToSequenceModel> {
  const checkpoint = await openCheckpoint(model);
  try {
    return await createSequenceToSequenceModel(checkpoint, options);
  } catch (error) {
    await checkpoint.close();
    throw error;
  }
}

/** A model from an open checkpoint. The model closes it when it is disposed of. */
export async function createSequenceToSequenceModel(
  checkpoint: Checkpoint,
  options: LoadModelOptions = {},
): Promise<SequenceToSequenceModel> {
  const { spec } = checkpoint;
  const { name } = checkpoint.description;
  const { signal, onProgress, threads, backend = onnxRuntimeBackend() } = options;
  if (spec.encoder === undefined) {
    throw new RangeError(`load: expected a model with an encoder and a decoder, got a decoder alone in ${name}`);
  }
  const { precision, form } = choosePrecision(options, checkpoint);
  const isQuantized = precision === "quantized";
  const { initial, limit } = chooseCapacity(options);
  const learned = await readLearnedBiases(checkpoint);
  const programs = buildEncoderDecoder(spec, form);
  const all = [programs.embedding, programs.encoderStart, ...programs.encoderLayers, programs.decoder];
  const total = all.reduce((sum, program) => sum + weightsOf(program).size, 0);
  const shared = threads === undefined ? {} : { threads };
  const sessions: Session[] = [];
  try {
    let done = 0;
    for (const program of all) {
      const before = done;
      const weights = await readParameters(program, checkpoint, {
        inFiles: backend.capabilities.fileWeights,
        ...(signal === undefined ? {} : { signal }),
        onProgress: (count) => {
          done = before + count;
          onProgress?.({ done, total });
        },
      });
      signal?.throwIfAborted();
      const isDecoder = program === programs.decoder;
      sessions.push(
        await backend.load(program.graph, weights, {
          ...(isDecoder ? { sizes: { capacity: initial, source: 0 } } : { takesTurns: true }),
          ...shared,
          ownsWeights: true,
        }),
      );
    }
    const [embedding, start] = sessions as [Session, Session];
    const exact = sessions.at(-1)!;
    const loadFast = async (): Promise<Session> => {
      const program = buildEncoderDecoderDecoder(spec, {
        ...form,
        accuracyLevel: 4,
        neutralSinks: true,
        losses: false,
      });
      const weights = await readParameters(program, checkpoint);
      const session = await backend.load(program.graph, weights, { shareStates: exact, ...shared, ownsWeights: true });
      return embeddedSession(session, embedding);
    };
    const loaded = isQuantized && options.decoding ? await loadFast() : undefined;
    if (loaded !== undefined) sessions.push(loaded);
    return new SequenceToSequenceModel({
      checkpoint,
      backend,
      precision,
      learned,
      unused: checkpoint.unusedTensors([
        ...weightsOf(...all),
        // Fed in, not parameters.
        ...biasWeights(spec).encoder,
        ...biasWeights(spec).decoder,
      ]),
      encoder: new Encoder({ embedding, start, layers: sessions.slice(2, 2 + spec.encoder.layers.length) }, spec),
      states: exact,
      decoder: new Decoder(
        {
          exact: embeddedSession(exact, embedding),
          spareRows: 0,
          windows: [],
          ...(isQuantized ? { fast: () => (loaded === undefined ? loadFast() : Promise.resolve(loaded)) } : {}),
        },
        spec,
        initial,
        limit,
      ),
    });
  } catch (error) {
    for (const session of sessions) await session.dispose();
    throw error;
  }
}

/** Our names of the learned biases. */
function biasWeights({ layers, encoder }: ModelSpec): { readonly encoder: string[]; readonly decoder: string[] } {
  const names = (prefix: string, count: number): string[] =>
    Array.from({ length: encoder!.ownBias === "every-layer" ? count : 1 }, (_, layer) => {
      return `${prefix}layers.${layer}.relativeBias.weight`;
    });
  return { encoder: names("encoder.", encoder!.layers.length), decoder: names("", layers.length) };
}

async function readLearnedBiases(checkpoint: Checkpoint): Promise<LearnedBiases> {
  const { spec } = checkpoint;
  const read = async (names: readonly string[], { position }: PositionGroup): Promise<Float32Array[]> => {
    if (position.kind !== "t5") throw new Error(`internal: expected a T5 bias, got ${position.kind}`);
    const out: Float32Array[] = [];
    for (const name of names) out.push(await checkpoint.readFloat32(name, [position.numBuckets, position.numHeads]));
    return out;
  };
  const { encoder, decoder } = biasWeights(spec);
  return {
    encoder: await read(encoder, spec.encoder!.group),
    decoder: await read(decoder, spec.groups[0]!),
  };
}

interface Parts {
  readonly checkpoint: Checkpoint;
  readonly backend: Backend;
  readonly precision: Precision;
  readonly learned: LearnedBiases;
  readonly unused: readonly Finding[];
  readonly encoder: Encoder;
  /** The session that holds the cross-attention's states. */
  readonly states: Session;
  readonly decoder: Decoder;
}

export class SequenceToSequenceModel implements AsyncDisposable {
  readonly description: ModelDescription;
  readonly spec: ModelSpec;
  readonly precision: Precision;
  /** What had to be assumed, and what the files hold that nothing reads. */
  readonly findings: readonly Finding[];
  readonly #parts: Parts;
  readonly #biasNames: readonly string[];
  readonly #rows: readonly BiasRows[];
  /** The text that the cross-attention's states are of, and under which bias. */
  #source: { readonly tokens: Int32Array; readonly key: string } | null = null;
  #sourceCount = 0;
  #last: Promise<unknown> = Promise.resolve();
  #disposed = false;

  /** Use `loadSequenceToSequenceModel`. */
  constructor(parts: Parts) {
    const { checkpoint } = parts;
    this.#parts = parts;
    this.description = checkpoint.description;
    this.spec = checkpoint.spec;
    this.precision = parts.precision;
    this.findings = [
      ...checkpoint.description.findings,
      ...(checkpoint.description.format === "gguf" ? [headScaleFinding(checkpoint.spec)] : []),
      ...parts.unused,
    ];
    this.#biasNames = biasInputs(checkpoint.spec);
    this.#rows = this.#biasNames.map(() => new BiasRows());
  }

  /**
   * The positions of a choice, checked without running anything. There is no trained length: buckets saturate, and any
   * length has a bias. `length` and `reading` change nothing, as no table depends on the length.
   */
  positions(options: EncodingOptions = {}): BiasPositions {
    const { drop = false, encodings, logitTemperature } = options;
    const scaling = readScaling(options.scaling);
    if (drop !== false && scaling !== undefined && scaling.kind !== "drop") {
      throw new RangeError("score: expected drop or a scaling, got both");
    }
    if (typeof drop === "object" || (logitTemperature !== undefined && logitTemperature !== null)) {
      throw new RangeError(
        "score: expected no temperature for a model with an encoder and a decoder, got one: " +
          "it has no trained length to count from; use drop alone",
      );
    }
    const strategy = drop ? ({ kind: "drop" } as const) : scaling;
    return createBiasPositions(this.description, this.spec, this.#parts.learned, {
      ...(strategy === undefined ? {} : { scaling: strategy }),
      ...(encodings === undefined ? {} : { encodings }),
    });
  }

  /**
   * The loss of every decoder token but the first, given the encoder's text and those before it.
   *
   * @param encoderTokens exactly what the encoder reads: T5's texts end with its end token
   * @param decoderTokens exactly what the decoder reads and predicts, at least 2; T5's begin with the start token
   * @throws RangeError, before any work, for a token outside the vocabulary, a text longer than the capacity, or a
   *   scaling that the model cannot take; the signal's reason when it is aborted
   */
  async score(
    encoderTokens: ArrayLike<number>,
    decoderTokens: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<Score> {
    this.#alive();
    const ids = Int32Array.from(decoderTokens);
    if (ids.length < 2) throw new RangeError(`score: expected at least 2 decoder tokens, got ${ids.length}`);
    const positions = this.positions(options);
    const source = this.#checked(encoderTokens, "encoder");
    this.#checked(ids, "decoder");
    const begin = performance.now();
    const { losses } = await this.#run(source, positions, ids, { lossesFrom: 1 }, options);
    return {
      ...this.#facts(positions),
      negativeLogLikelihood: losses,
      seconds: (performance.now() - begin) / 1000,
    };
  }

  /**
   * The log-likelihood of a continuation after the decoder's start token, given the encoder's text.
   *
   * @throws RangeError for an empty continuation, and as `score` does
   */
  async loglikelihood(
    encoderTokens: ArrayLike<number>,
    continuation: ArrayLike<number>,
    options: ScoreOptions = {},
  ): Promise<LogLikelihood> {
    this.#alive();
    if (continuation.length === 0) {
      throw new RangeError("loglikelihood: expected a continuation of at least one token, got none");
    }
    const ids = new Int32Array(1 + continuation.length);
    ids[0] = this.spec.encoder!.decoderStartToken;
    ids.set(continuation, 1);
    const positions = this.positions(options);
    const source = this.#checked(encoderTokens, "encoder");
    this.#checked(ids, "decoder");
    const { vocabSize } = this.spec;
    let logLikelihood = 0;
    let isGreedy = true;
    // Logits of some rows at a time; the cache makes that cheap, and [T, V] never exists.
    for (let at = 1; at < ids.length; at += 64) {
      const to = Math.min(ids.length, at + 64);
      const { logits } = await this.#run(source, positions, ids.subarray(0, to - 1), { logits: to - at }, options);
      for (let i = at; i < to; i++) {
        const row = logits.subarray((i - at) * vocabSize, (i - at + 1) * vocabSize);
        logLikelihood += logProbability(row, ids[i]!);
        isGreedy &&= argMax(row) === ids[i];
      }
    }
    return { logLikelihood, isGreedy };
  }

  /**
   * The decoder's tokens after its start token, one at a time. Leaving the loop ends it. Several may be under way at
   * once: each step restores the states that it needs, and encodes again where texts take turns.
   *
   * @throws RangeError, before any work, for an empty text, or one longer than the capacity
   */
  async *generate(
    encoderTokens: ArrayLike<number>,
    options: SequenceToSequenceGenerateOptions = {},
  ): AsyncGenerator<GeneratedToken, RunFacts> {
    this.#alive();
    const { maxTokens = 128, stop = [] } = options;
    const prompt = options.decoderTokens ?? [this.spec.encoder!.decoderStartToken];
    if (!Number.isInteger(maxTokens) || maxTokens < 1) {
      throw new RangeError(`generate: expected maxTokens to be an integer of at least 1, got ${maxTokens}`);
    }
    const choose = sampler(options);
    const wanted = isGreedy(options) && options.logProbabilities !== true ? { likeliest: true } : { logits: 1 };
    const positions = this.positions(options);
    const source = this.#checked(encoderTokens, "encoder");
    this.#checked(prompt, "decoder");
    const { decoder } = this.#parts;
    // The last token chosen is not fed in.
    const most = Math.min(prompt.length + maxTokens, decoder.limit + 1);
    const ids = new Int32Array(most);
    ids.set(prompt);
    await decoder.reserve(most - 1);
    const fast = options.exact !== true;
    for (let length = prompt.length; length < most; length++) {
      this.#alive();
      const { logits, likeliest } = await this.#run(
        source,
        positions,
        ids.subarray(0, length),
        { ...wanted, fast },
        options,
      );
      const token = likeliest ?? choose(logits);
      if (stop.includes(token)) break;
      ids[length] = token;
      yield { token, logProbability: options.logProbabilities ? logProbability(logits, token) : null };
    }
    return this.#facts(positions, fast);
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#last.catch(() => undefined);
    await this.#parts.decoder.dispose();
    await this.#parts.encoder.dispose();
    await this.#parts.checkpoint.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  /** Encodes the text unless its states are there, and brings the decoder to its tokens. Both are one step: another
   *  call's text cannot come between. */
  #run(
    source: Int32Array,
    positions: BiasPositions,
    ids: Int32Array,
    wanted: Wanted,
    options: RunOptions,
  ): Promise<Computed> {
    const body = async (): Promise<Computed> => {
      this.#alive();
      const { signal, onProgress } = options;
      const encodes = !this.#isEncoded(source, positions);
      const extra = encodes ? source.length : 0;
      if (encodes) {
        await this.#encode(source, positions, {
          ...options,
          onProgress: ({ done }) => onProgress?.({ done, total: extra + ids.length - 1 }),
        });
      }
      return this.#parts.decoder.run(ids, this.#tables(positions), wanted, {
        chunkSize: options.chunkSize ?? this.#chunkSize(ids.length, source.length),
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined
          ? {}
          : { onProgress: ({ done, total }) => onProgress({ done: extra + done, total: extra + total }) }),
      });
    };
    const next = this.#last.then(body, body);
    this.#last = next.catch(() => undefined);
    return next;
  }

  #isEncoded(tokens: Int32Array, { key }: BiasPositions): boolean {
    const known = this.#source;
    return known !== null && known.key === key && known.tokens.length === tokens.length
      ? known.tokens.every((id, i) => id === tokens[i])
      : false;
  }

  async #encode(tokens: Int32Array, positions: BiasPositions, options: RunOptions): Promise<void> {
    const { encoder, states } = this.#parts;
    const cross = await encoder.run(tokens, positions.encoder, {
      chunkSize: options.chunkSize,
      signal: options.signal,
      onProgress: (share) => {
        const done = Math.round(share * tokens.length);
        options.onProgress?.({ done, total: tokens.length });
      },
    });
    if (this.#source?.tokens.length !== tokens.length) {
      // Through nothing, so that no old rows are moved.
      await states.resize({ source: 0 });
      await states.resize({ source: tokens.length });
    }
    this.#source = null;
    for (const [name, value] of cross) {
      await states.writeState(name, value);
      cross.delete(name);
    }
    this.#source = { tokens, key: positions.key };
    this.#sourceCount++;
  }

  /** What the decoder is fed with; rows that it cached after another text are not rows after this one. */
  #tables(positions: BiasPositions): PositionTables {
    return {
      key: `${positions.key} ${this.#sourceCount}`,
      feeds: (past, count) => {
        const feeds: Record<string, Tensor> = {};
        this.#biasNames.forEach((name, layer) => {
          feeds[name] = this.#rows[layer]!.of(positions.decoder[layer]!, past, count, past + count);
        });
        return feeds;
      },
    };
  }

  /** Of the decoder: its biases exist, and the scores of one cross-attention. */
  #chunkSize(length: number, sourceLength: number): number {
    const { numHeads } = this.spec.layers[0]!.attention;
    return chunkRows(numHeads, Math.max(length * this.#biasNames.length, sourceLength));
  }

  #checked(tokens: ArrayLike<number>, which: "encoder" | "decoder"): Int32Array {
    const { vocabSize } = this.spec;
    if (tokens.length === 0) throw new RangeError(`${which}: expected at least one token, got none`);
    for (let i = 0; i < tokens.length; i++) {
      if (!Number.isInteger(tokens[i]) || tokens[i]! < 0 || tokens[i]! >= vocabSize) {
        throw new RangeError(`${which}: expected tokens from 0 to ${vocabSize - 1}, got ${tokens[i]} at index ${i}`);
      }
    }
    this.#parts.decoder.expectRoom(tokens.length);
    return Int32Array.from(tokens);
  }

  #facts(positions: BiasPositions, fast = false): RunFacts {
    return {
      positions: positions.groups,
      reading: null,
      precision: this.precision,
      accuracyLevel: this.precision === "float32" ? null : fast ? 4 : 0,
      backend: this.#parts.backend.name,
    };
  }

  #alive(): void {
    if (this.#disposed) throw new DisposedError("model: expected one that is in use, got a disposed one");
  }
}

/** GGUF cannot say whether T5 1.0's d_model^−0.5 stands before the head. */
function headScaleFinding({ head }: ModelSpec): Finding {
  return {
    code: "head-scale",
    severity: "note",
    where: "output.weight",
    got: head.scale === 1 ? "logits as they are" : `logits times ${head.scale}`,
    expected: "logits times d_model^-0.5 in T5 1.0, as they are in 1.1, Flan, mT5 and umT5",
    why: "GGUF has no key for it: a plain MLP without a head of its own is taken for T5 1.0. llama.cpp never multiplies.",
    fix: "",
  };
}
