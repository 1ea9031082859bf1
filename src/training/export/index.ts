// A trained model as a folder that transformers and this library load: configuration, weights, tokenizer. The class is
// chosen by blocks and encodings (forms.ts); what fits none is written in the project's own form (docs/longhand-form.md).

import type { LogitTemperature } from "../../encodings/logit-temperature.ts";
import { type ByteTokenizerOptions, byteTokenizer, byteTokenizerFiles } from "../../formats/tokenizers/index.ts";
import { fromNumbers, type Tensor, toNumbers } from "../../tensor/index.ts";
import { encodeSafetensors } from "../checkpoint.ts";
import type { TrainingEncoding } from "../encodings.ts";
import type { TrainableSpec } from "../model.ts";
import { chooseForm, type ExportForm } from "./forms.ts";
import { type PositionEntry, positionEntries } from "./positions.ts";
import { checkpointTensors, type ExportDtype } from "./tensors.ts";

export type { ExportForm } from "./forms.ts";
export type { ExportDtype } from "./tensors.ts";

export interface ExportOptions {
  readonly spec: TrainableSpec;
  /** One a group of the spec: what the weights are to be run with. After a drop, none or the dropped rotation. */
  readonly encodings: readonly TrainingEncoding[];
  /** By our names, as the trainer gives them. */
  readonly weights: ReadonlyMap<string, Tensor>;
  /** Tokens of a training sequence. */
  readonly trainedLength: number;
  /** f32 when absent. */
  readonly dtype?: ExportDtype;
  /** Of a vocabulary of bytes; no tokenizer's files when absent. */
  readonly tokenizer?: ByteTokenizerOptions;
  /** What a drop fitted (kind "drope"): kept in a key of our own, which our loader follows and transformers ignores. */
  readonly logitTemperature?: LogitTemperature;
  /** The own form even where a class of transformers fits. */
  readonly form?: "longhand";
}

/**
 * The files of an exported model, by name: config.json, model.safetensors and, for a vocabulary of bytes, tokenizer.json
 * and tokenizer_config.json.
 *
 * | blocks | encodings | class |
 * | --- | --- | --- |
 * | Llama | RoPE, any scaling that transformers has | LlamaForCausalLM; with normalised heads Qwen3ForCausalLM |
 * | Llama | none, dropped RoPE, or layers of RoPE and layers without | SmolLM3ForCausalLM |
 * | MPT, BLOOM | ALiBi | MptForCausalLM, BloomForCausalLM |
 * | GPT-2 | a learned table | GPT2LMHeadModel |
 * | any of these | anything else, sliding windows | the own form, which this library alone loads |
 *
 * @throws RangeError for blocks or encodings that no form has, naming those that can be; for weights that are missing,
 *   unknown or too large for the dtype; for a vocabulary smaller than the tokenizer's
 * @example
 * ```ts
 * import { alibi } from "longhand/encodings";
 * import { exportForm, mptBlocks, smallDecoder } from "longhand/training";
 * const spec = smallDecoder(mptBlocks({ vocabSize: 256, hiddenSize: 64, numLayers: 2, numHeads: 4 }));
 * exportForm({ spec, encodings: [alibi({ numHeads: 4 })], trainedLength: 256 }); // => "mpt"
 * ```
 */
