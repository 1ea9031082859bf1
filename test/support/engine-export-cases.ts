// Exports whose configurations reference/exports.py gives to transformers: known models under every kind of scaling.

import { readFileSync } from "node:fs";
import { type EngineExport, exportConfiguration, parseStrategy } from "../../src/advice/index.ts";
import { describeHuggingFace } from "../../src/formats/index.ts";

const table = JSON.stringify({
  rope_type: "table",
  inverse_frequencies: Array.from({ length: 64 }, (_, i) => Number((10000 ** (-i / 64) / (1 + i / 16)).toPrecision(8))),
  attention_factor: 1.1,
});

const cases: readonly (readonly [config: string, ...scalings: string[]])[] = [
  [
    "llama-2-7b",
    "yarn:4",
    "linear:4",
    "ntk:4",
    "dynamic:4",
    "llama3:8",
    "ntk-by-parts:4",
    "gradient:4",
    "none",
    "drop",
    '{"rope_type":"yarn","factor":4,"attention_factor":1.2,"beta_fast":16,"beta_slow":2}',
    '{"rope_type":"yarn","factor":4,"truncate":false,"mscale":0.707,"mscale_all_dim":0.5}',
    table,
  ],
  ["llama-3.1-8b", "as-is", "none", "yarn:4", "linear:2"],
  ["qwen2.5-7b", "yarn:4", "ntk:8"],
  ["qwen3-8b-yarn", "as-is", "yarn:2"],
  ["gemma-3-27b", "as-is", "yarn:2", "none"],
  ["gemma-3-1b", "yarn:4"],
  ["gemma-4-like", "as-is", "linear:4"],
  ["phi-3.5-mini", "as-is", "yarn:8", "linear:4"],
  ["gpt-oss-20b", "as-is", "none"],
  ["glm-4-9b", "yarn:4"],
  ["gpt-neox-20b", "ntk:4", "yarn:4"],
  ["pythia-160m", "linear:4"],
  ["command-a", "yarn:2"],
  ["smollm3-3b", "yarn:2"],
  ["smollm2-135m", "yarn:2"],
  ["deepseek-v3", "as-is"],
  ["ministral-3-8b", "as-is"],
  ["together-llama-2-7b-32k", "as-is", "linear:16"],
  ["internlm3-8b", "as-is"],
  ["qwen2.5-vl-7b", "yarn:4"],
  ["llama-4-scout", "as-is"],
];

export interface ExportCase {
  readonly name: string;
  readonly made: EngineExport;
}

export function engineExportCases(): ExportCase[] {
  return cases.flatMap(([name, ...scalings]) => {
    const configText = readFileSync(new URL(`../../examples/configs/${name}.json`, import.meta.url), "utf8");
    const config = JSON.parse(configText);
    const model = describeHuggingFace(config, { name });
    return scalings.map((scaling) => ({
      name: `${name} ${scaling === table ? "table" : scaling}`,
      made: exportConfiguration(model, { to: "transformers", scaling: parseStrategy(scaling), config, configText }),
    }));
  });
}
