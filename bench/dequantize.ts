// Dequantising and repacking of every GGUF tensor type on one thread, against the gguf Python package (numpy), in turn.
//
//   PYTHON=venv/bin/python node --import ./scripts/ts-hook.mjs bench/dequantize.ts [million elements=16] [rounds=5] [kind …]
//
// The same random blocks go to both sides and 4,096 of the results are compared bit for bit, so that no side can be fast by
// being wrong. Outputs of ours are reused, the package's way is its own (new arrays). "file" is readFloat32 of a file just
// written: reading, decoding and the check for NaN and infinity. Without PYTHON only ours is measured.
// Prints a table: MB of blocks a second, and MB of float32; the last line is one JSON object. Ratio: the package's seconds
// over ours, of CPU time. Exit 1 when a type decodes below 200 MB of float32 a second of CPU time.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { openFile } from "../src/formats/bytes/node-file.ts";
import type { Codec } from "../src/formats/weights/codec.ts";
import { ggmlCodecs } from "../src/formats/weights/ggml/index.ts";
import { WeightStore } from "../src/formats/weights/store.ts";

const elements = Math.round(Number(process.argv[2] ?? 16) * 2 ** 20);
const rounds = Number(process.argv[3] ?? 5);
const only = process.argv.slice(4);
if (!(elements >= 2 ** 20) || !Number.isInteger(rounds) || rounds < 1) {
  throw new RangeError(`bench/dequantize: expected millions of elements and rounds, got ${process.argv.slice(2, 4)}`);
}
const kinds = [...ggmlCodecs.values()].filter(
  ({ name }) => name !== "F32" && !/^[FI]\d+$/.test(name.replace("F16", "")) && (!only.length || only.includes(name)),
);

const worker = `
import sys, time, json
import numpy as np, gguf
from gguf.quants import dequantize
print(json.dumps({"numpy": np.__version__}), flush=True)
for line in sys.stdin:
    path, kind, count = line.rstrip("\\n").split("\\t")
    data = np.fromfile(path, dtype=np.uint8, count=int(count)).reshape(1024, -1)
    kind = gguf.GGMLQuantizationType[kind]
    began, cpu = time.perf_counter(), time.process_time()
    with np.errstate(all="ignore"):
        out = dequantize(data, kind)
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    head = out.ravel()[:4096].view(np.uint32).tolist()
    print(json.dumps({"seconds": seconds, "cpuSeconds": used, "head": head}), flush=True)
`;

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function startPython(python: string) {
  const env = { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" };
  const child = spawn(python, ["-c", worker], { env, stdio: ["pipe", "pipe", "inherit"] });
  child.on("error", (error) => {
    console.error(`bench/dequantize: cannot start ${python}: ${error.message}`);
    process.exit(2);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`bench/dequantize: ${python} ended early; it must be a Python that has gguf and numpy`);
    return JSON.parse(value);
  };
  return {
    about: (await read()) as { numpy: string },
    run: async (path: string, kind: string, bytes: number): Promise<Run & { head: number[] }> => {
      child.stdin.write(`${path}\t${kind}\t${bytes}\n`);
      return read();
    },
    stop: () => child.stdin.end(),
  };
}

async function timed(work: () => unknown): Promise<Run> {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const seconds = (performance.now() - began) / 1000;
  const used = process.cpuUsage(cpu);
  return { seconds, cpuSeconds: (used.user + used.system) / 1e6 };
}

const best = (runs: readonly Run[]): Run => ({
  seconds: Math.min(...runs.map((run) => run.seconds)),
  cpuSeconds: Math.min(...runs.map((run) => run.cpuSeconds)),
});

/** Random blocks without infinite scales: no byte has the bit that all ones of a float16's exponent need. */
function randomBlocks({ unitBytes, unitElements }: Codec): Uint8Array {
  const bytes = new Uint8Array((elements / unitElements) * unitBytes);
  const words = new Uint32Array(bytes.buffer, 0, bytes.length >> 2);
  let state = 88172645;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state & 0xbfbfbfbf;
  }
  return bytes;
}

