// Makes the built-in models out of their trainings: models/NAME, in Hugging Face form, float16, with a card.
//
//   node --import ./scripts/ts-hook.mjs experiments/train.ts OUT built-in
//   node --import ./scripts/ts-hook.mjs experiments/built-in.ts OUT
//   longhand drop OUT/built-in/rope --tokens 3072000 --learning-rate 0.003 --seed 1 --threads 1 --dtype f16
//     --out OUT/built-in/dropped
//   node --import ./scripts/ts-hook.mjs experiments/built-in.ts OUT
//
// Each card names the commands that train its model again. The first pass leaves RoPE's model in float32 for the drop,
// whose model the second one takes.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadLanguageModel } from "../src/engine/index.ts";
import { lossByDoubling, windowTokens } from "../src/evaluation/index.ts";
import { openWeights } from "../src/formats/index.ts";
import { exportModel, exportOptionsOf, type TrainingRecipe } from "../src/training/index.ts";
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
  await writeCard(name, recipe, what, [
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
  what: string,
  commands: readonly string[],
): Promise<void> {
  const folder = join("models", name);
  const { within, table } = await losses(folder, recipe);
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
- Loss on speeches kept apart, at the trained length: ${within.toFixed(3)} nats a byte.
${table}
Trained by ${commands.map((command) => `\`${command}\``).join(", then ")}.
`,
  );
  console.log(`${name}: ${within.toFixed(3)}`);
}

/** The mean of windows of the trained length, and a table by position to 16 times it. */
async function losses(
  folder: string,
  { encoding, length: trained, bosTokenId }: TrainingRecipe,
): Promise<{ readonly within: number; readonly table: string }> {
  const model = await loadLanguageModel(folder, { threads: 1 });
  const longest = 16 * trained + 1;
  const pieces = await heldOutPieces(16, longest);
  const score = async (piece: Uint8Array, start: number, length: number): Promise<Float64Array> =>
    (await model.score(windowTokens(piece, start, length, bosTokenId))).negativeLogLikelihood;
  let [sum, count] = [0, 0];
  for (const piece of pieces) {
    for (let start = 0; start + trained < piece.length; start += trained) {
      for (const loss of await score(piece, start, trained)) [sum, count] = [sum + loss, count + 1];
    }
  }
  const tempered = model.description.groups.some(({ logitTemperature }) => logitTemperature !== null);
  const rows: string[] = [];
  // A learned table ends at the trained length. A temperature goes with the length of the window: each row has its own.
  const lengths = encoding.includes("learned")
    ? []
    : tempered
      ? [1, 2, 4, 8, 16].map((n) => n * trained + 1)
      : [longest];
  for (const length of lengths) {
    const windows: Float64Array[] = [];
    for (const piece of pieces) windows.push(await score(piece, 0, length));
    const bins = lossByDoubling(windows, trained);
    for (const { from, to, mean, low, high } of tempered ? bins.slice(-1) : bins) {
      rows.push(`| ${from} to ${to - 1} | ${mean.toFixed(3)} (${low!.toFixed(3)} to ${high!.toFixed(3)}) |`);
    }
  }
  await model.dispose();
  const head = ["", "| positions | nats a byte (95 % interval) |", "| --- | --- |"];
  const note = tempered
    ? [
        "",
        "Each row is read in windows that end with it: the temperature of the scores, which was fitted after the drop, goes",
        "with a window's length.",
      ]
    : [];
  return { within: sum / count, table: rows.length === 0 ? "" : `${[...head, ...rows, ...note].join("\n")}\n` };
}
