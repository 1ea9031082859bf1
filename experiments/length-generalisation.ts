// Which encodings do a task at sizes beyond those they were trained at (Kazemnejad et al. 2023, 2305.19466, at the size of
// a tiny model): every encoding on the same examples in the same order, from the same initial weights, several seeds.
//
//   node --import ./scripts/ts-hook.mjs experiments/length-generalisation.ts --out rows.jsonl
//     [--tasks copy,reverse,recall,passkey] [--encodings none,sinusoidal,learned,t5,alibi,rope,drope] [--seeds 1,2,3]
//     [--steps N] [--rate 0.002] [--batch N] [--size tiny] [--count 100] [--threads 1] [--table]
//     [--svg experiments/figures/passkey.svg], of one task
//
// A line of the file is one finished run: its settings, the accuracy at a few steps (how fast it learned), and a result
// for each size. Runs that are in the file are skipped, so this can be stopped and started; --table only prints.
// learned: its table has rows for the largest test, those past the training length never trained. drope: RoPE, dropped
// for the last fifth of the steps.

import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { nope } from "../src/encodings/index.ts";
import { onnxRuntimeBackend } from "../src/engine/index.ts";
import {
  createTask,
  evaluateTask,
  modelLayout,
  type RecipeEncoding,
  type RecipeSize,
  recipeEncodings,
  type TaskName,
  type TaskResult,
  Trainer,
  taskBatches,
  taskLength,
  trainingPlan,
  trainingRecipe,
  widthScaledWeights,
  wilsonInterval,
} from "../src/training/index.ts";
import { lineChart, writeFigure } from "./support/line-chart.ts";

type EncodingName = RecipeEncoding | "drope";
const dropShare = 0.8;

/** What each task is trained and tested at, and how long a run is until most encodings do it in distribution; recall is
 *  done by none at this size, see LOG.md. */
interface Plan {
  readonly options?: object;
  readonly train: readonly [number, number];
  /** The first ones are in distribution. */
  readonly test: readonly number[];
  readonly steps: number;
  readonly batchSize: number;
}
const plans: Partial<Record<TaskName, Plan>> = {
  copy: { train: [1, 20], test: [5, 10, 15, 20, 22, 25, 30, 40, 60, 80], steps: 1500, batchSize: 32 },
  reverse: { train: [1, 20], test: [5, 10, 15, 20, 22, 25, 30, 40, 60, 80], steps: 1500, batchSize: 32 },
  recall: { train: [1, 12], test: [4, 8, 12, 14, 16, 20, 24, 32, 40, 52], steps: 2000, batchSize: 32 },
  passkey: { train: [8, 64], test: [16, 32, 64, 80, 96, 128, 192, 256, 512], steps: 800, batchSize: 16 },
  addition: {
    options: { reversed: true },
    train: [1, 10],
    test: [2, 5, 8, 10, 11, 12, 14, 16, 20],
    steps: 6000,
    batchSize: 32,
  },
  sorting: { train: [1, 10], test: [2, 5, 8, 10, 12, 14, 16, 20], steps: 6000, batchSize: 32 },
};

interface Settings {
  readonly task: string;
  readonly encoding: EncodingName;
  readonly seed: number;
  readonly options: object;
  readonly train: readonly [number, number];
  readonly size: string;
  readonly steps: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly count: number;
}

interface Row extends Settings {
  readonly parameters: number;
  /** Accuracy at the largest training size after some steps. */
  readonly learning: readonly { readonly step: number; readonly loss: number; readonly accuracy: number }[];
  readonly results: readonly TaskResult[];
  readonly trainingSeconds: number;
  readonly seconds: number;
}

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    tasks: { type: "string", default: "copy,reverse,recall,passkey" },
    encodings: { type: "string", default: "none,sinusoidal,learned,t5,alibi,rope,drope" },
    seeds: { type: "string", default: "1,2,3" },
    steps: { type: "string" },
    rate: { type: "string", default: "0.002" },
    batch: { type: "string" },
    size: { type: "string", default: "tiny" },
    count: { type: "string", default: "100" },
    threads: { type: "string", default: "1" },
    table: { type: "boolean", default: false },
    svg: { type: "string" },
  },
});
if (values.svg !== undefined && values.tasks.includes(",")) {
  console.error("length-generalisation: expected one task for --svg, got several");
  process.exit(2);
}
if (values.out === undefined) {
  console.error("length-generalisation: expected --out FILE, where rows are kept");
  process.exit(2);
}
const out = values.out;
const list = (text: string): string[] => text.split(",").filter((part) => part !== "");
const backend = onnxRuntimeBackend({ provider: "node", flushDenormals: true });

