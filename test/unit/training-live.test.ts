// A run in somebody's hand: whatever is asked of it, what it trains is a recipe's run.

import { expect, test } from "vitest";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import {
  canDrop,
  LiveRun,
  type LiveRunOptions,
  type RecipeOptions,
  type RunCheckpoint,
  recipeEncodings,
  runRecipe,
  type TrainingRow,
  tokenBatches,
  trainingRecipe,
  validationBatches,
} from "../../src/training/index.ts";
import { seededText } from "../support/words.ts";

const text = seededText(4000);
const sizes = { hiddenSize: 16, numLayers: 1, numHeads: 2, intermediateSize: 16, length: 16, batchSize: 2, steps: 8 };
const backend = onnxRuntimeBackend({ provider: "node" });

function optionsOf(recipe: RecipeOptions, rows: TrainingRow[] = []): LiveRunOptions {
  const whole = trainingRecipe({ ...sizes, ...recipe });
  return {
    recipe: whole,
    backend,
    data: tokenBatches(text, whole),
    threads: 1,
    rowEvery: 1,
    validateEvery: 4,
    validation: validationBatches(text, { length: 16, batchSize: 2, tokens: 64 }),
    onRow: (row) => void rows.push(row),
  };
}
const bytes = ({ weights }: Pick<RunCheckpoint, "weights">) =>
  [...weights].map(([name, { data }]) => [name, Array.from(data as Float32Array)]);
const later = () => new Promise((done) => setTimeout(done, 50));

test("left alone, it is runRecipe's run", async () => {
  const [rows, own]: [TrainingRow[], TrainingRow[]] = [[], []];
  const end = await new LiveRun(optionsOf({ encoding: ["rope"] }, rows)).start();
  const { checkpoint } = await runRecipe(optionsOf({ encoding: ["rope"] }, own));
  expect(rows).toEqual(own);
  expect(bytes(end.checkpoint)).toEqual(bytes(checkpoint));
});

test("held, it waits; a step is one step; then it goes on to the same end", async () => {
  const rows: TrainingRow[] = [];
  const run = new LiveRun({ ...optionsOf({ encoding: ["alibi"] }, rows), held: true });
  const end = run.start();
  await later();
  expect([run.step, run.held, run.ended]).toEqual([0, true, false]);
  for (const step of [1, 2]) {
    run.takeStep();
    expect((await run.capture()).checkpoint.step).toBe(step);
    await later();
    expect(run.step).toBe(step);
  }
  run.resume();
  const { checkpoint } = await end;
  const whole = await new LiveRun(optionsOf({ encoding: ["alibi"] })).start();
  expect(bytes(checkpoint)).toEqual(bytes(whole.checkpoint));
  expect(rows.filter(({ kind }) => kind === "train").map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect([run.ended, (await run.capture()).checkpoint.step]).toEqual([true, 8]);
});

test("a drop shows at once and trains what the recipe with that drop trains", async () => {
  const [rows, own]: [TrainingRow[], TrainingRow[]] = [[], []];
  const run = new LiveRun({ ...optionsOf({ encoding: ["rope"] }, rows), held: true });
  const end = run.start();
  for (let step = 0; step < 3; step++) run.takeStep();
  expect((await run.capture()).checkpoint.step).toBe(3);
  run.drop();
  const { recipe, checkpoint } = await run.capture();
  expect([recipe.dropAt, checkpoint.step]).toEqual([3, 3]);
  expect(rows.filter(({ kind }) => kind === "validation").map(({ step }) => step)).toEqual([0, 3]);
  run.drop();
  run.resume();
  const dropped = await end;
  const whole = await runRecipe(optionsOf({ encoding: ["rope"], dropAt: 3 }, own));
  expect(dropped.recipe).toEqual(trainingRecipe({ ...sizes, encoding: ["rope"], dropAt: 3 }));
  expect(bytes(dropped.checkpoint)).toEqual(bytes(whole.checkpoint));
  const after = (list: TrainingRow[]) => list.filter(({ step }) => step > 3);
  expect(after(rows)).toEqual(after(own));
});

test("a drop before the first step is the recipe's at 0", async () => {
  const run = new LiveRun({ ...optionsOf({ encoding: ["sinusoidal"] }), held: true });
  run.drop();
  run.resume();
  const dropped = await run.start();
  const whole = await runRecipe(optionsOf({ encoding: ["sinusoidal"], dropAt: 0 }));
  expect(bytes(dropped.checkpoint)).toEqual(bytes(whole.checkpoint));
});

test("what cannot be dropped is refused before anything changes", () => {
  for (const encoding of recipeEncodings) {
    const run = new LiveRun(optionsOf({ encoding: [encoding] }));
    if (canDrop([encoding])) expect(() => run.drop()).not.toThrow();
    else expect(() => run.drop()).toThrow(new RegExp(`expected a fixed encoding to drop, got ${encoding}`));
  }
});

test("stopped, it ends before the next step with what it has; later words change nothing", async () => {
  let changes = 0;
  const run = new LiveRun({
    ...optionsOf({ encoding: ["none"] }),
    onStep: ({ step }) => (step === 2 ? run.stop() : undefined),
    onChange: () => void changes++,
  });
  const { checkpoint } = await run.start();
  expect([checkpoint.step, run.ended, changes]).toEqual([2, true, 2]);
  run.resume();
  run.takeStep();
  expect([run.step, changes]).toEqual([2, 2]);
});
