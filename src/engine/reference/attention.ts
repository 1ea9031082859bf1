// Rotation and attention as plain loops: what the fused kernels of other backends must agree with.

import type { AttentionAttributes, Attributes, Inputs } from "../../graph/index.ts";
import { type Numbers, numbers, type Operand } from "./arrays.ts";

/** Turns heads of x [B, T, H·D] in place-free copy; row t of the tables turns token t. */
export function rotary(
  x: Operand,
  cos: Operand,
  sin: Operand,
  { numHeads, layout }: Attributes["rotary"],
  firstRow = 0,
): Float64Array {
  const [batch, tokens, width] = x.shape as [number, number, number];
  const headDim = width / numHeads;
  const pairs = cos.shape[1]!;
  const out = Float64Array.from(x.data);
  for (let b = 0; b < batch; b++) {
    for (let t = 0; t < tokens; t++) {
      for (let h = 0; h < numHeads; h++) {
        const at = (b * tokens + t) * width + h * headDim;
        for (let p = 0; p < pairs; p++) {
          const i = layout === "half" ? at + p : at + 2 * p;
          const j = layout === "half" ? i + pairs : i + 1;
          const c = cos.data[(firstRow + t) * pairs + p]!;
          const s = sin.data[(firstRow + t) * pairs + p]!;
          out[i] = x.data[i]! * c - x.data[j]! * s;
          out[j] = x.data[j]! * c + x.data[i]! * s;
        }
      }
    }
  }
  return out;
}

/** softmax(mask(cap(scale · q·k) + bias)) · v, one query at a time. Returns output, new keys and new values. */
export function attention(inputs: Inputs<"attention", Operand>, attributes: AttentionAttributes): Numbers[] {
  const { numHeads, numKeyValueHeads, scale, softcap, causal, window, layout } = attributes;
  const { pastKey, pastValue, cos, sin, bias, sinks } = inputs;
  let { query, key, value } = inputs;
  const [batch, tokens] = query.shape as [number, number];
  if (key === undefined || value === undefined) [query, key, value] = unpack(query, numHeads, numKeyValueHeads);
  const headDim = query.shape[2]! / numHeads;
  const newKeys = key.shape[1]!;
  const capacity = pastKey?.shape[2] ?? 0;
  const past = inputs.pastLength?.data[0] ?? capacity;
  if (past < 0 || past > capacity) {
    throw new RangeError(`attention: expected pastLength in 0 .. ${capacity}, got ${past}`);
  }
  const all = past + newKeys;
  if (bias !== undefined && bias.shape[3] !== all) {
    throw new RangeError(`attention: expected a bias over ${all} keys, got one over ${bias.shape[3]}`);
  }
  if (cos !== undefined && cos.shape[0]! < all) {
    throw new RangeError(`attention: expected tables of at least ${all} rows, got ${cos.shape[0]}`);
  }
  let q: ArrayLike<number> = query.data;
  let k: ArrayLike<number> = key.data;
  if (cos !== undefined && sin !== undefined) {
    q = rotary(query, cos, sin, { numHeads, layout }, past);
    k = rotary(key, cos, sin, { numHeads: numKeyValueHeads, layout }, past);
  }

  const output = numbers(query.dtype, batch * tokens * numHeads * headDim);
  const newKey = numbers(query.dtype, batch * numKeyValueHeads * newKeys * headDim);
  const newValue = numbers(query.dtype, newKey.length);
  const scores = new Float64Array(all);
  const mixed = new Float64Array(headDim);
  const group = numHeads / numKeyValueHeads;

  for (let b = 0; b < batch; b++) {
    for (let g = 0; g < numKeyValueHeads; g++) {
      const cache = (b * numKeyValueHeads + g) * capacity * headDim;
      const newRow = (j: number): number => (b * newKeys + j) * numKeyValueHeads * headDim + g * headDim;
      for (let j = 0; j < newKeys; j++) {
        for (let d = 0; d < headDim; d++) {
          const at = ((b * numKeyValueHeads + g) * newKeys + j) * headDim + d;
          newKey[at] = k[newRow(j) + d]!;
          newValue[at] = value.data[newRow(j) + d]!;
        }
      }
      for (let h = g * group; h < (g + 1) * group; h++) {
        for (let t = 0; t < tokens; t++) {
          const last = causal ? past + t : all - 1;
          const first = window === null ? 0 : Math.max(0, last - window + 1);
          const at = (b * tokens + t) * numHeads * headDim + h * headDim;
          let most = sinks === undefined ? -Infinity : sinks.data[h]!;
          for (let j = first; j <= last; j++) {
            const [source, row] = j < past ? [pastKey!.data, cache + j * headDim] : [k, newRow(j - past)];
            let dot = 0;
            for (let d = 0; d < headDim; d++) dot += q[at + d]! * source[row + d]!;
            let score = dot * scale;
            if (softcap > 0) score = softcap * Math.tanh(score / softcap);
            if (bias !== undefined) {
              const biasHead = (bias.shape[0] === 1 ? 0 : b) * bias.shape[1]! + (bias.shape[1] === 1 ? 0 : h);
              score += bias.data[(biasHead * tokens + t) * all + j]!;
            }
            scores[j] = score;
            most = Math.max(most, score);
          }
          let total = sinks === undefined ? 0 : Math.exp(sinks.data[h]! - most);
          mixed.fill(0);
          for (let j = first; j <= last; j++) {
            const weight = Math.exp(scores[j]! - most);
            total += weight;
            const [source, row] = j < past ? [pastValue!.data, cache + j * headDim] : [value.data, newRow(j - past)];
            for (let d = 0; d < headDim; d++) mixed[d]! += weight * source[row + d]!;
          }
          for (let d = 0; d < headDim; d++) output[at + d] = mixed[d]! / total;
        }
      }
    }
  }
  return [output, newKey, newValue];
}

