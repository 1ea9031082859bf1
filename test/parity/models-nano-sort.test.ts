// A trained GPT-2 of three layers that sorts three letters (minGPT, by way of llm-viz), against the tensors that its own
// code computed: a program that shares nothing with transformers or with us.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { sharedFile } from "../support/real-files.ts";
import { safetensorsJson } from "../support/safetensors-writer.ts";

interface Stored {
  readonly shape: readonly number[];
  /** Float32, base64. */
  readonly data: string;
}

const modelPath = sharedFile("models/gpt-nano-sort/gpt-nano-sort-model.json");
const tensorsPath = sharedFile("models/gpt-nano-sort/gpt-nano-sort-t0-partials.json");

function numbersOf({ data }: Stored): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(data, "base64"));
  return new Float32Array(bytes.buffer);
}

test.skipIf(modelPath === null || tensorsPath === null)("losses are those of its own code, and it sorts", async () => {
  const { config, ...weights } = JSON.parse(readFileSync(modelPath!, "utf8"));
  const folder = mkdtempSync(join(tmpdir(), "longhand-sort-"));
  try {
    const [embedding, heads, layers, positions] = [config.n_embd, config.n_head, config.n_layer, config.block_size];
    const tensors = Object.entries(weights as Record<string, Stored>).map(([name, stored]) => {
      const data = numbersOf(stored);
      // minGPT's linear layers are [out, in]; GPT-2's are stored [in, out].
      const [rows, columns] = stored.shape as [number, number];
      const turned = /\.c_(attn|proj|fc)\.weight$/.test(name);
      const shape = turned ? [columns, rows] : stored.shape;
      const values = turned
        ? Float32Array.from(data, (_, at) => data[(at % rows) * columns + Math.floor(at / rows)]!)
        : data;
      return { name, dtype: "F32", shape, bytes: values.byteLength, values };
    });
    const header = Buffer.from(safetensorsJson(tensors));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    const data = tensors.map(({ values }) => Buffer.from(values.buffer));
    writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, header, ...data]));
    const settings = { model_type: "gpt2", n_embd: embedding, n_head: heads, n_layer: layers, n_positions: positions };
    const rest = { vocab_size: config.vocab_size, tie_word_embeddings: false };
    writeFileSync(join(folder, "config.json"), JSON.stringify({ ...settings, ...rest }));

    await using model = await loadLanguageModel(folder);
    const computed = JSON.parse(readFileSync(tensorsPath!, "utf8"));
    const ids = numbersOf(computed.idx);
    const logits = numbersOf(computed.lm_head);
    const [texts, tokens, vocabulary] = computed.lm_head.shape;
    for (let text = 0; text < texts; text++) {
      const own = ids.subarray(text * tokens, (text + 1) * tokens);
      const { negativeLogLikelihood } = await model.score(own);
      const losses = Array.from({ length: tokens - 1 }, (_, t) => {
        const row = logits.subarray((text * tokens + t) * vocabulary, (text * tokens + t + 1) * vocabulary);
        return Math.log(row.reduce((sum, logit) => sum + Math.exp(logit), 0)) - row[own[t + 1]!]!;
      });
      losses.forEach((loss, t) => {
        expect(Math.abs(negativeLogLikelihood[t]! - loss), `text ${text}, token ${t + 1}`).toBeLessThan(1e-4);
      });
    }
    const letters = [2, 0, 1, 0, 2, 1];
    const sorted: number[] = [];
    for await (const { token } of model.generate(letters, { maxTokens: 6 })) sorted.push(token);
    expect(sorted).toEqual([0, 0, 1, 1, 2, 2]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
