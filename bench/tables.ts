// cos and sin tables of a million positions × 64 pairs, ours against numpy: same machine, same run, A and B in turn.
//
//   PYTHON=venv/bin/python node --import ./scripts/ts-hook.mjs bench/tables.ts [positions] [rounds]
//
// PYTHON names a Python that has numpy. numpy runs as it does best: preallocated outputs, whole arrays and chunks of
// two cache sizes, no OPENBLAS_CORETYPE; its best float64 way is what ours is compared with. Both sides get the same
// frequencies, and one row of each result is compared, so that no side can be fast by being wrong.
// Prints a table; the last line is one JSON object. Ratio: numpy's seconds over ours, above 1 is ours ahead; on a busy
// machine the ratio of CPU seconds is the steadier one.

import { spawn } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { sinCosOfProducts } from "../src/encodings/numerics/sincos.ts";
import { computeRopeFrequencies } from "../src/encodings/rope/scaling/index.ts";
import { rotaryTables } from "../src/encodings/rope/tables.ts";

const count = Number(process.argv[2] ?? 1_000_000);
const rounds = Number(process.argv[3] ?? 7);
const pairs = 64;
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(rounds) || rounds < 1) {
  throw new RangeError(`bench/tables: expected a number of positions and of rounds, got ${process.argv.slice(2)}`);
}

const frequencies = computeRopeFrequencies(
  { headDim: 2 * pairs, maxPositionEmbeddings: count, rope: { ropeType: "default", ropeTheta: 500000 } },
  count,
);
const positions = Float64Array.from({ length: count }, (_, p) => p);

interface Tables {
  cos: Float64Array | Float32Array;
  sin: Float64Array | Float32Array;
}
interface Run {
  seconds: number;
  cpuSeconds: number;
  cos: number[];
  sin: number[];
}

// Outputs are kept between runs, as numpy's are: what is measured is the arithmetic, not the kernel's page faults.
let buffers: Tables | undefined;
function reused<A extends Float64ArrayConstructor | Float32ArrayConstructor>(type: A): Tables {
  if (!(buffers?.cos instanceof type)) {
    buffers = undefined;
    buffers = { cos: new type(count * pairs).fill(0.5), sin: new type(count * pairs).fill(0.5) };
  }
  return buffers;
}
function into(tables: Tables): Tables {
  sinCosOfProducts(positions, frequencies.inverseFrequencies, 1, tables.sin, tables.cos);
  return tables;
}

const ours: Record<string, () => Tables> = {
  "fresh float64": () => rotaryTables(frequencies, positions),
  "reused float64": () => into(reused(Float64Array)),
  "reused float32": () => into(reused(Float32Array)),
};

function runOurs(way: () => Tables, row: number): Run {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  const { cos, sin } = way();
  const seconds = (performance.now() - began) / 1000;
  const used = process.cpuUsage(cpu);
  const slice = (table: Tables["cos"]) => Array.from(table.subarray(row * pairs, (row + 1) * pairs));
  return { seconds, cpuSeconds: (used.user + used.system) / 1e6, cos: slice(cos), sin: slice(sin) };
}

async function startNumpy(python: string) {
  const { OPENBLAS_CORETYPE: _, ...env } = process.env;
  const child = spawn(python, [fileURLToPath(new URL("tables.py", import.meta.url))], {
    env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`bench/tables: ${python} ended early; it must be a Python that has numpy`);
    return JSON.parse(value);
  };
  child.on("error", (error) => {
    console.error(`bench/tables: cannot start ${python}: ${error.message}`);
    process.exit(2);
  });
  child.stdin.write(
    `${JSON.stringify({ positions: count, frequencies: Array.from(frequencies.inverseFrequencies) })}\n`,
  );
  return {
    about: (await read()) as { numpy: string; python: string; features: string[] },
    run: async (way: string, row: number): Promise<Run> => {
      child.stdin.write(`${way} ${row}\n`);
      return read();
    },
    stop: () => child.stdin.end(),
  };
}

const median = (values: number[]) => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