export function exportModel(options: ExportOptions): Map<string, Uint8Array<ArrayBuffer>> {
  const { dtype = "f32", tokenizer } = options;
  const { family, config, entries, form } = formOf(options);
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const bytes = tokenizer === undefined ? null : byteTokenizer(tokenizer);
  if (bytes !== null && bytes.vocabSize > options.spec.vocabSize) {
    throw new RangeError(
      `exportModel: expected a vocabulary of at least ${bytes.vocabSize} for the tokenizer, got ${options.spec.vocabSize}; ` +
        "name fewer special tokens",
    );
  }
  files.set(
    "config.json",
    json({
      ...config,
      dtype: { f32: "float32", f16: "float16", bf16: "bfloat16" }[dtype],
      // null too: the classes' own defaults are ids of another vocabulary.
      bos_token_id: bytes?.bosToken ?? null,
      eos_token_id: bytes?.eosToken ?? null,
      pad_token_id: bytes?.padToken ?? null,
    }),
  );
  const weights = form === "longhand" ? ownWeights(options.weights, entries) : options.weights;
  const map = family.names.huggingFace;
  const metadata = { format: "pt" };
  files.set("model.safetensors", encodeSafetensors(checkpointTensors(map, options.spec, weights, dtype), metadata));
  if (tokenizer !== undefined) {
    const { tokenizer: document, config: beside } = byteTokenizerFiles(tokenizer);
    files.set("tokenizer.json", json(document));
    files.set("tokenizer_config.json", json({ ...beside, model_max_length: options.trainedLength }));
  }
  return files;
}

/** Which form a model would be exported in. @throws as `exportModel` */
export function exportForm(
  options: Pick<ExportOptions, "spec" | "encodings" | "trainedLength" | "logitTemperature" | "form">,
): ExportForm {
  return formOf(options).form;
}

function formOf(options: Pick<ExportOptions, "spec" | "encodings" | "trainedLength" | "logitTemperature" | "form">) {
  const { spec, encodings, trainedLength, logitTemperature = null } = options;
  if (!Number.isInteger(trainedLength) || trainedLength < 1) {
    throw new RangeError(`exportModel: expected a trainedLength of at least 1, got ${trainedLength}`);
  }
  const entries = positionEntries(spec, encodings);
  return { ...chooseForm({ spec, entries, trainedLength, temperature: logitTemperature }, options.form), entries };
}

/** What keeps KERPLE's and FIRE's numbers in range while they are trained is done once, here; what layers share stands
 *  in the first layer of their entry. */
function ownWeights(weights: ReadonlyMap<string, Tensor>, entries: readonly PositionEntry[]): Map<string, Tensor> {
  const out = new Map([...weights].filter(([name]) => !/\.(relativeBias|kerple|fire)\./.test(name)));
  const limits: Readonly<Record<string, (x: number, power: boolean) => number>> = {
    "kerple.r1": (x) => Math.max(x, Math.fround(0.01)),
    "kerple.r2": (x, power) => Math.min(Math.max(x, Math.fround(0.01)), power ? 2 : Number.POSITIVE_INFINITY),
    "fire.c": Math.abs,
    "fire.threshold": Math.abs,
  };
  for (const { encoding, layers, trainedLayer } of entries) {
    if (encoding.type !== "t5" && encoding.type !== "kerple" && encoding.type !== "fire") continue;
    const power = encoding.type === "kerple" && encoding.variant === "power";
    const names = {
      t5: ["relativeBias.weight"],
      kerple: ["kerple.r1", "kerple.r2"],
      fire: ["c", "threshold", ...["0", "1"].flatMap((at) => [`layers.${at}.weight`, `layers.${at}.bias`])].map(
        (name) => `fire.${name}`,
      ),
    }[encoding.type];
    for (const layer of encoding.everyLayer ? layers : [layers[0]!]) {
      for (const name of names) {
        const from = `layers.${encoding.everyLayer ? layer : trainedLayer}.${name}`;
        const weight = weights.get(from);
        if (weight === undefined) throw new RangeError(`exportModel: expected a weight ${from}, got none`);
        const limit = limits[name];
        out.set(
          `layers.${layer}.${name}`,
          limit === undefined
            ? weight
            : (fromNumbers(
                "f32",
                weight.shape,
                Float64Array.from(toNumbers(weight), (x) => limit(x, power)),
              ) as Tensor),
        );
      }
    }
  }
  return out;
}

function json(value: unknown): Uint8Array<ArrayBuffer> {
  // Lists of numbers on a line.
  const text = JSON.stringify(value, null, 2).replace(/\[\s+([-\d.,e\s]+?)\s+\]/g, (_, list: string) => {
    return `[${list.replace(/\s+/g, " ")}]`;
  });
  return new TextEncoder().encode(`${text}\n`);
}
