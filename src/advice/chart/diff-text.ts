// The disagreements of engines, for a terminal.

import type { Dialect } from "../../encodings/rope/dialects/index.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import type { Disagreement, EngineDiff, EngineRow } from "../diff.ts";
import { type Palette, plain, wrap } from "./text.ts";

const number = (n: number) => n.toLocaleString("en-US");

/** One table a rotary group: who computes alike, and where the others part. */
export function diffText(
  model: ModelDescription,
  diffs: readonly EngineDiff[],
  palette: Palette = plain,
  width = 80,
): string {
  const columns = Math.max(40, Math.min(width, 120));
  const lines = [`${palette.bold(model.name)}  ${palette.dim(model.modelType)}`, ""];
  if (diffs.length === 0) return `${lines[0]}\nNo layer rotates: engines have nothing to differ on.\n`;
  for (const diff of diffs) lines.push(...groupLines(diff, palette, columns), "");
  const versions = [...new Set(diffs[0]!.engines.map(({ engine }) => engine))].join("; ");
  lines.push(...wrap(`Read from: ${versions}.`, columns).map(palette.dim));
  return `${lines.join("\n")}\n`;
}

function groupLines(diff: EngineDiff, palette: Palette, columns: number): string[] {
  const place =
    diff.layerType ?? (diff.layers.length === 1 ? `layer ${diff.layers[0]}` : `${diff.layers.length} layers`);
  const lines = [`${palette.bold(place)}  ${palette.dim(`a sequence of ${number(diff.length)} tokens`)}`];
  const names = (all: readonly Dialect[]) => all.join(", ");
  const row = (dialect: Dialect): EngineRow => diff.engines.find((one) => one.dialect === dialect)!;
  for (const [i, set] of diff.alike.entries()) {
    const { scoreFactor, attentionFactor } = row(set[0]!);
    const factor = `attention factor ${digits(attentionFactor!)}, scores × ${digits(scoreFactor!)}`;
    const text = `${letter(i)}  ${names(set)}: ${factor}`;
    lines.push(...indented(text, columns, 2, 5).map((line) => (i === 0 ? palette.good(line) : line)));
  }
  for (const { dialect, reason } of diff.engines) {
    if (reason !== null) lines.push(...indented(`–  ${dialect}: ${reason}`, columns, 2, 5).map(palette.bad));
  }
  if (diff.disagreements.length === 0) lines.push("  They agree.");
  for (const one of diff.disagreements) {
    const [a, b] = one.between.map((dialect) => letter(diff.alike.findIndex((set) => set.includes(dialect))));
    lines.push(...indented(`${a} and ${b}: ${sentence(one)}`, columns, 2, 11).map(palette.bad));
  }
  const notes = new Map<string, Set<string>>();
  for (const { dialect, notes: own } of diff.engines) {
    for (const { key, message } of own) {
      const text = key === null ? message : `${key}: ${message}`;
      notes.set(text, (notes.get(text) ?? new Set()).add(dialect));
    }
  }
  for (const [text, who] of notes)
    lines.push(...indented(`· ${[...who].join(", ")}: ${text}`, columns, 2, 4).map(palette.dim));
  return lines;
}

const letter = (i: number): string => String.fromCharCode(65 + i);
const digits = (x: number): string => String(Number(x.toPrecision(7)));

function sentence({ frequencies, scoreRatio }: Disagreement): string {
  const parts: string[] = [];
  if (frequencies !== null) {
    const { pair, ratio, position, pairs } = frequencies;
    const how = ratio === 0 || !Number.isFinite(ratio) ? "only one turns it" : `×${Number(ratio.toPrecision(3))}`;
    parts.push(
      `${pairs} ${pairs === 1 ? "pair differs" : "pairs differ"}, pair ${pair} most (${how}): off by 0.1 rad from position ${number(position)} on`,
    );
  }
  if (scoreRatio !== null) parts.push(`scores × ${digits(scoreRatio)}`);
  return parts.join("; ");
}

function indented(text: string, columns: number, first: number, rest: number): string[] {
  const [head = "", ...more] = wrap(text, columns - rest);
  return [" ".repeat(first) + head, ...more.map((line) => " ".repeat(rest) + line)];
}