const python = process.env.PYTHON ? await startPython(process.env.PYTHON) : null;
const folder = mkdtempSync(join(tmpdir(), "longhand-dequantize-"));
const out = new Float32Array(elements);
const outBits = new Uint32Array(out.buffer);
interface Result {
  readonly kind: string;
  readonly blockBytes: number;
  readonly decode: Run;
  /** Block types only. */
  readonly repack: Run | null;
  readonly file: Run;
  readonly python: Run | null;
}
const results: Result[] = [];
try {
  for (const codec of kinds) {
    const { name, unitElements, repack } = codec;
    const bytes = randomBlocks(codec);
    const units = elements / unitElements;
    const path = join(folder, name);
    writeFileSync(path, bytes);
    const stored = {
      name,
      location: path,
      size: bytes.length,
      open: () => openFile(path),
    };
    const shape = [1024, elements / 1024];
    const weights = new WeightStore(
      "gguf",
      name,
      [{ name, shape, dtype: name, file: stored, offset: 0, byteLength: bytes.length }],
      ggmlCodecs,
      {},
    );
    const blocks = new Uint8Array(repack === undefined ? 0 : (elements * repack.bits) / 8);
    const scales = new Float32Array(repack === undefined ? 0 : elements / repack.blockSize);
    const minimum = new Float32Array(repack?.minimum ? scales.length : 0);
    const runs: Record<"decode" | "file" | "repack" | "python", Run[]> = {
      decode: [],
      file: [],
      repack: [],
      python: [],
    };
    for (let round = -1; round < rounds; round++) {
      const keep = (way: keyof typeof runs, run: Run) => {
        if (round >= 0) runs[way].push(run); // round −1 warms up
      };
      keep("decode", await timed(() => codec.decode(bytes, units, out)));
      keep("file", await timed(() => weights.readFloat32(name)));
      if (repack !== undefined) {
        keep("repack", await timed(() => repack.run(bytes, units, blocks, scales, minimum)));
      }
      if (python !== null) {
        const run = await python.run(path, name, bytes.length);
        const wrong = run.head.findIndex((bits, i) => bits !== outBits[i]);
        if (wrong >= 0) {
          throw new Error(`bench/dequantize: ${name}: element ${wrong} is ${out[wrong]}, not the package's number`);
        }
        keep("python", run);
      }
    }
    await weights.close();
    rmSync(path);
    results.push({
      kind: name,
      blockBytes: bytes.length,
      decode: best(runs.decode),
      repack: repack === undefined ? null : best(runs.repack),
      file: best(runs.file),
      python: python === null ? null : best(runs.python),
    });
  }
} finally {
  python?.stop();
  rmSync(folder, { recursive: true, force: true });
}

const rate = (run: Run | null, bytes: number): string =>
  (run === null ? "" : (bytes / 1e6 / run.cpuSeconds).toFixed(0)).padStart(8);
console.log(
  `${(elements / 2 ** 20).toFixed(0)} Mi elements a kind, ${rounds} rounds, least CPU time; MB/s of one thread` +
    `${python === null ? "" : `; numpy ${python.about.numpy}`}`,
);
console.log(
  `${cpus()[0]?.model ?? "?"}, node ${process.version}, load ${loadavg()[0]!.toFixed(1)} on ${cpus().length} cores\n`,
);
console.log("          decoding           repacking    file  Python package   ratio");
console.log("          blocks float32      blocks  float32         float32");
for (const { kind, blockBytes, decode, repack, file, python: theirs } of results) {
  const floats = 4 * elements;
  console.log(
    kind.padEnd(8) +
      rate(decode, blockBytes) +
      rate(decode, floats) +
      "    " +
      rate(repack, blockBytes) +
      " " +
      rate(file, floats) +
      "        " +
      rate(theirs, floats) +
      (theirs === null ? "" : (theirs.cpuSeconds / decode.cpuSeconds).toFixed(2).padStart(8)),
  );
}
const slow = results.filter(({ decode }) => (4 * elements) / 1e6 / decode.cpuSeconds < 200);
if (slow.length > 0) {
  console.error(`bench/dequantize: below 200 MB/s: ${slow.map(({ kind }) => kind).join(", ")}`);
  process.exitCode = 1;
}
console.log(
  JSON.stringify({
    bench: "dequantize",
    elements,
    rounds,
    cpu: cpus()[0]?.model,
    node: process.version,
    numpy: python?.about.numpy ?? null,
    load: loadavg()[0],
    results,
  }),
);
