// The cases of ops.ts as graphs, and how far a float32 backend may be from the reference. No test runner is named here:
// ops.test.ts runs the cases in Node, test/browser runs them inside a page.

import type { Backend } from "../../src/engine/index.ts";
import { type Graph, graphBuilder, type OpName, type Value } from "../../src/graph/index.ts";
import { isFloat, type Tensor, toNumbers } from "../../src/tensor/index.ts";
import { caseTensors, type OpCase } from "./ops.ts";

/** Largest error allowed of a float32 backend, by op; `usual` for the rest, where at most 4.8e-7 was seen
 *  (onnxruntime-node 1.30.0, AVX-512). OPS_ERRORS=1 prints them. */
const usual = 1e-6;
const tolerances: Partial<Record<OpName, number>> = {
  // Sums of some hundred products of either sign, ordered by the kernel: 1.2e-5 seen, on results near 10.
  quantizedMatmul: 4e-5,
  attention: 4e-6, // 1.3e-6 seen, over 700 keys
  attentionGradient: 6e-6, // 1.4e-6 seen: sums over 150 queries
  scatterAdd: 4e-6, // 1.4e-6 seen: sums of 400 rows
};

export function toleranceOf(op: OpName): number {
  return tolerances[op] ?? usual;
}

/** Largest |a − b| / max(1, |b|); infinities and NaN must be the same. */
export function worstError(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (got.length !== expected.length) throw new Error(`expected ${expected.length} numbers, got ${got.length}`);
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    const [a, b] = [got[i]!, expected[i]!];
    if (Object.is(a, b) || a === b) continue;
    const difference = Math.abs(a - b) / Math.max(1, Math.abs(b));
    worst = Math.max(worst, Number.isNaN(difference) ? Infinity : difference);
  }
  return worst;
}

export interface CaseGraph {
  readonly graph: Graph;
  readonly feeds: Record<string, Tensor>;
  readonly weights: Record<string, Tensor>;
}

export function caseGraph(op: OpName, opCase: OpCase, seed: number): CaseGraph {
  const g = graphBuilder(`${op}: ${opCase.name}`);
  const tensors = caseTensors(opCase, seed);
  const values: Record<string, Value> = {};
  const feeds: Record<string, Tensor> = {};
  const weights: Record<string, Tensor> = {};
  for (const [name, spec] of Object.entries(opCase.inputs)) {
    (spec.weight ? weights : feeds)[name] = tensors[name]!;
    values[name] = spec.weight
      ? g.parameter(name, spec.dtype, spec.shape as number[])
      : g.input(name, spec.dtype, spec.shape);
  }
  const built = opCase.build(g, values);
  (Array.isArray(built) ? built : [built]).forEach((value: Value, i) => void g.output(`out${i}`, value));
  const graph = g.build();
  if (!graph.nodes.some((node) => node.op === op)) throw new Error(`expected ${op} in the graph of its case, got none`);
  return { graph, feeds, weights };
}

/** What a backend gives for a case, against another's: the largest error of floats. Throws where dtypes, shapes or
 *  integers differ. */
export async function compareCase(
  op: OpName,
  opCase: OpCase,
  seed: number,
  backend: Backend,
  reference: Backend,
): Promise<number> {
  const { graph, feeds, weights } = caseGraph(op, opCase, seed);
  await using expecting = await reference.load(graph, weights);
  await using session = await backend.load(graph, weights);
  const expected = await expecting.run(feeds);
  const got = await session.run(feeds);
  let worst = 0;
  for (const [name, value] of Object.entries(expected)) {
    const output = got[name]!;
    const [a, b] = [`${output.dtype}[${output.shape}]`, `${value.dtype}[${value.shape}]`];
    if (a !== b) throw new Error(`expected ${name} to be ${b}, got ${a}`);
    const [x, y] = [toNumbers(output), toNumbers(value)];
    if (isFloat(value.dtype)) worst = Math.max(worst, worstError(x, y));
    else if (x.join() !== y.join()) throw new Error(`expected ${name} to be ${y.join()}, got ${x.join()}`);
  }
  return worst;
}