function settingsOf(name: string, encoding: string, seed: string): Settings {
  const plan = Object.hasOwn(plans, name) ? plans[name as TaskName] : undefined;
  if (plan === undefined) {
    throw new RangeError(`length-generalisation: expected tasks of ${Object.keys(plans).join(", ")}, got ${name}`);
  }
  if (![...recipeEncodings, "drope"].includes(encoding)) {
    throw new RangeError(
      `length-generalisation: expected encodings of ${recipeEncodings.join(", ")}, drope, got ${encoding}`,
    );
  }
  return {
    task: name,
    encoding: encoding as EncodingName,
    seed: Number(seed),
    options: plan.options ?? {},
    train: plan.train,
    size: values.size,
    steps: Number(values.steps ?? plan.steps),
    batchSize: Number(values.batch ?? plan.batchSize),
    learningRate: Number(values.rate),
    count: Number(values.count),
  };
}

async function run(settings: Settings): Promise<Row> {
  const { encoding, train, seed, steps, batchSize, learningRate, count } = settings;
  const { test } = plans[settings.task as TaskName]!;
  const task = createTask(settings.task, settings.options);
  const data = taskBatches(task, { batchSize, seed, sizes: train });
  const { length } = data;
  const recipe = trainingRecipe({
    encoding: [encoding === "drope" ? "rope" : encoding],
    size: settings.size as RecipeSize,
    length,
    batchSize,
    steps,
    seed,
    learningRate,
  });
  const plan = trainingPlan(recipe);
  const numPositions = taskLength(task, Math.max(...test));
  const encodings = plan.encodings.map((one) =>
    "learned" in one && one.learned === "absolute" ? { ...one, numPositions } : one,
  );
  const started = performance.now();
  const trainer = await Trainer.create({
    ...plan,
    encodings,
    backend,
    threads: Number(values.threads),
    batchSize,
    length,
    weights: widthScaledWeights(modelLayout({ spec: plan.spec, encodings, length }), seed),
  });
  try {
    const learning: { step: number; loss: number; accuracy: number }[] = [];
    const probeEvery = Math.max(1, Math.round(steps / 20));
    const dropAt = encoding === "drope" ? Math.round(dropShare * steps) : null;
    let [sum, since, training] = [0, 0, 0];
    while (trainer.step < steps) {
      if (trainer.step === dropAt) trainer.setEncodings([nope()]);
      const before = performance.now();
      sum += (await trainer.update(data.batch(trainer.step))).loss;
      training += performance.now() - before;
      since++;
      if (trainer.step % probeEvery !== 0 && trainer.step !== steps) continue;
      const [probe] = await evaluateTask(trainer, task, { sizes: [train[1]], count: 64, seed, batchSize: 32 });
      learning.push({ step: trainer.step, loss: sum / since, accuracy: probe!.accuracy });
      [sum, since] = [0, 0];
      if (process.stderr.isTTY) process.stderr.write(`\r${show(learning.at(-1)!)}   `);
    }
    if (process.stderr.isTTY) process.stderr.write("\n");
    // The same questions for every encoding of a seed.
    const results = await evaluateTask(trainer, task, { sizes: test, count, seed: 1000 + seed });
    return {
      ...settings,
      parameters: trainer.layout.size,
      learning,
      results,
      trainingSeconds: training / 1000,
      seconds: (performance.now() - started) / 1000,
    };
  } finally {
    await trainer.dispose();
  }
}

const show = ({ step, loss, accuracy }: { step: number; loss: number; accuracy: number }): string =>
  `step ${step}: loss ${loss.toFixed(3)}, accuracy ${accuracy.toFixed(2)}`;

