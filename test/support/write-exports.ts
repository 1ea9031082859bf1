// Writes every case of exports.ts as a folder, for reference/training_exports.py:
//
//   node --import ./scripts/ts-hook.mjs test/support/write-exports.ts FOLDER
//
// and beside them tokens.json, what is scored.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportModel } from "../../src/training/index.ts";
import { caseOptions, exportCases, exportTokenizers, exportTokens, exportWeights, trainedWeights } from "./exports.ts";

const folder = process.argv[2];
if (folder === undefined) throw new Error("expected a folder to write to");

function write(name: string, files: ReadonlyMap<string, Uint8Array>): void {
  mkdirSync(join(folder!, name), { recursive: true });
  for (const [file, bytes] of files) writeFileSync(join(folder!, name, file), bytes);
}

for (const one of exportCases) {
  write(one.name, exportModel({ ...caseOptions(one), weights: exportWeights(one) }));
  if (one.trained)
    write(`${one.name}-trained`, exportModel({ ...caseOptions(one), weights: await trainedWeights(one) }));
}
for (const [name, tokenizer] of Object.entries(exportTokenizers)) {
  const one = exportCases.find((each) => each.form === "llama")!;
  const spec = { ...one.spec, vocabSize: 260 };
  const wide = { ...one, spec };
  write(name, exportModel({ ...caseOptions(wide), weights: exportWeights(wide), tokenizer }));
}
writeFileSync(join(folder, "tokens.json"), JSON.stringify(exportTokens(60)));
