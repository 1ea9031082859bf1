// SGLang: --json-model-override-args and --context-length. YaRN reads attn_factor, which multiplies m(factor), and not
// attention_factor (python/sglang/srt/layers/rotary_embedding/yarn.py).

import { ropeDialects } from "../../encodings/rope/dialects/index.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { yarnMagnitude } from "../../encodings/rope/scaling/scaling.ts";
import { placed, ropeParametersOf, textClassOf, version4Patch } from "./hugging-face.ts";
import { exportNote } from "./notes.ts";
import { throughConfig } from "./through-config.ts";
import type { ExportContext } from "./types.ts";
import { isBefore } from "./versions.ts";
import { lengthBeforeFactor, withMscales } from "./vllm.ts";
import type { Wanted } from "./wanted.ts";
import { configJson, shellLine } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

export function exportSglang(context: ExportContext, wanted: readonly Wanted[]): EngineWords {
  const { options, version, called, length } = context;
  const text = textClassOf(context.model, options.config);
  const older = isBefore(version, "0.5.10");
  const interleaved = wanted.some(({ group }) => group.position.layout === "interleaved");
  const halfOnHub = context.model.format === "gguf";
  const through = throughConfig(context, text, wanted, {
    dialect: "sglang",
    claimed: lengthBeforeFactor,
    adapt: (config) => {
      if (config.rope.ropeType === "longrope") return interleaved && !halfOnHub ? null : withMscales(config);
      if (config.rope.ropeType === "ntk") return null;
      return withoutAttentionFactor(config);
    },
    attentionMultiplier: (config, one) => multiplierOf(config, one),
    settings: (dict, one) => {
      const multiplier = dict.rope_type === "yarn" ? multiplierOf(one.config, one) : 1;
      return multiplier === 1 ? dict : { ...dict, attn_factor: multiplier };
    },
  });
  const engine = {
    version: version ?? "0.5.23",
    readFrom: ropeDialects.sglang.engine,
  };
  const notes = [...through.notes, exportNote(older ? "for-transformers-4" : "for-transformers-5")];
  const common = { engine, files: [], patch: null, groups: through.groups, nearest: through.nearest };
  const { settings, maxPositionEmbeddings, dicts } = through;
  if (settings === null) return { ...common, commands: [], notes };
  const launch = ["python", "-m", "sglang.launch_server", "--model-path", called];
  const tail = ["--context-length", String(length)];
  // The dicts as they were adapted; nested ones keep their layer types.
  const nested = ropeParametersOf(text, settings);
  const dict = nested.rope_type === undefined ? byType(nested, through.settings!, dicts) : dicts[0]!;
  let patch: Record<string, unknown> = { max_position_embeddings: maxPositionEmbeddings, rope_parameters: dict };
  if (older) {
    const four = version4Patch(text, settings, maxPositionEmbeddings);
    if (typeof four === "string") return { ...common, commands: [], notes: [...notes, exportNote(four)] };
    const { rope_parameters: _, ...rest } = four;
    const attn = dicts[0]!.attn_factor;
    patch =
      attn === undefined ? rest : { ...rest, rope_scaling: { ...(rest.rope_scaling as object), attn_factor: attn } };
  }
  const words = [...launch, "--json-model-override-args", configJson(placed(text.place, patch)), ...tail];
  return { ...common, commands: [shellLine(words)], notes };
}

function byType(
  nested: Record<string, unknown>,
  settings: NonNullable<ReturnType<typeof throughConfig>["settings"]>,
  dicts: readonly Record<string, unknown>[],
): Record<string, unknown> {
  const out: Record<string, unknown> = { ...nested };
  settings.forEach(({ group }, i) => {
    out[group.layerType ?? "full_attention"] = dicts[i]!;
  });
  return out;
}

function withoutAttentionFactor(config: RopeConfig): RopeConfig {
  const { rope } = config;
  if (rope.ropeType !== "yarn" || (rope.attentionFactor ?? null) === null) return config;
  const { attentionFactor: _, ...rest } = rope;
  return { ...config, rope: rest };
}

/** attn_factor: what is asked for over m(factor). */
function multiplierOf({ rope }: RopeConfig, { attentionFactor, config }: Wanted): number {
  if (rope.ropeType !== "yarn" || config.rope.ropeType !== "yarn" || rope.factor === null) return 1;
  if ((config.rope.attentionFactor ?? null) === null) return 1;
  const own =
    rope.mscale && rope.mscaleAllDim
      ? yarnMagnitude(rope.factor, rope.mscale) / yarnMagnitude(rope.factor, rope.mscaleAllDim)
      : yarnMagnitude(rope.factor);
  return attentionFactor / own;
}
