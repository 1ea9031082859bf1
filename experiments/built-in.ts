// Makes the built-in models out of their trainings: models/NAME, in Hugging Face form, float16, with a card.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT built-in
//   node --import ./scripts/ts-hook.mjs experiments/built-in.ts OUT
//
// Each card names the one command that trains its model again: the same bytes on the same kind of processor.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadLanguageModel } from "../src/engine/index.ts";
import { lossByDoubling, windowTokens } from "../src/evaluation/index.ts";
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
  "longhand-drope": {
    run: "drope",
    flags: "--encoding rope --drop-at 0.6",
    what: "RoPE for the first 60 % of training, none for the rest (DroPE).",
  },
};

for (const [name, { run: runName, flags, what }] of Object.entries(models)) {
  const run = await readRun(out, `built-in/${runName}`);
  if (run === null || run.checkpoint.step < run.recipe.steps) {
    console.log(`${name}: not trained yet`);
    continue;
  }
  const { recipe, checkpoint } = run;
  const files = exportModel({ ...exportOptionsOf(recipe, checkpoint), dtype: "f16" });
  const folder = join("models", name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [file, bytes] of files) writeFileSync(join(folder, file), bytes);
  const rows = readFileSync(join(out, "built-in", runName, "rows.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as TrainingRow);
  const last = rows.findLast(({ kind }) => kind === "validation")!;
  const beyond = await losses(folder, recipe);
  const parameters = [...checkpoint.weights.values()].reduce((sum, { data }) => sum + data.length, 0);
  writeFileSync(
    join(folder, "README.md"),
    `# ${name}

${what} ${(parameters / 1e6).toFixed(2)} million parameters, trained on ${recipe.length} bytes a sequence.

- Blocks: Llama's, ${recipe.numLayers} layers of ${recipe.hiddenSize}, ${recipe.numHeads} heads. Vocabulary: the 256 bytes${recipe.bosTokenId === null ? "" : ", and a BOS in front of every sequence"}.
- Text: speeches on the State of the Union and Moby-Dick (both in the public domain), ${((recipe.steps * recipe.batchSize * recipe.length) / 1e6).toFixed(1)} million bytes seen.
- Loss on text kept apart, at the trained length: ${last.loss.toFixed(3)} nats a byte.
${beyond}
Trained by \`longhand train ${flags} --size small --steps ${recipe.steps} --seed ${recipe.seed} --threads 1 --dtype f16\`.
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
