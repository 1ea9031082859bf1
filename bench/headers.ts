// Time and peak memory of reading the headers of a 70B checkpoint: 30 and 162 sparse safetensors shards (141 GB), one
// sparse GGUF of about 40 GB with a vocabulary of 128k. The readers are bundled first, as they ship, and each run is a
// process of its own. With PYTHON set to a Python that has safetensors and gguf, their readers run interleaved.
//
//   node --import ./scripts/ts-hook.mjs bench/headers.ts [repetitions=5]
//   PYTHON=python3 node --import ./scripts/ts-hook.mjs bench/headers.ts
//
// Prints a table and ends with one JSON line. Exit 1 past the budget: 1 s and 200 MB.

import { spawnSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { ByteWriter, utf8 } from "../test/support/byte-writer.ts";
import { type Entry, ggufDataBytes, type WrittenTensor, writeGguf } from "../test/support/gguf-writer.ts";

const repetitions = Number(process.argv[2] ?? 5);
const python = process.env.PYTHON;
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "longhand-headers-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

// Llama 3.1 70B
const shape = { layers: 80, hidden: 8192, keyValue: 1024, wide: 28672, vocab: 128_256 };
const { layers, hidden, keyValue, wide, vocab } = shape;
/** Name in Hugging Face's and in GGUF's form, rows, columns (0: a vector). */
const weights: [string, string, number, number][] = [
  ["model.embed_tokens.weight", "token_embd.weight", vocab, hidden],
  ...Array.from({ length: layers }, (_, i): [string, string, number, number][] => {
    const at = `model.layers.${i}`;
    return [
      [`${at}.input_layernorm.weight`, `blk.${i}.attn_norm.weight`, hidden, 0],
      [`${at}.self_attn.q_proj.weight`, `blk.${i}.attn_q.weight`, hidden, hidden],
      [`${at}.self_attn.k_proj.weight`, `blk.${i}.attn_k.weight`, keyValue, hidden],
      [`${at}.self_attn.v_proj.weight`, `blk.${i}.attn_v.weight`, keyValue, hidden],
      [`${at}.self_attn.o_proj.weight`, `blk.${i}.attn_output.weight`, hidden, hidden],
      [`${at}.post_attention_layernorm.weight`, `blk.${i}.ffn_norm.weight`, hidden, 0],
      [`${at}.mlp.gate_proj.weight`, `blk.${i}.ffn_gate.weight`, wide, hidden],
      [`${at}.mlp.up_proj.weight`, `blk.${i}.ffn_up.weight`, wide, hidden],
      [`${at}.mlp.down_proj.weight`, `blk.${i}.ffn_down.weight`, hidden, wide],
    ];
  }).flat(),
  ["model.norm.weight", "output_norm.weight", hidden, 0],
  ["lm_head.weight", "output.weight", vocab, hidden],
];
const parameters = weights.reduce((sum, [, , rows, columns]) => sum + rows * (columns || 1), 0);

function sparse(path: string, header: Uint8Array, size: number): void {
  const file = openSync(path, "w");
  writeSync(file, header);
  ftruncateSync(file, size);
  closeSync(file);
}

function safetensorsFolder(shards: number): string {
  const path = join(folder, `shards-${shards}`);
  mkdirSync(path);
  const weightMap: Record<string, string> = {};
  const perShard = Math.ceil(weights.length / shards);
  for (let s = 0; s < shards; s++) {
    const file = `model-${String(s + 1).padStart(5, "0")}-of-${String(shards).padStart(5, "0")}.safetensors`;
    const entries: Record<string, unknown> = { __metadata__: { format: "pt" } };
    let offset = 0;
    for (const [name, , rows, columns] of weights.slice(s * perShard, (s + 1) * perShard)) {
      const bytes = 2 * rows * (columns || 1);
      entries[name] = {
        dtype: "BF16",
        shape: columns === 0 ? [rows] : [rows, columns],
        data_offsets: [offset, offset + bytes],
      };
      weightMap[name] = file;
      offset += bytes;
    }
    const json = utf8(JSON.stringify(entries));
    sparse(join(path, file), new ByteWriter().u64(json.length).bytes(json).done(), 8 + json.length + offset);
  }
  writeFileSync(
    join(path, "model.safetensors.index.json"),
    JSON.stringify({ metadata: { total_size: 2 * parameters }, weight_map: weightMap }),
  );
  return path;
}

function ggufFile(): string {
  const words = Array.from({ length: vocab }, (_, i) => `Ġtoken${i}`);
  const metadata: Entry[] = [
    ["general.architecture", "string", "llama"],
    ["general.name", "string", "Llama 3.1 70B"],
    ["llama.block_count", "u32", layers],
    ["llama.context_length", "u32", 131_072],
    ["llama.embedding_length", "u32", hidden],
    ["llama.feed_forward_length", "u32", wide],
    ["llama.attention.head_count", "u32", 64],
    ["llama.attention.head_count_kv", "u32", 8],
    ["llama.rope.freq_base", "f32", 500_000],
    ["llama.rope.dimension_count", "u32", 128],
    ["tokenizer.ggml.model", "string", "gpt2"],
    ["tokenizer.ggml.tokens", "array", { of: "string", values: words }],
    ["tokenizer.ggml.token_type", "array", { of: "i32", values: new Array(vocab).fill(1) }],
    [
      "tokenizer.ggml.merges",
      "array",
      { of: "string", values: Array.from({ length: 280_147 }, (_, i) => `Ġto ken${i}`) },
    ],
  ];
  // Q4_K: 256 weights in 144 bytes; vectors stay float32.
  const tensors = weights.map(
    ([, name, rows, columns]): WrittenTensor =>
      columns === 0
        ? { name, dimensions: [rows], type: 0, data: 4 * rows }
        : { name, dimensions: [columns, rows], type: 12, data: ((rows * columns) / 256) * 144 },
  );
  const spec = { metadata, tensors, headerOnly: true };
  const header = writeGguf(spec);
  const path = join(folder, "llama-70b-q4_k.gguf");
  sparse(path, header, header.length + ggufDataBytes(spec));
  return path;
}

// The child: our readers alone, as they ship.
writeFileSync(
  join(folder, "child.ts"),
  `import { readFileSync } from "node:fs";
import { describeGguf, openGguf } from ${JSON.stringify(join(root, "src/formats/gguf/index.ts"))};
import { readSafetensorsFolder } from ${JSON.stringify(join(root, "src/formats/safetensors/index.ts"))};
const path = process.argv[2];
const start = performance.now();
const header = path.endsWith(".gguf") ? await openGguf(path) : await readSafetensorsFolder(path);
if (path.endsWith(".gguf")) describeGguf(header);
const seconds = (performance.now() - start) / 1000;
const { tensors, numParameters } = header;
// Not maxRSS: a child's starts at its parent's.
let peakBytes = process.memoryUsage().rss;
try {
  peakBytes = 1024 * Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
} catch {}
console.log(JSON.stringify({ seconds, peakBytes, tensors: tensors.size, parameters: numParameters }));
`,
);
await build({
  configFile: false,
  root: folder,
  logLevel: "error",
  build: { ssr: join(folder, "child.ts"), outDir: join(folder, "out"), target: "node20" },
});

const pythonChild = `
import json, math, os, re, sys, time
path = sys.argv[1]
if path.endswith(".gguf"):
    from gguf import GGUFReader
    start = time.perf_counter()
    reader = GGUFReader(path)
    sizes = [int(t.n_elements) for t in reader.tensors]
else:
    from safetensors import safe_open
    start = time.perf_counter()
    with open(os.path.join(path, "model.safetensors.index.json")) as f:
        index = json.load(f)
    sizes = []
    for name in sorted(set(index["weight_map"].values())):
        with safe_open(os.path.join(path, name), "np") as f:
            sizes += [math.prod(f.get_slice(key).get_shape()) for key in f.keys()]
seconds = time.perf_counter() - start
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
print(json.dumps({"seconds": seconds, "peakBytes": peak, "tensors": len(sizes), "parameters": sum(sizes)}))
`;

interface Sample {
  readonly seconds: number;
  readonly peakBytes: number;
  readonly tensors: number;
  readonly parameters: number;
  /** The whole process, start-up included. */
  readonly processSeconds: number;
}

function measure(command: string, args: readonly string[]): Sample {
  const start = performance.now();
  const run = spawnSync(command, args, { encoding: "utf8" });
  if (run.status !== 0) throw new Error(`${command} failed: ${run.stderr}`);
  const sample = JSON.parse(run.stdout) as Omit<Sample, "processSeconds">;
  if (sample.parameters !== parameters || sample.tensors !== weights.length) {
    throw new Error(`${command}: expected ${weights.length} tensors, ${parameters} parameters, got ${run.stdout}`);
  }
  return { ...sample, processSeconds: (performance.now() - start) / 1000 };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
const rows: Record<string, unknown>[] = [];
let within = true;
console.log(`${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, ${repetitions} interleaved repetitions`);
console.log("checkpoint             reader          header s   process s    peak MB");
for (const [label, path] of [
  ["safetensors, 30 files", safetensorsFolder(30)],
  ["safetensors, 162 files", safetensorsFolder(162)],
  ["gguf, 128k words", ggufFile()],
] as const) {
  const ours: Sample[] = [];
  const theirs: Sample[] = [];
  for (let i = 0; i < repetitions; i++) {
    ours.push(measure(process.execPath, [join(folder, "out", "child.mjs"), path]));
    if (python !== undefined) theirs.push(measure(python, ["-c", pythonChild, path]));
  }
  for (const [reader, samples] of [
    ["longhand", ours],
    ["python", theirs],
  ] as const) {
    if (samples.length === 0) continue;
    const seconds = median(samples.map((one) => one.seconds));
    const processSeconds = median(samples.map((one) => one.processSeconds));
    const peakMB = median(samples.map((one) => one.peakBytes)) / 1e6;
    console.log(
      `${label.padEnd(23)}${reader.padEnd(12)}${seconds.toFixed(3).padStart(12)}` +
        `${processSeconds.toFixed(3).padStart(12)}${peakMB.toFixed(1).padStart(11)}`,
    );
    rows.push({ checkpoint: label, reader, seconds, processSeconds, peakMB });
    if (reader === "longhand" && (processSeconds > 1 || peakMB > 200)) within = false;
  }
}
console.log(JSON.stringify({ bench: "headers", parameters, tensors: weights.length, repetitions, rows }));
process.exitCode = within ? 0 : 1;
