// In a page: what test/browser/engine*.test.ts ask of the engine there. Arguments and results are JSON.

import { loadLanguageModel, onnxRuntimeBackend, referenceBackend } from "../../../src/engine/index.ts";
import { memorySource } from "../../../src/formats/index.ts";
import { type OpName, opNames } from "../../../src/graph/index.ts";
import { caseGraph, compareCase, toleranceOf } from "../../conformance/op-graphs.ts";
import { opCases } from "../../conformance/ops.ts";

export type BrowserProvider = "wasm" | "webgpu";

export interface OpReport {
  readonly run: number;
  /** "op: case (reason)". */
  readonly skipped: readonly string[];
  readonly failures: readonly string[];
  /** The slowest, for whoever wants the suite to be faster. */
  readonly slowest: readonly string[];
}

/**
 * The conformance cases of every op, against the reference backend in this page.
 *
 * @param few leaves out what costs much in a software renderer: of most ops the first case alone
 */
export async function runOps(provider: BrowserProvider, few: boolean): Promise<OpReport> {
  const backend = onnxRuntimeBackend({ provider });
  const [skipped, failures]: [string[], string[]] = [[], []];
  const times: [number, string][] = [];
  let run = 0;
  for (const op of opNames) {
    for (const [i, opCase] of opCases[op].entries()) {
      if (few && !isAmongFew(op, opCase.name, i)) continue;
      const title = `${op}: ${opCase.name}`;
      const reason = opCase.skip?.[`onnxruntime-${provider}`];
      if (reason !== undefined) {
        skipped.push(`${title} (${reason})`);
        continue;
      }
      run++;
      const begin = performance.now();
      try {
        const worst = await compareCase(op, opCase, 1000 + i, backend, referenceBackend);
        if (!(worst <= toleranceOf(op))) failures.push(`${title}: error ${worst.toExponential(1)}`);
      } catch (error) {
        failures.push(`${title}: ${error instanceof Error ? error.message : String(error)}`);
      }
      times.push([Math.round(performance.now() - begin), title]);
    }
  }
  const slowest = times.sort(([a], [b]) => b - a).slice(0, 12);
  return { run, skipped, failures, slowest: slowest.map(([ms, title]) => `${title}: ${ms} ms`) };
}

/** Loads the graph of one case, and no more. */
export async function loadCase(provider: BrowserProvider, op: OpName, name: string): Promise<void> {
  const opCase = opCases[op].find((one) => one.name === name);
  if (opCase === undefined) throw new Error(`expected a case of ${op}, got ${name}`);
  const { graph, weights } = caseGraph(op, opCase, 1);
  await (await onnxRuntimeBackend({ provider }).load(graph, weights)).dispose();
}

/** Loads and runs cases at once: the errors, in order. */
export async function runTogether(provider: BrowserProvider, op: OpName): Promise<number[]> {
  const backend = onnxRuntimeBackend({ provider });
  return Promise.all(opCases[op].map((opCase, i) => compareCase(op, opCase, i, backend, referenceBackend)));
}

/** Of an op whose lowering for the GPU is its own, every case that found a fault or may. */
function isAmongFew(op: OpName, name: string, index: number): boolean {
  if (op === "attention") return /packed|flash kernel that|sinks|symbolic batch|bias over/.test(name);
  if (op === "logSumExp" || op === "crossEntropy") return true;
  return index === 0 && op !== "attentionGradient";
}

export interface ModelReport {
  readonly losses: readonly number[];
  readonly greedy: readonly number[];
  readonly backend: string;
  readonly precision: string;
}

/** Loads a model from the bytes of its files, scores tokens and continues them greedily, under a scaling. */
export async function runModel(
  provider: BrowserProvider,
  addresses: readonly string[],
  tokens: readonly number[],
  count: number,
  scaling = "as-is",
): Promise<ModelReport> {
  const files = await Promise.all(
    addresses.map(async (address) => {
      const response = await fetch(address);
      if (!response.ok) throw new Error(`expected ${address}, got ${response.status}`);
      return memorySource(address.slice(address.lastIndexOf("/") + 1), new Uint8Array(await response.arrayBuffer()));
    }),
  );
  const model = await loadLanguageModel(files, { backend: onnxRuntimeBackend({ provider }) });
  try {
    const { negativeLogLikelihood, backend, precision } = await model.score(tokens, { scaling });
    const greedy: number[] = [];
    // As a reader who has seen enough: the rest is never computed.
    for await (const { token } of model.generate(tokens, { maxTokens: 100_000, scaling })) {
      greedy.push(token);
      if (greedy.length === count) break;
    }
    return { losses: Array.from(negativeLogLikelihood), greedy, backend, precision };
  } finally {
    await model.dispose();
  }
}
