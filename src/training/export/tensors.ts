// Weights under our names as a checkpoint's tensors: the families' name maps read backwards. What a map reads as rows of a
// fused tensor, turned, or shifted, is joined, turned and shifted the other way.

import { type NameMap, ruleFor, weightParts } from "../../models/names.ts";
import type { ModelSpec } from "../../models/spec.ts";
import { elementCount, fromNumbers, type Tensor, toNumbers } from "../../tensor/index.ts";
import type { TrainableSpec } from "../model.ts";

/** Dtypes of an exported checkpoint. */
export type ExportDtype = "f32" | "f16" | "bf16";

/** Largest finite number. */
const largest = { f32: 3.4028234663852886e38, f16: 65504, bf16: 3.3895313892515355e38 } as const;

interface Whole {
  readonly transpose: boolean;
  readonly columns: readonly number[];
  /** Rows and what they hold. */
  readonly parts: { readonly to: number; readonly weight: string; readonly data: Float64Array }[];
  readonly rows: { readonly from: number; readonly to: number; readonly data: Float64Array }[];
}

/**
 * A checkpoint's tensors from our weights.
 *
 * @throws RangeError for a weight that the map has no name for, rows of a fused tensor that are missing, and numbers that
 *   the dtype cannot hold
 */
export function checkpointTensors(
  map: NameMap,
  spec: TrainableSpec,
  weights: ReadonlyMap<string, Tensor>,
  dtype: ExportDtype,
): Map<string, Tensor> {
  const tensors = new Map<string, Whole>();
  for (const [name, weight] of weights) {
    const rule = ruleFor(map, name);
    if (rule === undefined) throw new RangeError(`exportModel: expected weights of this form, got ${name}`);
    const data = Float64Array.from(toNumbers(weight));
    if (rule.add !== undefined) for (let i = 0; i < data.length; i++) data[i] = data[i]! - rule.add;
    const columns = weight.shape.slice(1);
    const whole = tensors.get(rule.tensor) ?? { transpose: rule.transpose ?? false, columns, parts: [], rows: [] };
    tensors.set(rule.tensor, whole);
    const width = elementCount(columns);
    // Rules of rows ask for the layers' attention alone.
    const ranges = rule.rows?.(spec as ModelSpec, weightParts(name).layer ?? -1) ?? [[0, weight.shape[0] ?? 1]];
    let at = 0;
    for (const [from, to] of ranges) {
      whole.rows.push({ from, to, data: data.subarray(at, at + (to - from) * width) });
      at += (to - from) * width;
    }
    whole.parts.push({ to: ranges.at(-1)![1], weight: name, data });
    if (at !== data.length) throw new RangeError(`exportModel: expected ${at} numbers in ${name}, got ${data.length}`);
  }
  return new Map([...tensors].map(([name, whole]) => [name, assemble(name, whole, weights, dtype)]));
}

function assemble(name: string, whole: Whole, weights: ReadonlyMap<string, Tensor>, dtype: ExportDtype): Tensor {
  const { columns, parts, rows, transpose } = whole;
  const scalar = weights.get(parts[0]!.weight)!.shape.length === 0;
  const count = Math.max(...rows.map(({ to }) => to));
  const width = elementCount(columns);
  let data = new Float64Array(count * width);
  for (const row of rows) data.set(row.data, row.from * width);
  if (rows.reduce((sum, { from, to }) => sum + to - from, 0) !== count) {
    throw new RangeError(
      `exportModel: expected all parts of ${name}, got ${parts.map(({ weight }) => weight).join(", ")}`,
    );
  }
  let shape = scalar ? [] : [count, ...columns];
  if (transpose) {
    const turned = new Float64Array(data.length);
    for (let i = 0; i < count; i++) for (let j = 0; j < width; j++) turned[j * count + i] = data[i * width + j]!;
    data = turned;
    shape = [width, count];
  }
  const most = data.reduce((most, x) => Math.max(most, Number.isNaN(x) ? Number.POSITIVE_INFINITY : Math.abs(x)), 0);
  if (!(most <= largest[dtype])) {
    throw new RangeError(
      `exportModel: expected numbers within ${largest[dtype]} for ${dtype} in ${name}, got ${most}` +
        (dtype === "f16" && Number.isFinite(most) ? "; export as bf16 or f32" : ""),
    );
  }
  return fromNumbers(dtype, shape, data) as Tensor;
}
