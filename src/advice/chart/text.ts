// An inspection as a person reads it in a terminal: one line for the model, a strip of hands for each group, counts in
// sentences, and every finding.

import type { Finding } from "../../formats/finding.ts";
import type { InspectedGroup, Inspection } from "../inspect.ts";
import {
  groupPlace,
  groupTitle,
  type HandAxis,
  handAxis,
  hasHands,
  isScaled,
  powerLabel,
  shapeTitle,
} from "./scale.ts";

/** How the text is coloured; the identity functions give plain text. */
export interface Palette {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly warn: (text: string) => string;
  readonly mark: (text: string) => string;
}

const same = (text: string) => text;
export const plain: Palette = { bold: same, dim: same, good: same, bad: same, warn: same, mark: same };

const margin = 11;
const number = (x: number) => x.toLocaleString("en-US");

/** The whole inspection as lines of at most `width` columns (findings wrap). */
export function inspectionText(inspection: Inspection, palette: Palette = plain, width = 80): string {
  const lines: string[] = [];
  const columns = Math.max(40, Math.min(width, 120)) - margin - 1;
  const axis = handAxis(inspection);
  lines.push(...modelLines(inspection, palette), "");
  const drawn = inspection.groups.some(hasHands);
  for (const group of inspection.groups) {
    lines.push(`${palette.bold(groupTitle(group))}  ${palette.dim(groupPlace(group, inspection.model))}`);
    if (hasHands(group)) lines.push(...handLines(inspection, group, axis, columns, palette));
    else lines.push(...otherLines(group, palette));
    lines.push("");
  }
  if (drawn) {
    lines.push(palette.dim(`Each mark is a hand (a pair of channels) at the tokens it takes to turn once, log scale.`));
    lines.push(
      `${palette.good("●")} ${palette.dim("every angle seen in training")}   ${palette.bad("○")} ${palette.dim("reaches unseen angles at the target")}`,
    );
    const { trainedLength, model } = inspection;
    if (trainedLength !== null && model.maxPositionEmbeddings !== null && model.maxPositionEmbeddings > trainedLength) {
      lines.push(
        palette.dim(
          `Seen means: up to ${number(trainedLength)} tokens, before scaling. The file does not say what training at ${number(model.maxPositionEmbeddings)} showed; if it took place, add --trained-length ${model.maxPositionEmbeddings}.`,
        ),
      );
    }
    lines.push("");
  }
  if (inspection.findings.length > 0) lines.push(...findingLines(inspection.findings, palette, width));
  while (lines.at(-1) === "") lines.pop();
  return `${fitLines(lines, Math.max(40, width)).join("\n")}\n`;
}

function modelLines({ model, trainedLength, targetLength }: Inspection, palette: Palette): string[] {
  const parts = [model.modelType, shapeTitle(model)];
  if (model.numParameters !== null) parts.push(`${parameters(model.numParameters)} parameters`);
  const lengths = [
    trainedLength === null ? "trained length unknown" : `trained at ${number(trainedLength)} tokens`,
    ...(model.maxPositionEmbeddings !== null && model.maxPositionEmbeddings !== trainedLength
      ? [`file says ${number(model.maxPositionEmbeddings)}`]
      : []),
    ...(targetLength === null ? [] : [`target ${number(targetLength)}`]),
  ];
  return [`${palette.bold(model.name)}  ${palette.dim(parts.join(" · "))}`, lengths.join(" · ")];
}

/** 8.03 B, 135 M, 260 k. */
export function parameters(count: number): string {
  const [scale, unit] = count >= 1e9 ? [1e9, " B"] : count >= 1e6 ? [1e6, " M"] : count >= 1e3 ? [1e3, " k"] : [1, ""];
  return `${Number((count / scale).toPrecision(3))}${unit}`;
}

/** Marks of one row: at each column the hands whose wavelength falls there. */
function strip(
  group: InspectedGroup,
  which: "trained" | "used",
  axis: HandAxis,
  columns: number,
  rules: ReadonlyMap<number, string>,
  palette: Palette,
): string {
  const cells: { count: number; unseen: boolean }[] = Array.from({ length: columns }, () => ({
    count: 0,
    unseen: false,
  }));
  let still = 0;
  for (const hand of group.hands) {
    const wavelength = which === "trained" ? hand.trainedWavelength : hand.wavelength;
    if (wavelength === null) {
      still++;
      continue;
    }
    const cell = cells[Math.min(columns - 1, Math.max(0, Math.floor(axis.at(wavelength) * columns)))]!;
    cell.count++;
    if (!(which === "trained" ? hand.seenUnscaled : hand.seen)) cell.unseen = true;
  }
  const text = cells
    .map((cell, column) => {
      if (cell.count > 0) return cell.unseen ? palette.bad("○") : palette.good("●");
      const rule = rules.get(column);
      return rule === undefined ? palette.dim("·") : palette.mark(rule);
    })
    .join("");
  return still > 0 ? `${text} ${palette.dim(`+${still} still`)}` : text;
}

