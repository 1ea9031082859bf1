// Training steps a second, ours on ONNX Runtime against torch on the CPU, eager and compiled: same model (0.84 million
// parameters), weights, batches and step, same machine, same run, in turn.
//
//   PYTHON=venv/bin/python node --import ./scripts/ts-hook.mjs bench/training.ts [batch×length,…] [rounds] [steps] [threads]
//
// PYTHON names a Python that has torch (and a C++ compiler for its compiler). Losses of the same step must agree, so that
// no side can be fast by being wrong. The first round warms up and is left out. Prints a table; the last line is one JSON
// object. Ratio: torch's median seconds over ours, above 1 is ours ahead. On a busy machine wall time says little: two
// threads that wait for each other lose whole time slices; read the ratio of CPU seconds of a run with one thread.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { rope } from "../src/encodings/index.ts";
import { onnxRuntimeBackend } from "../src/engine/index.ts";
import { tensorBytes } from "../src/tensor/index.ts";
import { adamW, chain, clipByGlobalNorm, smallDecoder, Trainer, tokenBatches } from "../src/training/index.ts";

const shapes = (process.argv[2] ?? "16x256,32x128").split(",").map((shape) => shape.split("x").map(Number));
const [rounds, steps, threads] = [process.argv[3] ?? 5, process.argv[4] ?? 4, process.argv[5] ?? 2].map(Number);
const microBatches = Number(process.env.MICRO ?? 2);
if ([...shapes.flat(), rounds, steps, threads].some((n) => !(Number.isInteger(n) && n! > 0))) {
  throw new RangeError(
    `bench/training: expected batch×length, rounds, steps and threads, got ${process.argv.slice(2)}`,
  );
}
const python = process.env.PYTHON;
if (!python) {
  console.error("bench/training: set PYTHON to a Python that has torch (see reference/requirements.txt)");
  process.exit(2);
}

const sizes = { vocabSize: 256, hiddenSize: 128, numLayers: 4, numHeads: 4, intermediateSize: 352 };
const spec = smallDecoder(sizes);
const folder = mkdtempSync(join(tmpdir(), "longhand-bench-"));

interface Step {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly loss: number;
}
type Side = (count: number) => Promise<Step[]>;