/** Query, key and value out of one tensor [B, T, (H + 2K)·D]. */
function unpack(packed: Operand, numHeads: number, numKeyValueHeads: number): [Operand, Operand, Operand] {
  const [batch, tokens, width] = packed.shape as [number, number, number];
  const headDim = width / (numHeads + 2 * numKeyValueHeads);
  let first = 0;
  const part = (heads: number): Operand => {
    const size = heads * headDim;
    const data = numbers(packed.dtype, batch * tokens * size);
    for (let row = 0; row < batch * tokens; row++) {
      data.set(packed.data.subarray(row * width + first, row * width + first + size), row * size);
    }
    first += size;
    return { dtype: packed.dtype, shape: [batch, tokens, size], data };
  };
  return [part(numHeads), part(numKeyValueHeads), part(numKeyValueHeads)];
}

/**
 * The gradients of attention's query, key, value and bias, one query at a time. With p the probabilities and
 * d = Σ output · gradient of a query: the gradient of a score is p · (gradient · v − d), that of a value p · gradient.
 */
export function attentionGradient(
  inputs: Inputs<"attentionGradient", Operand>,
  attributes: Attributes["attentionGradient"],
): Numbers[] {
  const { numHeads, numKeyValueHeads, scale, softcap, causal, window, layout } = attributes;
  const { cos, sin, bias, output, outputGradient } = inputs;
  let { query, key, value } = inputs;
  const isPacked = key === undefined || value === undefined;
  const [batch, tokens] = query.shape as [number, number];
  if (key === undefined || value === undefined) [query, key, value] = unpack(query, numHeads, numKeyValueHeads);
  const headDim = query.shape[2]! / numHeads;
  const keys = key.shape[1]!;
  let q: ArrayLike<number> = query.data;
  let k: ArrayLike<number> = key.data;
  if (cos !== undefined && sin !== undefined) {
    q = rotary(query, cos, sin, { numHeads, layout });
    k = rotary(key, cos, sin, { numHeads: numKeyValueHeads, layout });
  }
  const dq = new Float64Array(query.data.length);
  const dk = new Float64Array(key.data.length);
  const dv = new Float64Array(value.data.length);
  const db = new Float64Array(bias?.data.length ?? 0);
  const weights = new Float64Array(keys);
  const slopes = new Float64Array(keys).fill(1);
  const group = numHeads / numKeyValueHeads;

  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < numHeads; h++) {
      const row = (j: number): number => ((b * keys + j) * numKeyValueHeads + Math.floor(h / group)) * headDim;
      for (let t = 0; t < tokens; t++) {
        const last = causal ? t : keys - 1;
        const first = window === null ? 0 : Math.max(0, last - window + 1);
        const at = (b * tokens + t) * numHeads * headDim + h * headDim;
        const biasAt =
          bias === undefined
            ? 0
            : (((bias.shape[0] === 1 ? 0 : b) * bias.shape[1]! + (bias.shape[1] === 1 ? 0 : h)) * tokens + t) * keys;
        let most = -Infinity;
        for (let j = first; j <= last; j++) {
          let score = 0;
          for (let d = 0; d < headDim; d++) score += q[at + d]! * k[row(j) + d]! * scale;
          if (softcap > 0) {
            const capped = Math.tanh(score / softcap);
            score = softcap * capped;
            slopes[j] = 1 - capped * capped;
          }
          if (bias !== undefined) score += bias.data[biasAt + j]!;
          weights[j] = score;
          most = Math.max(most, score);
        }
        let total = 0;
        for (let j = first; j <= last; j++) {
          weights[j] = Math.exp(weights[j]! - most);
          total += weights[j]!;
        }
        let mean = 0;
        for (let d = 0; d < headDim; d++) mean += output.data[at + d]! * outputGradient.data[at + d]!;
        for (let j = first; j <= last; j++) {
          const weight = weights[j]! / total;
          let dot = 0;
          for (let d = 0; d < headDim; d++) {
            dot += outputGradient.data[at + d]! * value.data[row(j) + d]!;
            dv[row(j) + d]! += weight * outputGradient.data[at + d]!;
          }
          const ofScore = weight * (dot - mean);
          if (bias !== undefined) db[biasAt + j]! += ofScore;
          const ofProduct = ofScore * slopes[j]! * scale;
          for (let d = 0; d < headDim; d++) {
            dq[at + d]! += ofProduct * k[row(j) + d]!;
            dk[row(j) + d]! += ofProduct * q[at + d]!;
          }
        }
      }
    }
  }

  const turnBack = (data: Float64Array, like: Operand, heads: number): Float64Array => {
    if (cos === undefined || sin === undefined) return data;
    const back = { ...sin, data: sin.data.map((s) => -s) };
    return rotary({ ...like, data }, cos, back, { numHeads: heads, layout });
  };
  const settled = (data: Float64Array): Numbers => {
    const out = numbers(query.dtype, data.length);
    out.set(data);
    return out;
  };
  const parts = [turnBack(dq, query, numHeads), turnBack(dk, key, numKeyValueHeads), dv].map(settled);
  const ofBias = bias === undefined ? [] : [settled(db)];
  if (!isPacked) return [...parts, ...ofBias];
  const widths = [numHeads, numKeyValueHeads, numKeyValueHeads].map((heads) => heads * headDim);
  const width = widths.reduce((a, x) => a + x, 0);
  const packed = numbers(query.dtype, batch * tokens * width);
  for (let r = 0; r < batch * tokens; r++) {
    let to = r * width;
    parts.forEach((part, i) => {
      packed.set(part.subarray(r * widths[i]!, (r + 1) * widths[i]!), to);
      to += widths[i]!;
    });
  }
  return [packed, ...ofBias];
}