function handLines(
  inspection: Inspection,
  group: InspectedGroup,
  axis: HandAxis,
  columns: number,
  palette: Palette,
): string[] {
  const { trainedLength, targetLength } = inspection;
  const column = (tokens: number) => Math.min(columns - 1, Math.max(0, Math.floor(axis.at(tokens) * columns)));
  const rules = new Map<number, string>();
  if (trainedLength !== null) rules.set(column(trainedLength), "│");
  if (targetLength !== null && targetLength !== trainedLength) rules.set(column(targetLength), "╎");
  const lines: string[] = [];
  const label = (text: string) => palette.dim(text.padStart(margin - 1).concat(" "));
  const scaled = isScaled(group);
  lines.push(label("trained") + strip(group, "trained", axis, columns, rules, palette));
  if (scaled) lines.push(label("in use") + strip(group, "used", axis, columns, rules, palette));
  lines.push(label("") + palette.dim(axisLine(axis, columns)));
  const pointers = pointerLine(columns, [
    ...(trainedLength === null ? [] : [{ column: column(trainedLength), text: "trained" }]),
    ...(targetLength === null || targetLength === trainedLength
      ? []
      : [{ column: column(targetLength), text: "target" }]),
  ]);
  lines.push(label("") + palette.mark(pointers));
  lines.push(...sentences(inspection, group, palette));
  return lines;
}

/** Labels at powers of ten. */
function axisLine(axis: HandAxis, columns: number): string {
  const cells = Array.from({ length: columns }, () => " ");
  for (let power = Math.ceil(axis.from); power <= axis.to; power++) {
    const at = Math.floor(axis.at(10 ** power) * columns);
    const text = powerLabel(power);
    if (at + text.length > columns || at < 0) continue;
    for (let i = 0; i < text.length; i++) cells[at + i] = text[i]!;
  }
  return cells.join("").trimEnd();
}

/** ▲trained … ▲target, each at its column; labels that would collide go to the left of their mark. */
function pointerLine(columns: number, pointers: readonly { column: number; text: string }[]): string {
  const cells = Array.from({ length: columns + 12 }, () => " ");
  const sorted = [...pointers].sort((a, b) => a.column - b.column);
  sorted.forEach(({ column, text }, index) => {
    const next = sorted[index + 1];
    const right = next === undefined ? column + 1 + text.length <= columns : column + text.length + 1 < next.column;
    const mark = right ? `▲${text}` : `${text}▲`;
    const start = right ? column : Math.max(0, column - text.length);
    for (let i = 0; i < mark.length; i++) if (start + i < cells.length) cells[start + i] = mark[i]!;
  });
  return cells.join("").trimEnd();
}

function sentences(inspection: Inspection, group: InspectedGroup, palette: Palette): string[] {
  const { trainedLength, targetLength } = inspection;
  const summary = group.summary;
  const lines: string[] = [];
  if (summary === null || trainedLength === null) return lines;
  const hands = (n: number) => (n === 1 ? "1 hand" : `${n} hands`);
  lines.push(
    `  ${summary.unfinishedInTraining} of ${summary.turning} hands never finish a turn in ${number(trainedLength)} tokens.`,
  );
  const local = group.slidingWindow ?? group.attentionChunkSize;
  if (local !== null && summary.unseen === 0) {
    lines.push(`  Queries look back at most ${number(local)} tokens, so no angle is new at any length.`);
  } else if (targetLength !== null) {
    const scaled = isScaled(group);
    const count = (n: number) => (n === 0 ? palette.good("no hand") : palette.bad(hands(n)));
    const reach = (n: number) => (n <= 1 ? "reaches" : "reach");
    lines.push(
      scaled
        ? `  At ${number(targetLength)}: ${count(summary.unseenUnscaled)} ${reach(summary.unseenUnscaled)} unseen angles without scaling, ${count(summary.unseen)} ${reach(summary.unseen)} them with it.`
        : `  At ${number(targetLength)}: ${count(summary.unseen)} ${reach(summary.unseen)} unseen angles.`,
    );
  }
  if (group.attentionFactor !== 1) {
    const squared = group.attentionFactor ** 2;
    lines.push(
      `  Attention factor ${digits(group.attentionFactor)} on cos and sin, so every score × ${digits(squared)}.`,
    );
  }
  lines.push(...commonSentences(group));
  if (group.dependsOnLength) {
    lines.push("  The table depends on the sequence's length: cached keys are wrong once it changes.");
  }
  return lines;
}

