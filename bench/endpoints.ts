// Our losses against real servers' on the same weights: llama-cpp-python's server and llama.cpp's llama-server, within the
// trained length and beyond it.
//
//   venv/bin/python reference/llama_servers.py stories260K.gguf --serve [--scale 0.5]      (prints one line of JSON)
//   node --import ./scripts/ts-hook.mjs bench/endpoints.ts 'THAT LINE' [TEXT] [none]
//
// TEXT: a text file whose begin is scored; sentences made up when absent. The last argument is the strategy that the servers
// run: linear:2 for --scale 0.5. Prints a table; the last line is one JSON object. Exit 1 when a mean loss differs by more
// than 0.02 nats. (A single token's may differ by more: llama.cpp keeps keys and values in float16.)

import { readFileSync } from "node:fs";
import { openEndpoint } from "../src/endpoints/index.ts";
import { loadLanguageModel } from "../src/engine/index.ts";
import { openTokenizer } from "../src/formats/index.ts";

const [, , line, textFile, strategy = "none"] = process.argv as [string, string, string, string?, string?];
const { model: path, ...addresses } = JSON.parse(line) as Record<string, string>;
const sentence = "One day a little girl went to the park with her mom. She saw a big dog and was very happy. ";
const text = textFile === undefined || textFile === "" ? sentence.repeat(60) : readFileSync(textFile, "utf8");

const tokenizer = await openTokenizer(path!);
const model = await loadLanguageModel(path!);
const trained = model.description.trainedLength!;
const all = tokenizer.encode(text);
const rows = [];
for (const [name, address] of Object.entries(addresses)) {
  const endpoint = await openEndpoint(address, { tokenByToken: true });
  const longest = Math.min(all.length, (endpoint.facts.contextLength ?? 1024) - 1);
  for (const length of new Set([Math.min(trained, longest), longest])) {
    const tokens = all.slice(0, length);
    const own = (await model.score(tokens, { scaling: strategy })).negativeLogLikelihood;
    const began = performance.now();
    const theirs = (await endpoint.score(tokens)).negativeLogLikelihood;
    const seconds = (performance.now() - began) / 1000;
    const differences = Array.from(own, (loss, i) => theirs[i]! - loss);
    rows.push({
      server: name,
      length,
      own: mean(own),
      theirs: mean(theirs),
      meanDifference: mean(differences),
      maxDifference: differences.reduce((most, x) => Math.max(most, Math.abs(x)), 0),
      tokensPerSecond: Math.round(length / seconds),
    });
  }
}
await model.dispose();
console.table(rows);
console.log(JSON.stringify({ bench: "endpoints", model: model.description.name, trained, strategy, rows }));
if (rows.some((row) => Math.abs(row.meanDifference) > 0.02)) process.exitCode = 1;

function mean(list: ArrayLike<number>): number {
  return Array.from(list).reduce((sum, x) => sum + x, 0) / list.length;
}
