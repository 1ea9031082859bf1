// vLLM: --hf-overrides with rope_parameters and --max-model-len. 0.11.1 reads version 4's keys there; before it are
// --rope-scaling and --rope-theta, which were removed then (vllm-project/vllm#28006).

import { ropeDialects } from "../../encodings/rope/dialects/index.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { placed, ropeParametersOf, textClassOf, version4Patch } from "./hugging-face.ts";
import { exportNote } from "./notes.ts";
import { throughConfig } from "./through-config.ts";
import type { ExportContext } from "./types.ts";
import { isBefore } from "./versions.ts";
import type { Wanted } from "./wanted.ts";
import { configJson, shellLine } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

/** The length that linear's factor multiplies: writing the longer one would apply the factor twice. */
export function lengthBeforeFactor(config: RopeConfig, length: number): number | null {
  return config.rope.ropeType === "linear" ? Math.ceil(length / config.rope.factor) : null;
}

/** longrope's magnitude is computed from the two lengths, unless the two keys of Phi-3.5-MoE say it. */
export function withMscales(config: RopeConfig): RopeConfig {
  const { rope } = config;
  if (rope.ropeType !== "longrope" || (rope.attentionFactor ?? null) === null) return config;
  const { attentionFactor: magnitude } = rope;
  return {
    ...config,
    rope: { ...rope, shortMscale: rope.shortMscale ?? magnitude!, longMscale: rope.longMscale ?? magnitude! },
  };
}

export function exportVllm(context: ExportContext, wanted: readonly Wanted[]): EngineWords {
  const { options, version, called, length } = context;
  const text = textClassOf(context.model, options.config);
  const older = isBefore(version, "0.12");
  const flags = isBefore(version, "0.11.1");
  const interleaved = wanted.some(({ group }) => group.position.layout === "interleaved");
  const halfOnHub = context.model.format === "gguf";
  const through = throughConfig(context, text, wanted, {
    dialect: older ? "vllm-0.11" : "vllm",
    claimed: lengthBeforeFactor,
    // Phi3LongRoPEScaledRotaryEmbedding pairs channels in halves alone.
    adapt: (config) => (config.rope.ropeType === "longrope" && interleaved && !halfOnHub ? null : withMscales(config)),
  });
  const engine = { version: version ?? "0.33.0", readFrom: ropeDialects[older ? "vllm-0.11" : "vllm"].engine };
  const notes = [...through.notes];
  const common = { engine, files: [], patch: null, groups: through.groups, nearest: through.nearest };
  const { settings, maxPositionEmbeddings } = through;
  if (settings === null) return { ...common, commands: [], notes };
  const serve = ["vllm", "serve", called];
  const tail = ["--max-model-len", String(length)];
  if (!older) {
    const overrides = placed(text.place, {
      max_position_embeddings: maxPositionEmbeddings,
      rope_parameters: ropeParametersOf(text, settings),
    });
    return { ...common, commands: [shellLine([...serve, "--hf-overrides", configJson(overrides), ...tail])], notes };
  }
  const patch = version4Patch(text, settings, maxPositionEmbeddings);
  if (typeof patch === "string") return { ...common, commands: [], notes: [...notes, exportNote(patch)] };
  if (!flags) {
    const { rope_parameters: _, ...overrides } = patch;
    const words = [...serve, "--hf-overrides", configJson(placed(text.place, overrides)), ...tail];
    return { ...common, commands: [shellLine(words)], notes };
  }
  const { rope_scaling: scaling, rope_theta: theta, max_position_embeddings: max } = patch;
  const words = [
    ...serve,
    ...(scaling === null ? [] : ["--rope-scaling", configJson(scaling)]),
    ...(theta === undefined || theta === wanted[0]!.own.rope.ropeTheta ? [] : ["--rope-theta", String(theta)]),
    ...(max === context.model.maxPositionEmbeddings
      ? []
      : ["--hf-overrides", configJson({ max_position_embeddings: max })]),
    ...tail,
  ];
  return { ...common, commands: [shellLine(words)], notes };
}