function commonSentences(group: InspectedGroup): string[] {
  const lines: string[] = [];
  if (group.softmaxFactor !== 1)
    lines.push(`  Softmax scale × ${digits(group.softmaxFactor)} (m², YaRN on latent attention).`);
  const temperature = group.logitTemperature;
  if (temperature?.kind === "llama4") {
    lines.push(
      `  Queries × 1 + ${temperature.scale}·ln(1 + floor((p + 1)/${number(temperature.floorScale)})) at position p.`,
    );
  } else if (temperature?.kind === "ministral3") {
    lines.push(
      `  Queries × 1 + ${temperature.beta}·ln(1 + floor(p/${number(temperature.originalMaxPositionEmbeddings)})) at position p.`,
    );
  } else if (temperature?.kind === "drope") {
    lines.push(`  Queries × 1 + ${temperature.coefficient}·ln(length/${number(temperature.trainedLength)}).`);
  }
  return lines;
}

function digits(x: number): string {
  return String(Number(x.toPrecision(9)));
}

function otherLines(group: InspectedGroup, palette: Palette): string[] {
  const lines: string[] = [];
  if (group.slopes !== undefined) {
    const slopes = group.slopes;
    const shown = slopes.length <= 8 ? slopes : [...slopes.slice(0, 4), ...slopes.slice(-2)];
    const list = shown.map((slope) => String(Number(slope.toPrecision(4))));
    if (slopes.length > 8) list.splice(4, 0, "…");
    lines.push(`  slopes by head: ${list.join(" ")}`);
    const half = (slope: number) => Math.LN2 / slope;
    const spread = [Math.min(...slopes.map(half)), Math.max(...slopes.map(half))];
    lines.push(
      `  A weight halves every ${digits(Number(spread[0]!.toPrecision(3)))} tokens in the shortest-sighted head, every ${number(Math.round(spread[1]!))} in the farthest.`,
    );
  }
  if (group.buckets !== undefined) {
    const { firstDistance, values } = group.buckets;
    const last = values[0]!;
    let from = 0;
    while (values[from + 1] === last && from + 1 < -firstDistance) from++;
    const alike = values.slice(0, from + 1).length > 1;
    lines.push(
      alike
        ? `  All distances of ${number(-(firstDistance + from))} and more share one bucket: far tokens keep no order.`
        : `  Distances up to ${number(-firstDistance)} have not yet reached the shared last bucket.`,
    );
  }
  if (group.kind === "nope") lines.push("  Order is visible through the causal mask alone; no angle can be unseen.");
  if (group.kind === "learned") {
    lines.push(`  A hard limit: there is no row for position ${number(group.maxPositions ?? 0)} and later.`);
  }
  lines.push(...commonSentences(group));
  return lines.map((line) => palette.dim(line));
}

function findingLines(findings: readonly Finding[], palette: Palette, width: number): string[] {
  const order = { error: 0, warning: 1, note: 2 } as const;
  const lines: string[] = [];
  const marks = { error: palette.bad("error  "), warning: palette.warn("warning"), note: palette.dim("note   ") };
  for (const finding of [...findings].sort((a, b) => order[a.severity] - order[b.severity])) {
    const got = finding.got === null || finding.got === undefined ? "" : ` (file: ${JSON.stringify(finding.got)})`;
    const text = `${finding.where}${got}: ${[finding.expected, finding.why, finding.fix].filter(Boolean).map(sentence).join(" ")}`;
    const [first = "", ...rest] = wrap(text, Math.max(40, Math.min(width, 120)) - 9);
    lines.push(`${marks[finding.severity]}  ${first}`, ...rest.map((line) => `         ${line}`));
  }
  return lines;
}

/** With a full stop, and a capital after the first (a key or a type keeps its spelling). */
function sentence(text: string, index: number): string {
  const capital = index > 0 && /^[a-z]+[ ,]/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

/** Columns that a text takes: colour codes take none. */
function visibleLength(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that starts a colour code
  return [...text.replace(/\u001b\[[0-9;]*m/g, "")].length;
}

/** Words in lines of at most `width` columns; a longer word stands alone. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && visibleLength(line) + 1 + visibleLength(word) > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  if (line !== "") lines.push(line);
  return lines;
}

/** Lines as they are where they fit; else wrapped, with the indent of the first. */
function fitLines(lines: readonly string[], width: number): string[] {
  return lines.flatMap((line) => {
    if (visibleLength(line) <= width) return [line];
    const indent = /^ */.exec(line)![0];
    return wrap(line.trimStart(), width - indent.length).map((part) => indent + part);
  });
}
