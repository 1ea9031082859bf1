// Export: one scaling in the words of one engine, and what that engine will compute from them. One file an engine beside
// this one, in a total table.
//
//   description, strategy ── wanted.ts ──► a table a group ── forms.ts ──► ways to say it ── an engine's file: its words
//   words ── encodings/rope/dialects ──► what the engine computes ── compare.ts ──► exact, or the nearest and its error

import { expectInteger } from "../../encodings/errors.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import { nearest } from "../../formats/nearest.ts";
import type { Strategy } from "../../models/strategy.ts";
import { exportGguf } from "./gguf.ts";
import { exportLlamaCpp } from "./llama-cpp.ts";
import { cacheMemory, latentCacheOf } from "./memory.ts";
import { exportMlx } from "./mlx.ts";
import { distinctNotes, type ExportNote, exportNote } from "./notes.ts";
import { exportOllama } from "./ollama.ts";
import { exportSglang } from "./sglang.ts";
import { exportTransformers } from "./transformers.ts";
import {
  type EngineExport,
  type ExportContext,
  type ExportOptions,
  type ExportTarget,
  exportTargets,
} from "./types.ts";
import { checkVersion } from "./versions.ts";
import { exportVllm } from "./vllm.ts";
import { lengthOfStrategy, type Wanted, wantedGroups } from "./wanted.ts";
import type { EngineWords } from "./words-of-engine.ts";

export { cacheMemory, type LatentCache } from "./memory.ts";
export { type ExportNote, type ExportNoteCode, exportNoteText } from "./notes.ts";
export { exportText, verificationText } from "./text.ts";
export {
  type CacheMemory,
  type EngineExport,
  type ExportedFile,
  type ExportedGroup,
  type ExportOptions,
  type ExportTarget,
  type ExportVerification,
  exportTargets,
} from "./types.ts";

const engines: { readonly [T in ExportTarget]: (context: ExportContext, wanted: readonly Wanted[]) => EngineWords } = {
  transformers: exportTransformers,
  vllm: exportVllm,
  sglang: exportSglang,
  "llama.cpp": exportLlamaCpp,
  gguf: exportGguf,
  mlx: exportMlx,
  ollama: exportOllama,
};

/**
 * A model's rotary scaling in the words of one engine: files, the exact command line, the key/value cache's memory, and
 * what that engine will compute from it. Where the engine has no words for the scaling, the nearest that it has, with
 * its error.
 *
 * @param model a description, as `openModel` gives
 * @param options the engine, the scaling, the length in tokens, the parsed config.json where whole files are wanted
 * @returns plain data; `verified` is null, since nothing is executed here
 * @throws RangeError for an unknown engine, a model without rotary layers, a strategy that does not fit, or a length that
 *   neither the scaling nor the file names
 * @example
 * ```ts
 * import { exportConfiguration, parseStrategy } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const config = {
 *   model_type: "llama", hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32,
 *   max_position_embeddings: 4096, rope_theta: 10000,
 * };
 * const model = describeHuggingFace(config, { name: "llama-2-7b" });
 * const made = exportConfiguration(model, { to: "llama.cpp", scaling: parseStrategy("yarn:2"), model: "model.gguf" });
 * made.exact; // => true
 * made.length; // => 8192
 * made.memory.bytes; // => 4294967296
 * made.command; // => "llama-server -m MODEL.gguf -c 8192 --rope-scaling yarn --rope-scale 2 --yarn-orig-ctx 4096 --override-kv llama.context_length=int:8192"
 * ```
 */
export function exportConfiguration(model: ModelDescription, options: ExportOptions): EngineExport {
  const { to, scaling = { kind: "as-is" } } = options;
  if (!Object.hasOwn(engines, to)) {
    const near = nearest(String(to), [...exportTargets])[0];
    throw new RangeError(
      `--to: expected one of ${exportTargets.join(", ")}, got ${JSON.stringify(to)}${near === undefined ? "" : `; nearest: ${near}`}`,
    );
  }
  if (options.length !== undefined) expectInteger("export", "length", options.length, 1);
  const version = options.engineVersion === undefined ? null : checkVersion(options.engineVersion);
  if (!model.groups.some(({ position }) => position.site === "query-key")) {
    throw new RangeError(`export: expected a model with rotary layers, got ${model.name} without any`);
  }
  const length = options.length ?? lengthOfStrategy(model, scaling);
  const wanted = wantedGroups(model, scaling, length);
  const elsewhere = model.format === "gguf" && hubEngines.has(to);
  const called = elsewhere ? "MODEL" : (options.model ?? model.name);
  const context: ExportContext = { model, options, version, length, folder: options.folder ?? ".", called };
  const words = engines[to](context, wanted);
  const notes = [...words.notes, ...lengthNotes(context, wanted)];
  if (elsewhere) {
    notes.unshift(exportNote("checkpoint-not-gguf", { engine: to }));
  }
  return {
    to,
    engine: words.engine,
    model: model.name,
    scaling: strategyText(scaling),
    length,
    trainedLength: model.trainedLength,
    files: words.files,
    patch: words.patch,
    changes: words.changes ?? null,
    commands: words.commands,
    command: words.commands.at(-1) ?? "",
    exact: words.commands.length > 0 && words.groups.every((group) => group.exact),
    nearest: words.nearest,
    groups: words.groups,
    memory: cacheMemory(model, length, options.cacheBytes, latentCacheOf(options.config)),
    notes,
    verified: null,
  };
}

const hubEngines: ReadonlySet<ExportTarget> = new Set(["transformers", "vllm", "sglang", "mlx"]);

function strategyText(strategy: Strategy): string {
  switch (strategy.kind) {
    case "short":
      return strategy.name.startsWith("dynamic-") ? strategy.name : `${strategy.name}:${strategy.factor}`;
    case "parameters":
      return JSON.stringify(strategy.value);
    default:
      return strategy.kind;
  }
}

/** A factor that does not reach the length, and what a fixed table costs. */
function lengthNotes({ length, options }: ExportContext, wanted: readonly Wanted[]): ExportNote[] {
  const notes: ExportNote[] = [];
  for (const { config } of wanted) {
    const { rope } = config;
    if (rope.ropeType !== "yarn" || rope.factor === null) continue;
    const reach = rope.factor * rope.originalMaxPositionEmbeddings;
    if (length > reach) notes.push(exportNote("factor-too-small", { factor: rope.factor, reach, length }));
  }
  const scaled = wanted.some(
    ({ changed, dependsOnLength, config }) => changed && !dependsOnLength && config.rope.ropeType === "yarn",
  );
  if (scaled && options.scaling !== undefined) {
    notes.push(exportNote("short-texts-too"));
  }
  return distinctNotes(notes);
}