async function startTorch(setup: object): Promise<{
  readonly torch: string;
  readonly side: (mode: string) => Side;
  readonly peak: () => number;
  readonly stop: () => void;
}> {
  const child = spawn(python!, [fileURLToPath(new URL("training.py", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.on("error", (error) => {
    console.error(`bench/training: cannot start ${python}: ${error.message}`);
    process.exit(2);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`bench/training: ${python} ended early; it must be a Python that has torch`);
    return JSON.parse(value);
  };
  child.stdin.write(`${JSON.stringify(setup)}\n`);
  const { torch } = (await read()) as { torch: string };
  let peak = 0;
  return {
    torch,
    side: (mode) => async (count) => {
      child.stdin.write(`${mode} ${count}\n`);
      const got = (await read()) as { steps: Step[]; peakMemoryBytes: number };
      peak = got.peakMemoryBytes;
      return got.steps;
    },
    peak: () => peak,
    stop: () => child.stdin.end(),
  };
}

const median = (values: readonly number[]) => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

async function compare(batchSize: number, length: number) {
  const text = Uint8Array.from({ length: 400_000 }, (_, i) => (i * i * 31 + (i >> 3) * 7 + (i % 13)) & 255);
  const source = tokenBatches(text, { batchSize, length, seed: 1 });
  const count = Math.min(40, (rounds! + 1) * steps!);
  const batches = Array.from({ length: count }, (_, step) => source.batch(step));
  const trainer = await Trainer.create({
    backend: onnxRuntimeBackend({ provider: "node", flushDenormals: true }),
    threads: threads!,
    spec,
    encodings: [rope({ headDim: 32, maxPositionEmbeddings: length, rope: { ropeType: "default", ropeTheta: 10000 } })],
    batchSize,
    length,
    seed: 1,
    microBatches,
    optimizer: chain(clipByGlobalNorm(1), adamW({ learningRate: 1e-3 })),
  });
  const weights = [...(await trainer.weights())];
  const [weightsFile, tokensFile] = [join(folder, "weights"), join(folder, "tokens")];
  writeFileSync(weightsFile, Buffer.concat(weights.map(([, value]) => tensorBytes(value))));
  writeFileSync(
    tokensFile,
    Buffer.concat(batches.flatMap(({ tokens, targets }) => [tensorBytes(tokens), tensorBytes(targets)])),
  );
  const torch = await startTorch({
    ...sizes,
    batchSize,
    length,
    threads,
    weights: weightsFile,
    tokens: tokensFile,
    shapes: weights.map(([name, { shape }]) => [name, shape]),
  });

  const ours: Side = async (wanted) => {
    const out: Step[] = [];
    for (let i = 0; i < wanted; i++) {
      const [began, cpu] = [performance.now(), process.cpuUsage()];
      const { loss } = await trainer.update(batches[trainer.step % count]!);
      const { user, system } = process.cpuUsage(cpu);
      out.push({ seconds: (performance.now() - began) / 1000, cpuSeconds: (user + system) / 1e6, loss });
    }
    return out;
  };
  const sides: Record<string, Side> = { ours, eager: torch.side("eager"), compiled: torch.side("compiled") };
  const runs: Record<string, Step[]> = { ours: [], eager: [], compiled: [] };
  for (let round = 0; round <= rounds!; round++) {
    const losses: Record<string, number[]> = {};
    for (const [name, side] of Object.entries(sides)) {
      const got = await side(steps!);
      losses[name] = got.map(({ loss }) => loss);
      if (round > 0) runs[name]!.push(...got);
    }
    for (const name of ["eager", "compiled"]) {
      losses[name]!.forEach((loss, i) => {
        // Rounding differs, and training makes differences grow.
        if (!(Math.abs(loss - losses.ours![i]!) < 2e-3)) {
          throw new Error(`bench/training: ${name}: loss ${loss} where ours is ${losses.ours![i]}`);
        }
      });
    }
  }
  await trainer.dispose();
  torch.stop();
  const table = Object.fromEntries(
    Object.entries(runs).map(([name, list]) => {
      const seconds = list.map((step) => step.seconds);
      const cpuSeconds = list.map((step) => step.cpuSeconds);
      return [
        name,
        {
          tokensPerSecond: (batchSize * length) / median(seconds),
          medianSeconds: median(seconds),
          leastSeconds: Math.min(...seconds),
          medianCpuSeconds: median(cpuSeconds),
          leastCpuSeconds: Math.min(...cpuSeconds),
        },
      ];
    }),
  );
  return {
    batchSize,
    length,
    torch: torch.torch,
    peakMemoryBytes: { ours: process.resourceUsage().maxRSS * 1024, torch: torch.peak() },
    sides: table,
  };
}

const results = [];
try {
  for (const [batchSize, length] of shapes) results.push(await compare(batchSize!, length!));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

console.log(`${cpus()[0]?.model ?? "?"}, node ${process.version}, torch ${results[0]?.torch}, ${threads} threads`);
console.log(
  `load ${loadavg()[0]!.toFixed(1)} on ${cpus().length} cores; ${rounds} rounds of ${steps} steps each in turn\n`,
);
for (const { batchSize, length, sides, peakMemoryBytes } of results) {
  const own = sides.ours!;
  console.log(`batch ${batchSize} × ${length}`);
  for (const [name, side] of Object.entries(sides)) {
    const ms = (seconds: number) => `${(seconds * 1000).toFixed(0)} ms`.padStart(9);
    const ratios =
      name === "ours"
        ? ""
        : `  ours is ${(side.medianSeconds / own.medianSeconds).toFixed(2)}× (least ${(side.leastSeconds / own.leastSeconds).toFixed(2)}×, CPU time ${(side.medianCpuSeconds / own.medianCpuSeconds).toFixed(2)}×, least ${(side.leastCpuSeconds / own.leastCpuSeconds).toFixed(2)}×)`;
    console.log(
      `  ${name.padEnd(9)}${String(Math.round(side.tokensPerSecond)).padStart(7)} tokens/s${ms(side.medianSeconds)}${ms(side.leastSeconds)} least${ms(side.medianCpuSeconds)} CPU${ratios}`,
    );
  }
  const mb = (bytes: number) => (bytes / 1e6).toFixed(0);
  console.log(`  peak memory: ours ${mb(peakMemoryBytes.ours)} MB, torch ${mb(peakMemoryBytes.torch)} MB (both modes)`);
}
console.log(
  JSON.stringify({
    bench: "training",
    cpu: cpus()[0]?.model,
    node: process.version,
    load: loadavg()[0],
    threads,
    microBatches,
    rounds,
    steps,
    results,
  }),
);
