// A graph as text, one line a value: what tests snapshot and people read. Types stand after names; attributes that are
// absent (null, false, 0 softcap) are printed all the same, so that a change shows.

import { toNumbers } from "../tensor/index.ts";
import { type Graph, inputEntries, type Node, type Value } from "./ops.ts";
import { formatType } from "./shapes.ts";

/**
 * Prints a graph.
 * @example
 * ```ts
 * import { graphBuilder, printGraph } from "longhand/graph";
 * const g = graphBuilder("double");
 * const x = g.input("x", "f32", ["tokens"]);
 * g.output("y", g.add(x, x));
 * printGraph(g.build()); // => "graph double\n  input x: f32[tokens]\n  add: f32[tokens] = add(x, x)\n  output y = add\n"
 * ```
 */
export function printGraph(graph: Graph): string {
  const lines = [`graph ${graph.name}`];
  for (const value of graph.inputs) lines.push(`  input ${typed(value)}`);
  for (const value of graph.parameters) lines.push(`  parameter ${typed(value)}`);
  for (const value of graph.states) lines.push(`  state ${typed(value)}`);
  for (const { value, tensor } of graph.constants) {
    const numbers = Array.from(toNumbers(tensor).subarray(0, 9));
    const shown = numbers.length > 8 ? `${numbers.slice(0, 8).join(", ")}, …` : numbers.join(", ");
    lines.push(`  constant ${typed(value)} = ${shown}`);
  }
  for (const node of graph.nodes) lines.push(`  ${printNode(node)}`);
  for (const { name, value } of graph.outputs) lines.push(`  output ${name} = ${value.name}`);
  for (const update of graph.updates) {
    lines.push(
      update.kind === "replace"
        ? `  update ${update.state.name} = ${update.value.name}`
        : `  update ${update.state.name} rows from ${update.start.name} along ${update.axis} = ${update.rows.name}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

function typed(value: Value): string {
  return `${value.name}: ${formatType(value)}`;
}

/** One node: its outputs, the op, its inputs (named when an op has more than three) and attributes. */
export function printNode(node: Node): string {
  const entries = inputEntries(node);
  const named = entries.length > 3 || node.op === "attention";
  const inputs = entries.map(([name, value]) => (named ? `${name}=${value.name}` : value.name)).join(", ");
  const attributes = Object.entries(node.attributes)
    .map(([key, value]) => `${key}=${Array.isArray(value) ? `[${value.join(", ")}]` : String(value)}`)
    .join(" ");
  const outputs = node.outputs.map(typed).join(", ");
  return `${outputs} = ${node.op}(${inputs})${attributes === "" ? "" : ` {${attributes}}`}`;
}
