// Every family that can be run. A new one is a line here (CONTRIBUTING.md, "Add a model family").

import { FormatError } from "../../formats/bytes/format-error.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import { nearest } from "../../formats/nearest.ts";
import type { ModelFamily } from "../family.ts";
import { bloom } from "./bloom.ts";
import { cohere, cohere2 } from "./cohere2.ts";
import { falcon } from "./falcon.ts";
import { gemma, gemma2, gemma3 } from "./gemma.ts";
import { gptNeox } from "./gpt-neox.ts";
import { gpt2 } from "./gpt2.ts";
import { llama } from "./llama.ts";
import { longhand } from "./longhand.ts";
import { ministral, ministral3 } from "./ministral3.ts";
import { mpt } from "./mpt.ts";
import { olmo2 } from "./olmo2.ts";
import { phi } from "./phi.ts";
import { phi3 } from "./phi3.ts";
import { qwen2, qwen3 } from "./qwen.ts";
import { smollm3 } from "./smollm3.ts";
import { stablelm } from "./stablelm.ts";
import { starcoder2 } from "./starcoder2.ts";
import { t5 } from "./t5.ts";

export const modelFamilies: readonly ModelFamily[] = [
  llama,
  qwen2,
  qwen3,
  ministral,
  ministral3,
  smollm3,
  gemma,
  gemma2,
  gemma3,
  olmo2,
  cohere,
  cohere2,
  phi3,
  phi,
  starcoder2,
  stablelm,
  falcon,
  gpt2,
  gptNeox,
  bloom,
  mpt,
  t5,
  longhand,
];

const nearestByPosition: Readonly<Record<string, string>> = {
  rope: "llama",
  nope: "llama",
  learned: "gpt2",
  sinusoidal: "gpt2",
  alibi: "bloom",
  t5: "t5",
  kerple: "longhand",
  fire: "longhand",
};

/**
 * The family that reads a model_type (Hugging Face) or an architecture (GGUF).
 *
 * @throws FormatError naming the type and the nearest supported one
 */
export function familyOf(description: ModelDescription, modelType: string): ModelFamily {
  const { format, name: file } = description;
  if (format === "llama2.c") return llama;
  const typesOf = (family: ModelFamily): readonly string[] => (format === "gguf" ? family.gguf : family.huggingFace);
  const found = modelFamilies.find((family) => typesOf(family).includes(modelType));
  if (found !== undefined) return found;
  const known = modelFamilies.flatMap(typesOf);
  // A name that resembles none: a model whose positions act alike is nearest.
  const kind = description.groups[0]?.position.kind ?? "rope";
  const near = nearest(modelType, known)[0] ?? known.find((type) => type === nearestByPosition[kind]) ?? "llama";
  const key = format === "gguf" ? "general.architecture" : "model_type";
  throw new FormatError(
    file,
    `expected ${key} to be a family that can be run (${known.join(", ")}), got ${JSON.stringify(modelType)}; ` +
      `nearest: ${near}; its positions can still be read: longhand inspect`,
  );
}
