// Writes llama2.c files for tests, weights all zero.

import { ByteWriter } from "./byte-writer.ts";

export interface Llama2cSpec {
  readonly dim: number;
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly vocab: number;
  readonly seqLen: number;
  readonly tied: boolean;
}

export const smallLlama2c: Llama2cSpec = {
  dim: 16,
  hidden: 24,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  vocab: 32,
  seqLen: 8,
  tied: true,
};

export function writeLlama2c(version: 0 | 1 | 2, spec: Llama2cSpec, groupSize = 8): Uint8Array<ArrayBuffer> {
  const { dim, hidden, layers, heads, kvHeads, vocab, seqLen, tied } = spec;
  const out = new ByteWriter();
  if (version > 0) out.u32(0x616b3432).u32(version);
  for (const one of [dim, hidden, layers, heads, kvHeads, version === 0 && !tied ? -vocab : vocab, seqLen]) {
    out.u32(one >>> 0);
  }
  if (version > 0) {
    out.u8(tied ? 1 : 0);
    if (version === 2) out.u32(groupSize);
    out.padTo(256);
  }
  const kvDim = (dim / heads) * kvHeads;
  // As export.py lists them: embedding, then per layer norms and matrices, the last norm, the head.
  const matrices = [vocab * dim, ...(tied ? [] : [vocab * dim])];
  for (let layer = 0; layer < layers; layer++) {
    matrices.push(dim * dim, dim * kvDim, dim * kvDim, dim * dim, dim * hidden, dim * hidden, dim * hidden);
  }
  const norms = (2 * layers + 1) * dim;
  const weights = matrices.reduce((sum, one) => sum + one, 0);
  if (version === 2) return out.zeros(4 * norms + weights + (4 * weights) / groupSize).done();
  const tables = version === 0 ? 2 * seqLen * (dim / heads / 2) : 0;
  return out.zeros(4 * (norms + weights + tables)).done();
}
