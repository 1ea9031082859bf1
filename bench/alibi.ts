// ALiBi as channels of queries and keys against the same bias as numbers added to scores: seconds and peak memory as the
// text grows, on a BLOOM of two layers with 16 heads of 64 channels and random weights.
//
//   node --import ./scripts/ts-hook.mjs bench/alibi.ts [longest=16384]
//
// Every row is a process of its own, so that its peak is its own; both score the same tokens, in chunks of the engine's
// choice (512; fewer where scores exist), and their losses are compared. "kept" is what weights and the key/value cache
// need. Prints a table; the last line is one JSON object. Exit 1 when losses differ by more than 1e-4, or when the columns'
// memory beyond what is kept grows by more than 64 MB from the shortest text to the longest.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { loadLanguageModel } from "../src/engine/index.ts";

const [hiddenSize, numHeads, numLayers, vocabSize] = [1024, 16, 2, 1024];
const forms = ["columns", "dense"] as const;

interface Row {
  readonly form: (typeof forms)[number];
  readonly length: number;
  readonly seconds: number;
  readonly peakBytes: number;
  readonly keptBytes: number;
  readonly losses: readonly number[];
}

if (process.argv[2] === "row") {
  const [, , , folder, form, length] = process.argv as [string, string, string, string, Row["form"], string];
  process.stdout.write(JSON.stringify(await measure(folder, form, Number(length))));
} else {
  compare(Number(process.argv[2] ?? 16384));
}

async function measure(folder: string, form: Row["form"], length: number): Promise<Row> {
  const model = await loadLanguageModel(folder, { attentionBias: form });
  const tokens = Array.from({ length }, (_, i) => (i * 7919 + ((i * i) % 613)) % vocabSize);
  await model.score(tokens.slice(0, 64));
  const { seconds, negativeLogLikelihood } = await model.score(tokens);
  await model.dispose();
  const headDim = hiddenSize / numHeads + (form === "columns" ? 8 : 0);
  const weights = 12 * hiddenSize ** 2 * numLayers + vocabSize * hiddenSize;
  return {
    form,
    length,
    seconds,
    peakBytes: process.resourceUsage().maxRSS * 1024,
    keptBytes: 4 * (weights + 2 * numLayers * numHeads * headDim * length),
    losses: Array.from(negativeLogLikelihood),
  };
}

function compare(longest: number): void {
  if (!Number.isInteger(longest) || longest < 2048) {
    throw new RangeError(`bench/alibi: expected a longest text of at least 2048 tokens, got ${process.argv[2]}`);
  }
  const folder = mkdtempSync(join(tmpdir(), "alibi-"));
  const rows: Row[] = [];
  try {
    writeModel(folder);
    console.log("tokens   form      seconds   tokens/s   peak MB   beyond kept MB   largest difference");
    for (let length = 2048; length <= longest; length *= 2) {
      for (const form of forms) {
        const child = spawnSync(
          process.execPath,
          [...process.execArgv, import.meta.filename, "row", folder, form, String(length)],
          { encoding: "utf8", maxBuffer: 2 ** 28 },
        );
        if (child.status !== 0) throw new Error(`bench/alibi: ${form} of ${length} tokens failed\n${child.stderr}`);
        const row = JSON.parse(child.stdout) as Row;
        rows.push(row);
        const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
        console.log(
          `${String(length).padEnd(8)} ${form.padEnd(9)} ${row.seconds.toFixed(2).padStart(7)} ` +
            `${(length / row.seconds).toFixed(0).padStart(10)} ${mb(row.peakBytes).padStart(9)} ` +
            `${mb(row.peakBytes - row.keptBytes).padStart(16)}   ${form === "dense" ? difference(rows).toExponential(1) : ""}`,
        );
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  const columns = rows.filter(({ form }) => form === "columns");
  const beyond = columns.map(({ peakBytes, keptBytes }) => peakBytes - keptBytes);
  const growth = beyond.at(-1)! - beyond[0]!;
  const worst = difference(rows);
  if (worst > 1e-4 || growth > 64 * 2 ** 20) {
    console.error(`bench/alibi: losses differ by ${worst}; memory beyond what is kept grew by ${growth} bytes`);
    process.exitCode = 1;
  }
  const results = rows.map(({ losses: _, ...row }) => row);
  console.log(
    JSON.stringify({
      bench: "alibi",
      cpu: cpus()[0]?.model,
      node: process.version,
      load: loadavg()[0],
      largestDifference: worst,
      results,
    }),
  );
}

/** Of the losses of all lengths that both forms have. */
function difference(rows: readonly Row[]): number {
  let worst = 0;
  for (const row of rows.filter(({ form }) => form === "dense")) {
    const other = rows.find(({ form, length }) => form === "columns" && length === row.length)!;
    row.losses.forEach((loss, i) => {
      worst = Math.max(worst, Math.abs(loss - other.losses[i]!));
    });
  }
  return worst;
}

/** config.json and model.safetensors with numbers of standard deviation about 0.3 / √width. */
function writeModel(folder: string): void {
  const config = {
    model_type: "bloom",
    vocab_size: vocabSize,
    hidden_size: hiddenSize,
    n_head: numHeads,
    n_layer: numLayers,
    seq_length: 2048,
    tie_word_embeddings: true,
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const shapes: [string, number[]][] = [["word_embeddings.weight", [vocabSize, hiddenSize]]];
  const linear = (name: string, rows: number, columns: number): void => {
    shapes.push([`${name}.weight`, [rows, columns]], [`${name}.bias`, [rows]]);
  };
  const norm = (name: string): void =>
    void shapes.push([`${name}.weight`, [hiddenSize]], [`${name}.bias`, [hiddenSize]]);
  norm("word_embeddings_layernorm");
  norm("ln_f");
  for (let i = 0; i < numLayers; i++) {
    norm(`h.${i}.input_layernorm`);
    norm(`h.${i}.post_attention_layernorm`);
    linear(`h.${i}.self_attention.query_key_value`, 3 * hiddenSize, hiddenSize);
    linear(`h.${i}.self_attention.dense`, hiddenSize, hiddenSize);
    linear(`h.${i}.mlp.dense_h_to_4h`, 4 * hiddenSize, hiddenSize);
    linear(`h.${i}.mlp.dense_4h_to_h`, hiddenSize, 4 * hiddenSize);
  }
  let state = 1;
  const uniform = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  const header: Record<string, unknown> = {};
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const [name, shape] of shapes) {
    const size = shape.reduce((product, n) => product * n, 1);
    const isNorm = /norm|ln_f/.test(name) && name.endsWith("weight");
    const scale = shape.length === 2 ? 2 / Math.sqrt(shape[1]!) : 0.2;
    const data = Float32Array.from({ length: size }, () => (isNorm ? 1 : 0) + scale * uniform());
    parts.push(new Uint8Array(data.buffer));
    header[name] = { dtype: "F32", shape, data_offsets: [at, at + 4 * size] };
    at += 4 * size;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(text.length), true);
  writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, text, ...parts]));
}
