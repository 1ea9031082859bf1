// Training steps a second in a page, ours on ONNX Runtime's WebAssembly against jax-js's: same model (0.84 million
// parameters), weights, batches and step, same page, in turn.
//
//   JAX_JS=node_modules/@jax-js/jax node --import ./scripts/ts-hook.mjs bench/training-browser.ts [batch×length,…] [rounds] [steps] [threads]
//
// JAX_JS names the folder of the package @jax-js/jax. Losses of the same step must agree. The first round warms up and
// compiles, and is left out. Ratio: jax-js's seconds over ours, above 1 is ours ahead.

import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { bundle, chromiumPath, openPage, whyNoBrowser } from "../test/support/browser.ts";
import type { BenchSetup, BenchStep } from "./pages/training.ts";

const shapes = (process.argv[2] ?? "8x128,8x256").split(",").map((shape) => shape.split("x").map(Number));
const [rounds, steps, threads] = [process.argv[3] ?? 3, process.argv[4] ?? 3, process.argv[5] ?? 2].map(Number);
const microBatches = Number(process.env.MICRO ?? 1);
const folder = process.env.JAX_JS;
if (!folder) {
  console.error(
    "bench/training-browser: set JAX_JS to the folder of the package @jax-js/jax (npm install @jax-js/jax)",
  );
  process.exit(2);
}
if (chromiumPath === null) {
  console.error(`bench/training-browser: ${whyNoBrowser}`);
  process.exit(2);
}
const { default: jaxPackage } = await import(resolve(folder, "package.json"), { with: { type: "json" } });

const sizes = { vocabSize: 256, hiddenSize: 128, numLayers: 4, numHeads: 4, intermediateSize: 352 };
const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

const built = await bundle("../../../bench/pages/training.ts");
const results: object[] = [];
try {
  for (const [batchSize, length] of shapes) {
    const opened = await openPage({}, { isolated: true, folders: { "": built.folder, jax: resolve(folder, "dist") } });
    try {
      const call = <T>(name: string, ...args: unknown[]): Promise<T> =>
        opened.page.evaluate(
          `import("/page.js").then((page) => page[${JSON.stringify(name)}](...${JSON.stringify(args)}))`,
        );
      const setup: BenchSetup = {
        ...sizes,
        batchSize: batchSize!,
        length: length!,
        threads: threads!,
        microBatches,
        jax: "/jax/index.js",
      };
      const page = await call<{ isolated: boolean; cores: number }>("prepare", setup);
      const sides: Record<"ours" | "jax", BenchStep[]> = { ours: [], jax: [] };
      for (let round = 0; round <= rounds!; round++) {
        const got = {
          ours: await call<BenchStep[]>("run", "ours", steps),
          jax: await call<BenchStep[]>("run", "jax", steps),
        };
        got.ours.forEach(({ loss }, i) => {
          const other = got.jax[i]!.loss;
          // Rounding differs, and training makes differences grow.
          if (!(Math.abs(loss - other) < 2e-3)) {
            throw new Error(`bench/training-browser: jax-js's loss is ${other} where ours is ${loss}`);
          }
        });
        if (round === 0) continue;
        sides.ours.push(...got.ours);
        sides.jax.push(...got.jax);
      }
      const of = (list: readonly BenchStep[]) => {
        const seconds = list.map((step) => step.seconds);
        const medianSeconds = median(seconds);
        return {
          tokensPerSecond: (batchSize! * length!) / medianSeconds,
          medianSeconds,
          leastSeconds: Math.min(...seconds),
        };
      };
      const [ours, jax] = [of(sides.ours), of(sides.jax)];
      const ratio = jax.medianSeconds / ours.medianSeconds;
      const leastRatio = jax.leastSeconds / ours.leastSeconds;
      results.push({ batchSize, length, ...page, ours, jax, ratio, leastRatio });
      const line = (name: string, { tokensPerSecond, medianSeconds, leastSeconds }: typeof ours): string =>
        `  ${name.padEnd(8)}${Math.round(tokensPerSecond).toString().padStart(7)} tokens/s  ${(1000 * medianSeconds).toFixed(0).padStart(6)} ms, least ${(1000 * leastSeconds).toFixed(0)} ms`;
      console.log(`batch ${batchSize} × ${length}, ${threads} threads`);
      console.log(line("ours", ours));
      console.log(`${line("jax-js", jax)}  ours is ${ratio.toFixed(2)}× (least ${leastRatio.toFixed(2)}×)`);
    } finally {
      await opened[Symbol.asyncDispose]();
    }
  }
} finally {
  await built[Symbol.asyncDispose]();
}
console.log(
  `${cpus()[0]?.model ?? "?"}, jax-js ${jaxPackage.version}, load ${loadavg()[0]!.toFixed(1)} on ${cpus().length} cores`,
);
console.log(
  JSON.stringify({
    bench: "training-browser",
    cpu: cpus()[0]?.model,
    jaxJs: jaxPackage.version,
    load: loadavg()[0],
    threads,
    microBatches,
    rounds,
    steps,
    results,
  }),
);
