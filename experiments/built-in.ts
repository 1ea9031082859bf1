// Makes the built-in models out of their trainings: models/NAME, in Hugging Face form, float16, with a card.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT built-in
//   node --import ./scripts/ts-hook.mjs experiments/built-in.ts OUT
//   longhand drop OUT/built-in/rope --tokens 3072000 --learning-rate 0.003 --seed 1 --threads 1 --dtype f16
//     --out OUT/built-in/dropped
//   node --import ./scripts/ts-hook.mjs experiments/built-in.ts OUT
//
// Each card names the commands that train its model again: the same bytes on the same kind of processor. The first pass
// leaves RoPE's model in float32 for the drop, whose model the second one takes.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadLanguageModel } from "../src/engine/index.ts";
import { lossByDoubling, windowTokens } from "../src/evaluation/index.ts";
import { openWeights } from "../src/formats/index.ts";
import { exportModel, exportOptionsOf, type TrainingRecipe, type TrainingRow } from "../src/training/index.ts";
import { heldOutPieces } from "./support/trained.ts";
import { readRun } from "./train.ts";

const out = process.argv[2];
if (out === undefined) throw new RangeError("experiments/built-in: expected the folder of the trainings, got none");

const models: Record<string, { readonly run: string; readonly flags: string; readonly what: string }> = {
  "longhand-rope": { run: "rope", flags: "--encoding rope", what: "Rotary positions (RoPE), theta 10000." },
  "longhand-nope": {
    run: "none",
    flags: "--encoding none",
    what: "No position encoding (NoPE): order through the causal mask alone.",
  },
  "longhand-alibi": { run: "alibi", flags: "--encoding alibi", what: "ALiBi: a slope a head on the distance." },
  "longhand-t5": { run: "t5", flags: "--encoding t5", what: "T5's learned bias by buckets of distance." },
  "longhand-learned": {
    run: "learned",
    flags: "--encoding learned",
    what: "A learned table of absolute positions; it ends at the trained length.",
  },
  "longhand-sinusoidal": {
    run: "sinusoidal",
    flags: "--encoding sinusoidal",
    what: "The sines and cosines of the first Transformer, added to the embeddings.",
  },
};
const dropFlags = "--tokens 3072000 --learning-rate 0.003 --seed 1 --threads 1 --dtype f16";

for (const [name, { run: runName, flags, what }] of Object.entries(models)) {
  const run = await readRun(out, `built-in/${runName}`);
  if (run === null || run.checkpoint.step < run.recipe.steps) {
    console.log(`${name}: not trained yet`);
    continue;
  }
  const { recipe, checkpoint } = run;
  const options = exportOptionsOf(recipe, checkpoint);
  if (runName === "rope") replaceFolder(join(out, "built-in", "rope", "model"), exportModel(options));
  replaceFolder(join("models", name), exportModel({ ...options, dtype: "f16" }));
  await writeCard(name, recipe, join(out, "built-in", runName), what, [
    `longhand train ${flags} --size small --steps ${recipe.steps} --seed ${recipe.seed} --threads 1 --dtype f16`,
  ]);
}

const dropped = join(out, "built-in", "dropped");
if (existsSync(join(dropped, "model"))) {
  const { identity } = JSON.parse(readFileSync(join(dropped, "manifest.json"), "utf8"));
  const recipe = identity.recipe as TrainingRecipe;
  const files = readdirSync(join(dropped, "model"));
  replaceFolder(
    join("models", "longhand-drope"),
    new Map(files.map((file) => [file, readFileSync(join(dropped, "model", file))])),
  );
  await writeCard(
    "longhand-drope",
    recipe,
    dropped,
    "RoPE, dropped when it was trained, then trained on without any position encoding (DroPE).",
    [
      `longhand train --encoding rope --size small --steps ${recipe.steps} --seed 1 --threads 1 --out rope`,
      `longhand drop rope ${dropFlags}`,
    ],
  );
} else {
  console.log("longhand-drope: not dropped yet");
}

function replaceFolder(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [file, bytes] of files) writeFileSync(join(folder, file), bytes);
}

async function writeCard(
  name: string,
  recipe: TrainingRecipe,
  run: string,
  what: string,
  commands: readonly string[],
): Promise<void> {
  const folder = join("models", name);
  const rows = readFileSync(join(run, "rows.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TrainingRow);
  const last = rows.findLast(({ kind }) => kind === "validation")!;
  const weights = await openWeights(folder);
  const sizes = weights.names.map((tensor) => weights.info(tensor).shape.reduce((product, n) => product * n, 1));
  const parameters = sizes.reduce((sum, size) => sum + size, 0);
  await weights.close();
  writeFileSync(
    join(folder, "README.md"),
    `# ${name}

${what} ${(parameters / 1e6).toFixed(2)} million parameters, trained on ${recipe.length} bytes a sequence.

- Blocks: Llama's, ${recipe.numLayers} layers of ${recipe.hiddenSize}, ${recipe.numHeads} heads. Vocabulary: the 256 bytes, and a BOS in front of every sequence.
- Text: speeches on the State of the Union and Moby-Dick (both in the public domain), ${((commands.length * recipe.steps * recipe.batchSize * recipe.length) / 1e6).toFixed(1)} million bytes seen.
- Loss on text kept apart, at the trained length: ${last.loss.toFixed(3)} nats a byte.
${await losses(folder, recipe)}
Trained by ${commands.map((command) => `\`${command}\``).join(", then ")}.
`,
  );
  console.log(`${name}: ${last.loss.toFixed(3)}`);
}

/** A table of losses by position to 16 times the trained length. */
async function losses(folder: string, { encoding, length: trained, bosTokenId }: TrainingRecipe): Promise<string> {
  // The table ends at the trained length.
  if (encoding.includes("learned")) return "";
  const model = await loadLanguageModel(folder, { threads: 1 });
  const windows: Float64Array[] = [];
  const length = 16 * trained + 1;
  for (const piece of await heldOutPieces(16, length))
    windows.push((await model.score(windowTokens(piece, 0, length, bosTokenId))).negativeLogLikelihood);
  await model.dispose();
  const lines = ["", "| positions | nats a byte (95 % interval) |", "| --- | --- |"];
  for (const { from, to, mean, low, high } of lossByDoubling(windows, trained)) {
    lines.push(`| ${from} to ${to - 1} | ${mean.toFixed(3)} (${low!.toFixed(3)} to ${high!.toFixed(3)}) |`);
  }
  return `${lines.join("\n")}\n`;
}
