// Repacked weights where they are used: ONNX Runtime's MatMulNBits plus the correction by block sums, against products in
// float64 of the float32 weights. The reference backend reads the same blocks.

import { describe, expect, test } from "vitest";
import { onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import type { QuantizedMatrix } from "../../src/formats/index.ts";
import { graphBuilder } from "../../src/graph/index.ts";
import { random, tensor } from "../../src/tensor/index.ts";
import {
  blockElements,
  ggufInMemory,
  type KindFixture,
  randomBlocks,
  weightsFixture,
} from "../support/weights-fixture.ts";

const rows = 24;
const columns = 768;
const onnx = onnxRuntimeBackend({ provider: "node" });
const reference = referenceBackend;

/** Blocks as a quantiser leaves them: scales of 0.03 to 0.25, so that no element drowns the others. */
function moderate(row: KindFixture): Uint8Array {
  const data = randomBlocks(row, 77, rows * columns);
  const blockBytes = (data.length / (rows * columns)) * blockElements(row.type);
  for (let at = 0; at < data.length; at += blockBytes) {
    for (const half of row.halves) data[at + half + 1] = (data[at + half + 1]! & 0x83) | 0x28;
    if (row.kind === "MXFP4") data[at] = 122 + (data[at]! & 3);
    if (row.kind === "NVFP4") for (let i = 0; i < 4; i++) data[at + i] = 0x20 | (data[at + i]! & 15);
  }
  return data;
}

function activations(tokens: number): Float32Array {
  const stream = random(5);
  return Float32Array.from({ length: tokens * columns }, () => stream.normal());
}

/** x · Wᵀ as the engine would do it. */
async function product(matrix: QuantizedMatrix, x: Float32Array, tokens: number, accuracyLevel: 0 | 4) {
  const { bits, blockSize, blocks, scales, blockMinimum } = matrix;
  const numBlocks = columns / blockSize;
  const g = graphBuilder("repacked");
  const input = g.input("x", "f32", [tokens, columns]);
  const weight = {
    blocks: g.parameter("blocks", "u8", [rows, numBlocks, (blockSize * bits) / 8]),
    scales: g.parameter("scales", "f32", [rows, numBlocks]),
  };
  let y = g.quantizedMatmul(input, weight, { bits, blockSize, accuracyLevel });
  if (blockMinimum !== null) {
    const sums = g.sum(g.reshape(input, [tokens, numBlocks, blockSize]), [2]);
    y = g.add(y, g.matmul(sums, g.parameter("minimum", "f32", [rows, numBlocks]), { transposeB: true }));
  }
  g.output("y", y);
  const session = await onnx.load(g.build(), {
    blocks: tensor("u8", [rows, numBlocks, (blockSize * bits) / 8], blocks),
    scales: tensor("f32", [rows, numBlocks], scales),
    ...(blockMinimum === null ? {} : { minimum: tensor("f32", [rows, numBlocks], blockMinimum) }),
  });
  const { y: out } = await session.run({ x: tensor("f32", [tokens, columns], x) });
  await session.dispose();
  return out!.data as Float32Array;
}

const repackable = weightsFixture.kinds.filter(({ kind }) => kind !== "F16" && kind !== "BF16");

describe("x · Wᵀ of repacked weights", () => {
  const cases = repackable.flatMap((row) => [1, 5].map((tokens) => ({ row, tokens, kind: row.kind })));
  test.for(cases)("$kind, $tokens tokens, is that of the float32 weights", async ({ row, tokens }) => {
    const weights = await ggufInMemory([{ name: "w", type: row.type, shape: [rows, columns], data: moderate(row) }]);
    const w = await weights.readFloat32("w");
    const matrix = (await weights.readQuantized("w"))!;
    const x = activations(tokens);
    const exact = await product(matrix, x, tokens, 0);
    const rounded = await product(matrix, x, tokens, 4);
    const blocksARow = columns / matrix.blockSize;
    for (let t = 0; t < tokens; t++) {
      for (let n = 0; n < rows; n++) {
        let sum = 0;
        let size = 0;
        let rounding = 0;
        for (let b = 0; b < blocksARow; b++) {
          const least = matrix.blockMinimum?.[n * blocksARow + b] ?? 0;
          let most = 0;
          let around = 0;
          for (let k = b * matrix.blockSize; k < (b + 1) * matrix.blockSize; k++) {
            const term = x[t * columns + k]! * w[n * columns + k]!;
            sum += term;
            size += Math.abs(term) + Math.abs(x[t * columns + k]! * least);
            most = Math.max(most, Math.abs(x[t * columns + k]!));
            around += Math.abs(w[n * columns + k]! - least);
          }
          // Activations become int8: each is off by at most half of most / 127.
          rounding += around * (most / 127) * 0.5;
        }
        const at = t * rows + n;
        // Float32 sums of 768 terms: 2.3e-7 of their size seen. Roundings of int8 have either sign: a tenth of the
        // bound seen.
        expect(Math.abs(exact[at]! - sum), `level 0, [${t}, ${n}]`).toBeLessThanOrEqual(1e-6 * size);
        expect(Math.abs(rounded[at]! - sum), `level 4, [${t}, ${n}]`).toBeLessThanOrEqual(rounding / 5 + 1e-6 * size);
      }
    }
  });

  test.for(repackable)("$kind: the graph's dequantize reads the blocks as they are meant", async (row) => {
    const weights = await ggufInMemory([{ name: "w", type: row.type, shape: [rows, columns], data: moderate(row) }]);
    const w = await weights.readFloat32("w");
    const { bits, blockSize, blocks, scales, blockMinimum } = (await weights.readQuantized("w"))!;
    const numBlocks = columns / blockSize;
    const g = graphBuilder("dequantize");
    const parts = {
      blocks: g.parameter("blocks", "u8", [rows, numBlocks, (blockSize * bits) / 8]),
      scales: g.parameter("scales", "f32", [rows, numBlocks]),
    };
    g.output("w", g.dequantize(parts, { bits, blockSize }));
    const session = await reference.load(g.build(), {
      blocks: tensor("u8", [rows, numBlocks, (blockSize * bits) / 8], blocks),
      scales: tensor("f32", [rows, numBlocks], scales),
    });
    const { w: read } = await session.run({});
    const got = read!.data as Float32Array;
    for (let i = 0; i < w.length; i++) {
      const least = blockMinimum?.[Math.floor(i / blockSize)] ?? 0;
      const allowed = 2 ** -23 * (Math.abs(got[i]!) + Math.abs(least));
      if (!(Math.abs(got[i]! + least - w[i]!) <= allowed)) expect.fail(`[${i}]: ${got[i]} + ${least} is not ${w[i]}`);
    }
    await session.dispose();
  });
});
