// Prefill, scoring, decode, load and memory of a GGUF model, side by side with llama.cpp and torch: one run, the sides in
// turn, the same token ids, the same number of threads.
//
//   node --import ./scripts/ts-hook.mjs bench/engine.ts MODEL.gguf [--lengths 512,2048,8192] [--rounds 3] [--threads 2]
//        [--decode 64] [--memory 32768] [--float32]
//
// LLAMA_CPP names a node_modules folder with node-llama-cpp 3.21.1 (npm install it anywhere), PYTHON a Python with torch
// and transformers 5.24.0 and gguf: each is left out when absent. Token ids are new in every round, so that no side can
// reuse what it computed. Prefill ends with the logits of one row; scoring gives the loss of every token.
// CPU seconds of this process are printed beside wall time: on a shared machine their ratio is the steadier one.
// Prints a table; the last line is one JSON object. Ratio: ours over theirs in tokens a second, above 1 is ours ahead.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { basename, resolve } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { loadLanguageModel } from "../src/engine/index.ts";
import { seededRandom } from "../test/support/random-ids.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    lengths: { type: "string", default: "512,2048,8192" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: "2" },
    decode: { type: "string", default: "64" },
    memory: { type: "string", default: "0" },
    "memory-only": { type: "boolean", default: false },
    float32: { type: "boolean", default: false },
  },
});
const [path] = positionals;
if (path === undefined) throw new RangeError("bench/engine: expected the path of a .gguf model, got none");
const lengths = values.lengths.split(",").map(Number);
const rounds = Number(values.rounds);
const threads = Number(values.threads);
const decodeTokens = Number(values.decode);
const precision = values.float32 ? ("float32" as const) : ("auto" as const);

if (values["memory-only"]) {
  await measureMemory(Number(values.memory));
  process.exit(0);
}

interface Measure {
  /** Tokens a second by wall clock. */
  readonly wall: number;
  /** Tokens a CPU second; null where the work is another process's. */
  readonly cpu: number | null;
}

interface Side {
  readonly name: string;
  readonly loadSeconds: number;
  prefill?(ids: Int32Array): Promise<Measure>;
  score?(ids: Int32Array): Promise<Measure>;
  /** Greedy tokens after a prompt that prefill just saw. */
  decode?(ids: Int32Array, count: number): Promise<Measure>;
  close(): Promise<void>;
}

async function timed(tokens: number, body: () => Promise<unknown>): Promise<Measure> {
  const cpu = process.cpuUsage();
  const begin = performance.now();
  await body();
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { wall: tokens / seconds, cpu: tokens / ((user + system) / 1e6) };
}

let vocabSize = 0;

async function longhand(): Promise<Side> {
  const begin = performance.now();
  const model = await loadLanguageModel(path!, { threads, precision });
  const loadSeconds = (performance.now() - begin) / 1000;
  vocabSize = model.spec.vocabSize;
  const first = async (ids: Int32Array) => {
    for await (const _ of model.generate(ids, { maxTokens: 1 })) break;
  };
  return {
    name: `longhand (${model.precision})`,
    loadSeconds,
    prefill: (ids) => timed(ids.length, () => first(ids)),
    score: (ids) => timed(ids.length - 1, () => model.score(ids)),
    async decode(ids, count) {
      // The prompt and one token are in the cache already; the rest is decoding.
      const tokens = model.generate(ids, { maxTokens: count + 1 });
      await tokens.next();
      const measure = await timed(count, async () => {
        for (let i = 0; i < count; i++) await tokens.next();
      });
      await tokens.return(undefined as never);
      return measure;
    },
    close: () => model.dispose(),
  };
}

async function llamaCpp(folder: string): Promise<Side> {
  const entry = pathToFileURL(resolve(folder, "node-llama-cpp/dist/index.js")).href;
  const { getLlama } = await import(entry);
  const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: threads });
  const begin = performance.now();
  const model = await llama.loadModel({ modelPath: resolve(path!), gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: Math.max(...lengths) + decodeTokens + 8,
    batchSize: 512,
    threads,
    flashAttention: true,
  });
  const loadSeconds = (performance.now() - begin) / 1000;
  const sequence = context.getSequence();
  const prefill = async (ids: Int32Array) => {
    await sequence.clearHistory();
    await sequence.evaluateWithoutGeneratingNewTokens(Array.from(ids));
  };
  return {
    name: "llama.cpp",
    loadSeconds,
    prefill: (ids) => timed(ids.length, () => prefill(ids)),
    async decode(ids, count) {
      await prefill(ids.subarray(0, -1));
      const tokens = sequence.evaluate([ids.at(-1)!], { temperature: 0, yieldEogToken: true })[Symbol.asyncIterator]();
      await tokens.next();
      const measure = await timed(count, async () => {
        for (let i = 0; i < count; i++) await tokens.next();
      });
      await tokens.return?.();
      return measure;
    },
    close: () => llama.dispose(),
  };
}

