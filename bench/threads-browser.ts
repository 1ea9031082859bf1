// What two threads gain over one in a worker of a page, on WebAssembly: a training step (0.84 million parameters, 8 × 128
// tokens) and scoring 512 tokens with longhand-rope, as the lab does both. Two workers of one page, in turn.
//
//   node --import ./scripts/ts-hook.mjs bench/threads-browser.ts [rounds]
//
// The first round warms up and is left out. Losses must agree. Ratio: one thread's seconds over two threads', above 1 is a
// gain. Threads wait by spinning, so on a busy machine the ratio says more of the machine. The last line is one JSON object.

import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { bundle, chromiumPath, openPage, whyNoBrowser } from "../test/support/browser.ts";
import type { Asked, Told } from "./pages/threads-worker.ts";

const rounds = Number(process.argv[2] ?? 5);
if (chromiumPath === null) {
  console.error(`bench/threads-browser: ${whyNoBrowser}`);
  process.exit(2);
}
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

const built = await bundle("../../../bench/pages/threads.ts");
const models = resolve(import.meta.dirname, "../models");
const opened = await openPage({}, { isolated: true, folders: { "": built.folder, models } });
try {
  const ask = (threads: number, question: Asked): Promise<Told> =>
    opened.page.evaluate(
      `import("/page.js").then((page) => page.ask(${threads}, ${JSON.stringify(question)}))`,
    ) as Promise<Told>;
  for (const threads of [1, 2]) {
    const loaded = await ask(threads, { kind: "load", threads, models: `${opened.origin}/models/` });
    if (loaded.threads !== threads) {
      throw new Error(`bench/threads-browser: expected ${threads} threads, got ${loaded.threads}`);
    }
  }
  const results: object[] = [];
  for (const kind of ["train", "score"] as const) {
    const seconds = new Map<number, number[]>([
      [1, []],
      [2, []],
    ]);
    for (let round = 0; round <= rounds; round++) {
      const [one, two] = [await ask(1, { kind }), await ask(2, { kind })];
      if (!(Math.abs(one.loss! - two.loss!) < 2e-3)) {
        throw new Error(`bench/threads-browser: expected equal losses, got ${one.loss} and ${two.loss}`);
      }
      if (round === 0) continue;
      seconds.get(1)!.push(...one.seconds);
      seconds.get(2)!.push(...two.seconds);
    }
    const [one, two] = [seconds.get(1)!, seconds.get(2)!];
    const ratio = median(one) / median(two);
    const leastRatio = Math.min(...one) / Math.min(...two);
    results.push({ kind, one: median(one), two: median(two), ratio, leastRatio });
    console.log(
      `${kind}: one thread ${(1000 * median(one)).toFixed(0)} ms, two ${(1000 * median(two)).toFixed(0)} ms, ` +
        `${ratio.toFixed(2)}× (least ${leastRatio.toFixed(2)}×)`,
    );
  }
  const [load] = loadavg();
  console.log(JSON.stringify({ bench: "threads-browser", cpu: cpus()[0]?.model, load, rounds, results }));
} finally {
  await opened[Symbol.asyncDispose]();
  await built[Symbol.asyncDispose]();
}