function expectSame(name: string, a: Run, b: Run, tolerance: number): void {
  for (const table of ["cos", "sin"] as const) {
    for (const [i, x] of a[table].entries()) {
      const difference = Math.abs(x - b[table][i]!);
      if (!(difference <= tolerance)) {
        throw new Error(`bench/tables: ${name}: ${table} of pair ${i} differs by ${difference}, above ${tolerance}`);
      }
    }
  }
}

const python = process.env.PYTHON;
if (!python) {
  console.error("bench/tables: set PYTHON to a Python that has numpy (see reference/requirements.txt)");
  process.exit(2);
}
const numpy = await startNumpy(python);

// [what, ours, numpy's ways, the difference that is allowed]
const matches: [string, string, string[], number][] = [
  ["float64, new arrays", "fresh float64", ["fresh64"], 1e-15],
  ["float64, arrays reused", "reused float64", ["whole64", "chunked64/64", "chunked64/1024"], 1e-15],
  ["float32 of float64 angles, arrays reused", "reused float32", ["chunked32/64", "chunked32/1024"], 6e-8],
  ["float32 throughout (numpy only; ours as above)", "reused float32", ["coarse32/64", "coarse32/1024"], 0.2],
];
const row = count - 1;
const results = [];
for (const [what, mine, theirs, tolerance] of matches) {
  const runs: Record<string, Run[]> = Object.fromEntries(["ours", ...theirs].map((way) => [way, []]));
  for (let round = -1; round < rounds; round++) {
    const keep = (way: string, run: Run) => {
      if (round >= 0) runs[way]!.push(run);
    };
    const own = runOurs(ours[mine]!, row);
    keep("ours", own); // round −1 warms both up
    for (const way of theirs) {
      const run = await numpy.run(way, row);
      expectSame(`${what}, ${way}`, own, run, tolerance);
      keep(way, run);
    }
  }
  const medians = Object.fromEntries(
    Object.entries(runs).map(([way, list]) => [
      way,
      { seconds: median(list.map((run) => run.seconds)), cpuSeconds: median(list.map((run) => run.cpuSeconds)) },
    ]),
  );
  const own = medians.ours!;
  const way = theirs.reduce((a, b) => (medians[a]!.seconds <= medians[b]!.seconds ? a : b));
  const other = medians[way]!;
  results.push({
    what,
    way,
    ratio: other.seconds / own.seconds,
    cpuRatio: Math.min(...theirs.map((name) => medians[name]!.cpuSeconds)) / own.cpuSeconds,
    medians,
  });
}
numpy.stop();

const cell = ({ seconds }: { seconds: number }) =>
  `${(seconds * 1000).toFixed(0)} ms, ${((seconds * 1e9) / (count * pairs)).toFixed(2)} ns`.padEnd(20);
console.log(
  `${count.toLocaleString("en")} positions × ${pairs} pairs, ${rounds} rounds, medians; ns a pair, which is one cos and one sin`,
);
console.log(`${cpus()[0]?.model ?? "?"}, node ${process.version}, numpy ${numpy.about.numpy}`);
console.log(
  `load ${loadavg()[0]!.toFixed(1)} on ${cpus().length} cores (above 1 a core, read the ratio of CPU time)\n`,
);
console.log(`${"".padEnd(47)}${"ours".padEnd(20)}${"numpy".padEnd(20)}ratio  of CPU time  numpy's best`);
for (const { what, way, ratio, cpuRatio, medians } of results) {
  console.log(
    `${what.padEnd(47)}${cell(medians.ours!)}${cell(medians[way]!)}${ratio.toFixed(2).padEnd(7)}${cpuRatio.toFixed(2).padEnd(13)}${way}`,
  );
}
console.log(
  JSON.stringify({
    bench: "tables",
    positions: count,
    pairs,
    rounds,
    cpu: cpus()[0]?.model,
    node: process.version,
    numpy: numpy.about.numpy,
    simd: numpy.about.features,
    load: loadavg()[0],
    results,
  }),
);
