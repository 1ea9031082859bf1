// The engines side by side, for a terminal: what each computes against transformers 5, and why it differs.

import type { DialectComparison } from "../../encodings/rope/dialects/index.ts";
import type { EngineComparison } from "../engines.ts";
import { type Palette, plain, wrap } from "./text.ts";

/** Below this the difference is float64's, not the engine's. */
const equal = 1e-9;

/** One table for each set of groups that the engines treat alike, as lines of at most `width` columns. */
export function enginesText(comparisons: readonly EngineComparison[], palette: Palette = plain, width = 80): string {
  if (comparisons.length === 0) return "No layer rotates: engines have nothing to differ on.\n";
  const lines: string[] = [];
  const alike = new Map<string, EngineComparison[]>();
  for (const comparison of comparisons) {
    const key = JSON.stringify(comparison.engines);
    alike.set(key, [...(alike.get(key) ?? []), comparison]);
  }
  for (const groups of alike.values()) {
    const { engines } = groups[0]!;
    const where = groups.map(
      ({ layers, layerType }) => layerType ?? (layers.length === 1 ? `layer ${layers[0]}` : `${layers.length} layers`),
    );
    lines.push(`${palette.bold("What each engine computes")}  ${palette.dim([...new Set(where)].join(", "))}`);
    lines.push(palette.dim(`  ${"engine".padEnd(17)}${"frequencies".padEnd(24)}score ×`));
    for (const engine of engines) lines.push(row(engine, engines[0], palette));
    for (const text of notesOf(engines)) {
      const [first = "", ...rest] = wrap(text, Math.max(40, Math.min(width, 120)) - 4);
      lines.push(palette.dim(`  · ${first}`), ...rest.map((line) => palette.dim(`    ${line}`)));
    }
    lines.push("");
  }
  const versions = comparisons[0]!.engines.map((engine) => engine.engine).join("; ");
  lines.push(...wrap(`Read from: ${versions}.`, Math.max(40, Math.min(width, 120))).map(palette.dim));
  return `${lines.join("\n")}\n`;
}

/** "engines: keys: what happens", one line for all engines and keys that share a message. */
function notesOf(engines: readonly DialectComparison[]): string[] {
  const shared = new Map<string, { who: Set<string>; keys: Set<string> }>();
  const add = (who: string, key: string | null, message: string) => {
    const entry = shared.get(message) ?? { who: new Set(), keys: new Set() };
    entry.who.add(who);
    if (key !== null) entry.keys.add(key);
    shared.set(message, entry);
  };
  for (const engine of engines) {
    for (const note of engine.notes) add(engine.dialect, note.key, note.message);
    if (engine.reason !== null) add(engine.dialect, null, engine.reason);
  }
  return Array.from(shared, ([message, { who, keys }]) =>
    [[...who].join(", "), ...(keys.size === 0 ? [] : [[...keys].join(", ")]), message].join(": "),
  );
}

function row(engine: DialectComparison, reference: DialectComparison | undefined, palette: Palette): string {
  const name = `  ${engine.dialect.padEnd(17)}`;
  if (!engine.supported) return `${name}${palette.bad("not supported")}`;
  const difference = engine.frequencyDifference ?? 0;
  const same = difference < equal;
  const frequencies = same
    ? "the same"
    : engine.frequencyRatio === null
      ? `pair ${engine.frequencyPair} turns`
      : `×${Number(engine.frequencyRatio.toPrecision(3))} at pair ${engine.frequencyPair}`;
  const factor = engine.scoreFactor ?? 1;
  const expected = reference?.scoreFactor ?? factor;
  const score = String(Number(factor.toPrecision(7)));
  return (
    name +
    (same ? palette.good : palette.bad)(frequencies.padEnd(24)) +
    (Math.abs(factor - expected) <= equal * expected ? score : palette.bad(score))
  );
}
