// mlx-lm: a config.json in the model's folder. Argument classes read rope_theta and rope_scaling, some rope_parameters;
// each drops the keys that it does not know, so both are written.

import { ropeDialects } from "../../encodings/rope/dialects/index.ts";
import type { RopeConfig } from "../../encodings/rope/scaling/parameters.ts";
import { mergePatch, placed, textClassOf, version4Patch, version5Patch } from "./hugging-face.ts";
import { exportNote } from "./notes.ts";
import { throughConfig, unsupportedGroup } from "./through-config.ts";
import { merge } from "./transformers.ts";
import type { ExportContext } from "./types.ts";
import type { Wanted } from "./wanted.ts";
import { shellLine, wholeConfigJson } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

export function exportMlx(context: ExportContext, wanted: readonly Wanted[]): EngineWords {
  const { options, version, called, folder } = context;
  const text = textClassOf(context.model, options.config);
  const through = throughConfig(context, text, wanted, { dialect: "mlx-lm", adapt: withOriginal });
  const engine = { version: version ?? "0.32.2", readFrom: ropeDialects["mlx-lm"].engine };
  const notes = [...through.notes];
  const { settings, maxPositionEmbeddings } = through;
  // What reaches the engine by another spelling is written so: no need to say it.
  const groups = through.groups.map((group) => ({
    ...group,
    notes: group.notes.filter((note) => note.code !== "reached-by"),
  }));
  const none = { engine, files: [], patch: null, commands: [], nearest: null };
  if (settings === null) return { ...none, groups, notes };
  const four = version4Patch(text, settings, maxPositionEmbeddings);
  const five = version5Patch(text, settings, maxPositionEmbeddings);
  if (typeof four === "string") {
    notes.push(exportNote("parameters-alone"));
  }
  const patch = typeof four === "string" ? five : both(four, five);
  const whole = options.config !== undefined;
  const inPlace = placed(text.place, patch);
  const name = whole ? "config.json" : "config-changes.json";
  const content = wholeConfigJson(whole ? mergePatch(options.config!, inPlace) : inPlace, options.configText);
  const file = `${folder}/${name}`;
  const commands = [
    ...(whole
      ? [
          shellLine(["cp", `${called}/config.json`, `${called}/config.json.before`]),
          shellLine(["cp", file, `${called}/config.json`]),
        ]
      : [merge(called, file)]),
    shellLine(["mlx_lm.generate", "--model", called, "--prompt", "Once upon a time"]),
  ];
  return {
    ...none,
    files: [{ path: name, content }],
    changes: inPlace,
    commands,
    groups: groups.length === 0 ? wanted.map((one) => unsupportedGroup(one, exportNote("nothing-written"))) : groups,
    nearest: through.nearest,
    notes,
  };
}

/** Version 4's keys, and version 5's dict beside them. */
function both(four: Record<string, unknown>, five: Record<string, unknown>): Record<string, unknown> {
  return { ...five, ...four, rope_parameters: five.rope_parameters };
}

/** SuScaledRoPE computes its magnitude from the two lengths: equal ones give 1. */
function withOriginal(config: RopeConfig): RopeConfig {
  const { rope } = config;
  if (rope.ropeType !== "longrope" || rope.attentionFactor !== 1) return config;
  return { ...config, rope: { ...rope, originalMaxPositionEmbeddings: config.maxPositionEmbeddings } };
}