/** torch runs in a process of its own, one request a line (bench/engine.py). */
async function torch(python: string): Promise<Side> {
  const script = fileURLToPath(new URL("engine.py", import.meta.url));
  const child: ChildProcess = spawn(python, [script, resolve(path!), String(threads)], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, OPENBLAS_CORETYPE: undefined, HF_HUB_OFFLINE: "1" },
  });
  const lines: Interface = createInterface({ input: child.stdout! });
  const answers = lines[Symbol.asyncIterator]();
  const ask = async (request: object): Promise<{ seconds: number; cpuSeconds: number }> => {
    child.stdin!.write(`${JSON.stringify(request)}\n`);
    return JSON.parse((await answers.next()).value);
  };
  const { seconds: loadSeconds } = JSON.parse((await answers.next()).value);
  const measure = (tokens: number, { seconds, cpuSeconds }: { seconds: number; cpuSeconds: number }): Measure => ({
    wall: tokens / seconds,
    cpu: tokens / cpuSeconds,
  });
  return {
    name: "torch float32",
    loadSeconds,
    prefill: async (ids) => measure(ids.length, await ask({ what: "prefill", ids: Array.from(ids) })),
    score: async (ids) => measure(ids.length - 1, await ask({ what: "score", ids: Array.from(ids) })),
    decode: async (ids, count) => measure(count, await ask({ what: "decode", ids: Array.from(ids), count })),
    async close() {
      child.stdin!.end();
    },
  };
}

const median = (list: readonly number[]): number => {
  const sorted = [...list].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

const sides: Side[] = [await longhand()];
if (process.env.LLAMA_CPP) sides.push(await llamaCpp(process.env.LLAMA_CPP));
if (process.env.PYTHON) sides.push(await torch(process.env.PYTHON));

const results: Record<string, Record<string, Measure[]>> = {};
const record = (task: string, side: string, measure: Measure) => {
  results[task] ??= {};
  results[task][side] ??= [];
  results[task][side].push(measure);
};
let seed = 0;
const freshIds = (length: number): Int32Array => seededRandom(++seed, length, vocabSize);

for (const side of sides) await side.prefill?.(freshIds(64)); // warm-up
for (let round = 0; round < rounds; round++) {
  // Who goes first changes with the round.
  const order = round % 2 === 0 ? sides : [...sides].reverse();
  for (const length of lengths) {
    const ids = freshIds(length);
    for (const side of order) {
      if (side.prefill) record(`prefill ${length}`, side.name, await side.prefill(ids));
    }
    for (const side of order) {
      if (side.score) record(`score ${length}`, side.name, await side.score(freshIds(length)));
    }
  }
  const prompt = freshIds(512);
  for (const side of order) {
    if (side.decode) record(`decode ${decodeTokens} after 512`, side.name, await side.decode(prompt, decodeTokens));
  }
}

const ours = sides[0]!.name;
const table = Object.entries(results).map(([task, bySide]) => {
  const of = (name: string, kind: "wall" | "cpu") => {
    const list = bySide[name];
    return list === undefined || list[0]![kind] === null ? null : median(list.map((m) => m[kind]!));
  };
  const row: Record<string, number | string | null> = { task };
  for (const side of sides) {
    const [wall, cpu] = [of(side.name, "wall"), of(side.name, "cpu")];
    if (wall === null) continue;
    row[side.name] = Number(wall.toPrecision(3));
    if (side.name === ours) continue;
    row[`ratio to ${side.name}`] = Number((of(ours, "wall")! / wall).toFixed(2));
    row[`CPU ratio to ${side.name}`] = cpu === null ? null : Number((of(ours, "cpu")! / cpu).toFixed(2));
  }
  return row;
});
console.log(`${basename(path)}, ${threads} threads, ${rounds} rounds, tokens a second (medians)`);
console.table(table);
console.log(sides.map((side) => `${side.name} loads in ${side.loadSeconds.toFixed(2)} s`).join("; "));

// The second strategy on a loaded model: how long until it is ready to run.
const model = await loadLanguageModel(path, { threads, precision });
await model.score(freshIds(64));
const switches = ["yarn:4", "linear:2", "ntk:4", "drop", "none"].map((scaling) => {
  const begin = performance.now();
  model.positions({ scaling }).tables(4096);
  return performance.now() - begin;
});
await model.dispose();
console.log(`another strategy is ready in ${Math.max(...switches).toFixed(1)} ms at most (${switches.length} tried)`);
for (const side of sides) await side.close();

let memory: unknown = null;
if (Number(values.memory) > 0) {
  const again = [...process.execArgv, fileURLToPath(import.meta.url), path, "--memory", values.memory, "--memory-only"];
  const child = spawnSync(process.execPath, values.float32 ? [...again, "--float32"] : again, { encoding: "utf8" });
  if (child.status !== 0) throw new Error(`bench/engine: the memory run failed: ${child.stderr}`);
  memory = JSON.parse(child.stdout.trim().split("\n").at(-1)!);
  console.log("memory", memory);
}
console.log(
  JSON.stringify({
    bench: "engine",
    model: basename(path),
    threads,
    rounds,
    cpu: cpus()[0]?.model,
    load: loadavg()[0],
    table,
    load_seconds: Object.fromEntries(sides.map((side) => [side.name, side.loadSeconds])),
    strategyMilliseconds: Math.max(...switches),
    memory,
  }),
);
process.exit(0);

/** Peak memory of scoring one sequence, in a process that does nothing else. */
async function measureMemory(length: number): Promise<void> {
  const model = await loadLanguageModel(path!, { threads, precision, capacity: length });
  const loaded = process.memoryUsage.rss();
  const begin = performance.now();
  await model.score(seededRandom(1, length, model.spec.vocabSize));
  const seconds = (performance.now() - begin) / 1000;
  const { layers, groups } = model.spec;
  const cacheBytes = layers.reduce(
    (sum, { attention, group }) =>
      sum +
      2 * 4 * attention.numKeyValueHeads * attention.headDim * Math.min(length, groups[group]!.slidingWindow ?? length),
    0,
  );
  console.log(
    JSON.stringify({
      length,
      peakBytes: process.resourceUsage().maxRSS * 1024,
      loadedBytes: loaded,
      cacheBytes,
      seconds,
    }),
  );
  await model.dispose();
}
