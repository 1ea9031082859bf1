// A model's weights as one vector: what the optimiser updates and the session keeps, so that a step has three states
// (weights and two moments) instead of a hundred. Weights that decay come first. Names and shapes are those of
// src/models/names.ts, [out, in] for matrices.

import { elementCount, fromNumbers, random, type Tensor, tensor } from "../tensor/index.ts";

/** How a weight begins. */
export type Initial =
  | { readonly kind: "normal"; readonly standardDeviation: number }
  | { readonly kind: "uniform"; readonly low: number; readonly high: number }
  | { readonly kind: "constant"; readonly value: number };

export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly initial: Initial;
}

/** Where a weight lies in the vector. */
export interface PlacedParameter extends ParameterSpec {
  readonly offset: number;
  readonly size: number;
  /** Whether weight decay applies: to matrices, not to norms, biases and single numbers. */
  readonly decays: boolean;
}

export interface ParameterLayout {
  readonly parameters: readonly PlacedParameter[];
  /** P: elements of the vector. */
  readonly size: number;
  /** Elements that decay: the first of the vector. */
  readonly decayed: number;
}

/** Places parameters in one vector: those that decay first, else in the order given. */
export function layoutParameters(specs: readonly ParameterSpec[]): ParameterLayout {
  const decays = ({ shape }: ParameterSpec): boolean => shape.length >= 2;
  let offset = 0;
  const place = (spec: ParameterSpec): PlacedParameter => {
    const size = elementCount(spec.shape);
    offset += size;
    return { ...spec, offset: offset - size, size, decays: decays(spec) };
  };
  const first = specs.filter(decays).map(place);
  const decayed = offset;
  const rest = specs.filter((spec) => !decays(spec)).map(place);
  return { parameters: [...first, ...rest], size: offset, decayed };
}

/** FNV-1a, 64 bits. */
function hash(text: string): bigint {
  let out = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) out = BigInt.asUintN(64, (out ^ BigInt(byte)) * 0x100000001b3n);
  return out;
}

/** Initial weights. Each is drawn from a stream of its own, seeded by the seed and the weight's name, so that models
 *  that differ in their encoding alone begin alike in everything else. */
export function initialWeights(layout: ParameterLayout, seed: number): Float32Array {
  const out = new Float32Array(layout.size);
  for (const { name, initial, offset, size } of layout.parameters) {
    const part = out.subarray(offset, offset + size);
    if (initial.kind === "constant") {
      part.fill(initial.value);
      continue;
    }
    const stream = random(BigInt.asUintN(64, hash(name) + BigInt(seed) * 0x9e3779b97f4a7c15n));
    if (initial.kind === "normal") part.set(stream.normals(size, initial.standardDeviation));
    else for (let i = 0; i < size; i++) part[i] = initial.low + (initial.high - initial.low) * stream.uniform();
  }
  return out;
}

/** Weights by name, as copies out of the vector. */
export function unpackWeights(layout: ParameterLayout, vector: Float32Array): Map<string, Tensor<"f32">> {
  if (vector.length !== layout.size) {
    throw new RangeError(`unpackWeights: expected ${layout.size} numbers, got ${vector.length}`);
  }
  return new Map(
    layout.parameters.map(({ name, shape, offset, size }) => [
      name,
      tensor("f32", shape, vector.slice(offset, offset + size)) as Tensor<"f32">,
    ]),
  );
}

/** The vector of weights by name. Throws RangeError for a missing, unknown or ill-shaped weight. */
export function packWeights(layout: ParameterLayout, weights: ReadonlyMap<string, Tensor>): Float32Array {
  const out = new Float32Array(layout.size);
  const known = new Set(layout.parameters.map(({ name }) => name));
  const unknown = [...weights.keys()].find((name) => !known.has(name));
  if (unknown !== undefined) throw new RangeError(`packWeights: expected weights of this model, got ${unknown}`);
  for (const { name, shape, offset } of layout.parameters) {
    const weight = weights.get(name);
    if (weight === undefined || weight.dtype !== "f32" || weight.shape.join() !== shape.join()) {
      const got = weight === undefined ? "none" : `${weight.dtype}[${weight.shape.join(", ")}]`;
      throw new RangeError(`packWeights: expected ${name} to be f32[${shape.join(", ")}], got ${got}`);
    }
    out.set(weight.data, offset);
  }
  return out;
}

/** A mask of the vector: 1 where weight decay applies. */
export function decayMask({ size, decayed }: ParameterLayout): Tensor<"f32"> {
  return fromNumbers("f32", [size], new Float32Array(size).fill(1, 0, decayed));
}