const keyOf = ({
  task,
  encoding,
  seed,
  options,
  train,
  size,
  steps,
  batchSize,
  learningRate,
  count,
}: Settings): string =>
  JSON.stringify([task, encoding, seed, options, train, size, steps, batchSize, learningRate, count]);

/** Finished runs. A last line that was cut off when the process was killed is not one. */
function readRows(): Row[] {
  if (!existsSync(out)) return [];
  return readFileSync(out, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Row];
      } catch {
        return [];
      }
    });
}

/** Accuracy by size: a line an encoding, the mean over seeds (and the least and most, where they differ). */
function printTable(rows: readonly Row[]): void {
  for (const task of new Set(rows.map((row) => row.task))) {
    const own = rows.filter((row) => row.task === task);
    const sizes = [...new Set(own.flatMap(({ results }) => results.map(({ size }) => size)))].sort((a, b) => a - b);
    const { train } = own[0]!;
    const cells = (line: readonly string[]): string => `| ${line.join(" | ")} |`;
    console.log(
      `\n${task}, trained at ${train.join(" .. ")}; accuracy of whole answers in %, mean (least .. most) of seeds\n`,
    );
    console.log(cells(["encoding", "seeds", ...sizes.map(String), "seconds a run"]));
    console.log(cells(Array.from({ length: sizes.length + 3 }, () => "---")));
    for (const encoding of new Set(own.map((row) => row.encoding))) {
      const runs = own.filter((row) => row.encoding === encoding);
      const line = sizes.map((size) => {
        const shares = runs.flatMap(({ results }) =>
          results.filter((one) => one.size === size).map((x) => 100 * x.accuracy),
        );
        const mean = shares.reduce((a, x) => a + x, 0) / shares.length;
        const [least, most] = [Math.min(...shares), Math.max(...shares)].map(Math.round);
        return least === most ? `${Math.round(mean)}` : `${Math.round(mean)} (${least} .. ${most})`;
      });
      const seconds = runs.reduce((a, row) => a + row.seconds, 0) / runs.length;
      console.log(cells([encoding, String(runs.length), ...line, seconds.toFixed(0)]));
    }
  }
  const count = rows[0]?.count;
  if (count === undefined) return;
  const [low, high] = wilsonInterval(count / 2, count).map((x) => Math.round(100 * x));
  console.log(`\n${count} examples a size and seed: a share of 50 % has a 95 % interval of ${low} .. ${high} %.`);
}

const wanted = list(values.seeds).flatMap((seed) =>
  list(values.tasks).flatMap((task) => list(values.encodings).map((encoding) => settingsOf(task, encoding, seed))),
);
const keys = new Set(wanted.map(keyOf));
const done = new Set(readRows().map(keyOf));
mkdirSync(dirname(out), { recursive: true });
if (existsSync(out) && !/(^|\n)$/.test(readFileSync(out, "utf8"))) appendFileSync(out, "\n");
for (const settings of values.table ? [] : wanted) {
  if (done.has(keyOf(settings))) continue;
  const row = await run(settings);
  appendFileSync(out, `${JSON.stringify(row)}\n`);
  const last = row.results.map(({ size, accuracy }) => `${size}: ${accuracy.toFixed(2)}`).join(", ");
  console.log(
    `${row.task} ${row.encoding} seed ${row.seed}, ${row.seconds.toFixed(0)} s (training ${row.trainingSeconds.toFixed(0)} s): ${last}`,
  );
}
const finished = readRows().filter((row) => keys.has(keyOf(row)));
printTable(finished);
if (values.svg !== undefined) {
  const { train, task } = finished[0]!;
  const series = [...new Set(finished.map((row) => row.encoding))].map((encoding) => {
    const runs = finished.filter((row) => row.encoding === encoding);
    return {
      name: encoding,
      points: runs[0]!.results.map(({ size }, i) => {
        const shares = runs.map(({ results }) => 100 * results[i]!.accuracy);
        const mean = shares.reduce((sum, x) => sum + x, 0) / shares.length;
        return { x: size, y: mean, low: Math.min(...shares), high: Math.max(...shares) };
      }),
    };
  });
  writeFigure(
    values.svg,
    lineChart({
      title: `${task}: whole answers right, trained up to ${train[1]}`,
      xLabel: createTask(task).unit,
      yLabel: "%",
      series,
    }),
  );
}
