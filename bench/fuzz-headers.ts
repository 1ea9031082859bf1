// Damaged headers by the hundred thousand: only results and FormatErrors may come out, in bounded time and memory.
// The cases are those of test/properties/headers.test.ts, from a seed, so any of them can be replayed.
//
//   node --expose-gc --import ./scripts/ts-hook.mjs bench/fuzz-headers.ts [cases=100000] [seed=1]
//
// Ends with one JSON line; exit 1 when anything else came out, naming target, seed and case.

import { FormatError } from "../src/formats/bytes/index.ts";
import {
  CountingSource,
  extremeLengths,
  hostileTexts,
  type Mutation,
  mutate,
  targets,
} from "../test/support/mutations.ts";

const cases = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? 1);
/** One case in so many is followed by a pretended terabyte of zeros. */
const sparseEvery = 50;

/** mulberry32 */
function generator(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function mutationOf(random: () => number): Mutation {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const place = random() < 0.5 ? random() : random() * 0.1;
  switch (Math.floor(random() * 7)) {
    case 0:
      return { kind: "set", place, value: Math.floor(random() * 256) };
    case 1:
      return { kind: "flip", place, bit: Math.floor(random() * 8) };
    case 2:
      return { kind: "length", place, width: pick([4, 8]), value: pick(extremeLengths) };
    case 3:
      return { kind: "text", place, text: pick(hostileTexts) };
    case 4:
      return { kind: "cut", place };
    case 5:
      return { kind: "remove", place, count: 1 + Math.floor(random() * 40) };
    default:
      return { kind: "repeat", place, count: 1 + Math.floor(random() * 40) };
  }
}

interface Tally {
  cases: number;
  read: number;
  refused: number;
  escaped: number;
  slowest: number;
  peak: number;
}
const tallies = new Map<string, Tally>();
const escapes: string[] = [];
const messages = new Set<string>();
const started = performance.now();
const restingMemory = process.memoryUsage().rss;
let peak = restingMemory;

for (let i = 0; i < cases; i++) {
  const target = targets[i % targets.length]!;
  const tally = tallies.get(target.name) ?? { cases: 0, read: 0, refused: 0, escaped: 0, slowest: 0, peak: 0 };
  tallies.set(target.name, tally);
  const random = generator((Math.imul(seed, 0x9e3779b1) + i) | 0);
  const mutations = Array.from({ length: 1 + Math.floor(random() * 4) }, () => mutationOf(random));
  const bytes = mutate(target.bytes, mutations);
  const sparse = Math.floor(i / targets.length) % sparseEvery === 0;
  const source = new CountingSource(target.name, bytes, sparse ? 2 ** 40 : bytes.length);
  const before = performance.now();
  tally.cases++;
  try {
    await target.use(source);
    tally.read++;
  } catch (error) {
    if (error instanceof FormatError) {
      tally.refused++;
      // The kinds of complaint, numbers and quotes left out: how much of the readers the cases reach.
      messages.add(error.message.replace(/"(?:[^"\\]|\\.)*"|\d+/g, "#").slice(0, 60));
    } else {
      tally.escaped++;
      if (escapes.length < 20)
        escapes.push(`${target.name}, seed ${seed}, case ${i}: ${String((error as Error).stack)}`);
    }
  }
  tally.slowest = Math.max(tally.slowest, performance.now() - before);
  if (i % 100 === 0 || sparse) peak = Math.max(peak, process.memoryUsage().rss);
}

const seconds = (performance.now() - started) / 1000;
console.log("file                             cases     read  refused  escaped  slowest ms");
for (const [name, one] of tallies) {
  console.log(
    name.padEnd(30) +
      [one.cases, one.read, one.refused, one.escaped]
        .map((count) => String(count).padStart(9))
        .join("")
        .slice(1) +
      one.slowest.toFixed(1).padStart(12),
  );
}
for (const one of escapes) console.error(one);
const sum = (key: keyof Tally): number => [...tallies.values()].reduce((total, one) => total + one[key], 0);
console.log(
  JSON.stringify({
    bench: "fuzz-headers",
    seed,
    cases,
    read: sum("read"),
    refused: sum("refused"),
    escaped: sum("escaped"),
    kindsOfComplaint: messages.size,
    slowestMs: Number(Math.max(...[...tallies.values()].map((one) => one.slowest)).toFixed(1)),
    restingMemoryMB: Math.round(restingMemory / 1e6),
    peakMemoryMB: Math.round(peak / 1e6),
    seconds: Number(seconds.toFixed(1)),
  }),
);
process.exit(escapes.length === 0 ? 0 : 1);
