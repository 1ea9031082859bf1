// A compare's result as a table for people.

import type { Palette } from "../advice/chart/text.ts";
import {
  type CompareResult,
  type CompareRow,
  compareVerdict,
  readsTo,
  type StrategySummary,
} from "../evaluation/index.ts";
import { grouped } from "../evaluation/report/numbers.ts";

/** Columns of positions beyond the trained length. */
const mostBeyond = 4;

export function compareTable(result: CompareResult, palette: Palette): string {
  const { bold, dim, good, bad } = palette;
  const { trainedLength, target, forgetting } = result;
  const columns = positionColumns(result);
  const measured = result.strategies.filter(({ beyond }) => beyond !== null);
  if (measured.length === 0) return "";
  const extends_ = trainedLength !== null && target > trainedLength;
  const lengths = [...new Set(measured.flatMap(({ passkey }) => passkey.map(({ length }) => length)))].sort(
    (a, b) => a - b,
  );
  const head = [
    "loss in nats at",
    ...columns.map(({ from, to }, i) => (i === 0 ? `${grouped(from)}–${grouped(to - 1)}` : `–${grouped(to - 1)}`)),
    ...(extends_ ? ["short cost", "forgetting", "reads to"] : []),
    ...lengths.map((length) => `key ${grouped(length)}`),
  ];
  const lines = measured.map((summary) => [
    { text: summary.strategy, paint: summary.strategy === result.best ? bold : plain },
    ...columns.map((column) => ({ text: mean(result.rows, summary.strategy, column).toFixed(3), paint: plain })),
    ...(extends_
      ? [
          difference(summary.shortCost, good, bad),
          summary.strategy === forgetting
            ? { text: "", paint: plain }
            : difference(summary.againstForgetting, good, bad),
          { text: reads(summary, trainedLength), paint: plain },
        ]
      : []),
    ...lengths.map((length) => {
      const asked = summary.passkey.find((one) => one.length === length);
      return {
        text: asked === undefined ? "" : `${Math.round(asked.found.successes)}/${asked.found.trials}`,
        paint: plain,
      };
    }),
  ]);
  const widths = head.map((text, i) => Math.max(text.length, ...lines.map((line) => line[i]!.text.length)));
  const pad = (text: string, i: number): string => (i === 0 ? text.padEnd(widths[i]!) : text.padStart(widths[i]! + 2));
  const out = [dim(head.map(pad).join(""))];
  for (const line of lines) out.push(line.map(({ text, paint }, i) => paint(pad(text, i))).join(""));
  const planned = result.plannedWindows;
  const windows = result.windows === planned ? `${planned}` : `${result.windows} of ${planned}`;
  out.push(
    dim(
      `${windows} window${planned === 1 ? "" : "s"} of ${grouped(target)} tokens, ${result.bos === "none" ? "no BOS" : "BOS at the head of each"}.` +
        (extends_
          ? " short cost: loss within the trained length against the unscaled model. forgetting: loss beyond it against the " +
            "last tokens alone. Both paired on the same tokens; tie: the 95 % interval holds 0."
          : ""),
    ),
  );
  return `${out.map((line) => wrapNote(line)).join("\n")}\n`;
}

/** The verdict, a bullet each. */
export function compareText(result: CompareResult, palette: Palette): string {
  const verdict = compareVerdict(result).map((sentence) => `· ${sentence}`);
  return `${compareTable(result, palette)}${verdict.length === 0 ? "" : `\n${verdict.map(wrapNote).join("\n")}\n`}`;
}

interface Column {
  readonly from: number;
  readonly to: number;
}

/** All within the trained length as one, then up to four beyond it. */
function positionColumns({ rows, trainedLength, target }: CompareResult): Column[] {
  const first = rows[0]?.strategy;
  const bins = rows.filter(({ strategy }) => strategy === first).map(({ position: [from, to] }) => ({ from, to }));
  const within = bins.filter(({ to }) => trainedLength !== null && to <= trainedLength);
  const beyond = bins.slice(within.length);
  const size = Math.ceil(beyond.length / mostBeyond);
  const groups: Column[] = [];
  // The last columns are the finest; what does not divide evenly goes into the first.
  for (let to = beyond.length; to > 0; to -= size) {
    groups.unshift({ from: beyond[Math.max(0, to - size)]!.from, to: beyond[to - 1]!.to });
  }
  const whole = within.length === 0 ? [] : [{ from: 1, to: Math.min(trainedLength!, target) }];
  return [...whole, ...groups];
}

function mean(rows: readonly CompareRow[], strategy: string, { from, to }: Column): number {
  let sum = 0;
  let tokens = 0;
  for (const row of rows) {
    if (row.strategy !== strategy || row.position[0] < from || row.position[1] > to) continue;
    sum += row.meanNegativeLogLikelihood * row.tokens;
    tokens += row.tokens;
  }
  return sum / tokens;
}

interface Cell {
  readonly text: string;
  readonly paint: (text: string) => string;
}

function difference(value: StrategySummary["shortCost"], good: Palette["good"], bad: Palette["bad"]): Cell {
  if (value === null) return { text: "–", paint: plain };
  if (value.verdict === "tie") return { text: "tie", paint: plain };
  const text = `${value.mean < 0 ? "−" : "+"}${Math.abs(value.mean).toFixed(3)}`;
  if (value.verdict === "unknown") return { text: `${text}?`, paint: plain };
  return { text, paint: value.verdict === "lower" ? good : bad };
}

function reads(summary: StrategySummary, trained: number): string {
  const to = readsTo(summary, trained);
  return to === null ? "–" : grouped(to);
}

function plain(text: string): string {
  return text;
}

/** Long notes in lines of at most 100 characters; table rows stay whole. */
function wrapNote(line: string): string {
  if (!/^\S+ \S+ /.test(line) || line.length <= 100 || / {3,}/.test(line)) return line;
  const out: string[] = [];
  let current = "";
  for (const word of line.split(" ")) {
    if (current !== "" && current.length + 1 + word.length > 100) {
      out.push(current);
      current = line.startsWith("·") ? `  ${word}` : word;
    } else {
      current = current === "" ? word : `${current} ${word}`;
    }
  }
  return [...out, current].join("\n");
}
