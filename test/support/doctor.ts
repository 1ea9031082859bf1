// Inputs of the doctor for tests: a record's broken case, the corpus of well-known configurations, damaged copies.

import { readdirSync, readFileSync } from "node:fs";
import type { Broken, DiagnoseInput } from "../../src/advice/doctor/types.ts";
import { memorySource } from "../../src/formats/bytes/index.ts";
import { describeGguf, readGguf } from "../../src/formats/gguf/index.ts";
import { type Entry, writeGguf } from "./gguf-writer.ts";

/** What diagnose is given for a broken case. */
export async function inputOf(broken: Broken): Promise<DiagnoseInput> {
  const { config, gguf, tensors, ...rest } = broken;
  const model =
    gguf === undefined
      ? null
      : describeGguf(
          await readGguf(
            memorySource("model.gguf", writeGguf({ metadata: gguf as readonly Entry[] })),
            async (file) => {
              throw new Error(`test: expected one file, got ${file}`);
            },
          ),
        );
  return {
    ...rest,
    ...(config === undefined ? {} : { config: JSON.stringify(config, null, 2) }),
    ...(model === null ? {} : { model }),
    ...(tensors === undefined ? {} : { tensors: new Map(Object.entries(tensors)) }),
  };
}

const root = new URL("../../", import.meta.url);

/** Configurations of well-known models by name, as text. */
export function knownConfigurations(): Map<string, string> {
  const known = new Map<string, string>();
  const examples = new URL("examples/configs/", root);
  for (const file of readdirSync(examples))
    known.set(file.replace(/\.json$/, ""), readFileSync(new URL(file, examples), "utf8"));
  // One a line: its text as it stands, 4.0 and all.
  const lines = readFileSync(new URL("test/fixtures/configs/known-models.json", root), "utf8").split("\n");
  for (const line of lines) {
    const match = /^"([^"]+)": (\{.*\}),?$/.exec(line);
    if (match !== null) known.set(match[1]!, match[2]!);
  }
  return known;
}

/** mulberry32: damaged copies must be the same on every machine. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const hostileValues: readonly unknown[] = [
  null,
  0,
  -1,
  1,
  2,
  0.5,
  -0.25,
  3,
  7,
  1e308,
  1e-308,
  2 ** 53,
  4294967296,
  "",
  "8",
  "1e6",
  "yarn",
  "full_attention",
  true,
  false,
  [],
  [1],
  [0, 1, 2],
  {},
  { a: 1 },
  { rope_type: "yarn", factor: 4 },
  { full_attention: null },
  [[]],
  "__proto__",
  "\u0000",
  "\ud800",
  "x".repeat(300),
];
const hostileKeys: readonly string[] = [
  "rope_scaling",
  "rope_parameters",
  "rope_theta",
  "rope_type",
  "type",
  "factor",
  "original_max_position_embeddings",
  "max_position_embeddings",
  "head_dim",
  "layer_types",
  "sliding_window",
  "partial_rotary_factor",
  "model_type",
  "text_config",
  "no_rope_layers",
  "short_factor",
  "long_factor",
  "mscale",
  "truncate",
  "rope_typ",
  "__proto__",
  "constructor",
  "toString",
  "full_attention",
  "sliding_attention",
  "alibi",
  "attn_config",
  "rope_scalling",
  "a/b~c",
];

/** A copy of a configuration with some values replaced, keys added, taken away or moved. */
export function damaged(config: unknown, random: () => number): unknown {
  const copy = structuredClone(config) as Record<string, unknown>;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  for (let i = 0, n = 1 + Math.floor(random() * 4); i < n; i++) {
    const objects: Record<string, unknown>[] = [copy];
    for (const value of Object.values(copy))
      if (isRecord(value)) objects.push(value, ...Object.values(value).filter(isRecord));
    const at = pick(objects);
    const keys = Object.keys(at);
    const key = keys.length > 0 && random() < 0.6 ? pick(keys) : pick(hostileKeys);
    const action = random();
    if (action < 0.2) delete at[key];
    else if (action < 0.3) define(at, pick(hostileKeys), at[key]);
    else define(at, key, structuredClone(pick(hostileValues)));
  }
  return copy;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** "__proto__" as a key of its own, as JSON can have it. */
function define(at: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(at, key, { value, enumerable: true, configurable: true, writable: true });
}

const words = [
  "vllm serve m",
  "python -m sglang.launch_server --model-path m",
  "llama-server -m m.gguf",
  "mlx_lm.server --model m",
  "FROM ./m.gguf\nPARAMETER num_ctx 8192",
];
const rest = [
  "--max-model-len 131072",
  "--max-model-len=-1",
  "--max-model-len x",
  "-c 0",
  "-c 32768",
  "--rope-scaling yarn",
  "--rope-scale 0",
  "--rope-scale 1e308",
  "--rope-freq-scale -1",
  "--rope-freq-base 0",
  "--yarn-orig-ctx 0",
  "--context-length 9e99",
  "-np 0",
  `--hf-overrides '{"rope_parameters":{"rope_type":"yarn","factor":4}}'`,
  "--hf-overrides '{}'",
  "--hf-overrides '[1]'",
  "--hf-overrides.rope_parameters.factor 4",
  `--json-model-override-args '{"rope_scaling":{"factor":"4"}}'`,
  "--rope-theta 0",
  `--rope-scaling '{"type":"yarn"}'`,
  "'",
  '"',
  "\\",
  "--",
  "-",
  "=",
  "--=3",
  "--hf-overrides.__proto__.a 1",
  "&& rm x",
];

/** A command line that may mean anything. */
export function damagedCommand(random: () => number): string {
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)]!;
  const parts = [pick(words)];
  for (let i = 0, n = Math.floor(random() * 5); i < n; i++) parts.push(pick(rest));
  return parts.join(" ");
}
