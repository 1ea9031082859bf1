// A report's numbers as data: CSV and JSON lines for other programs.

import type { Difference } from "../statistics/paired.ts";
import type { Report, ReportSection } from "./model.ts";

type Cell = string | number | null;

interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/**
 * The numbers as CSV (RFC 4180): of compares a line for every strategy and bin of positions, of other runs their rows.
 * Numbers have all their digits. A text that a spreadsheet would take for a formula begins with an apostrophe.
 *
 * @throws RangeError for runs of several kinds, which have different columns
 * @example
 * ```ts
 * import { memoryRunFiles, openRun, readRun, reportCsv, reportOf } from "longhand/evaluation";
 * const files = memoryRunFiles("runs/alibi");
 * const run = await openRun(files, { kind: "train", identity: { recipe: { encoding: ["alibi"], steps: 1, length: 8 } } });
 * await run.append({ key: "train:1", kind: "train", step: 1, tokens: 64, loss: 5.5 });
 * await run.close();
 * reportCsv(reportOf([await readRun(files)]));
 * // => "run,model,kind,step,tokens,loss\r\nruns/alibi,alibi,train,1,64,5.5\r\n"
 * ```
 */
export function reportCsv(report: Report): string {
  const { columns, rows } = reportTable(report);
  const line = (cells: readonly Cell[]): string => `${cells.map(csvCell).join(",")}\r\n`;
  return line(columns) + rows.map(line).join("");
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The table behind CSV: columns by name, and rows of cells. */
export function reportTable({ sections }: Report): Table {
  const kinds = [...new Set(sections.map(({ kind }) => kind))];
  if (kinds.length > 1) {
    throw new RangeError(
      `report: expected runs of one kind for a table, got ${kinds.join(" and ")}; write one file for each, or .jsonl`,
    );
  }
  const records = sections.flatMap((section) =>
    recordsOf(section).map(
      (record): Record<string, Cell> => ({ run: section.run.path, model: section.title, ...record }),
    ),
  );
  const columns = [...new Set(["run", "model", ...records.flatMap((record) => Object.keys(record))])];
  return { columns, rows: records.map((record) => columns.map((column) => record[column] ?? null)) };
}

function recordsOf(section: ReportSection): Record<string, Cell>[] {
  if (section.kind === "compare") {
    return section.result.rows.map(({ scaling, position: [from, to], againstUnscaled, againstForgetting, ...row }) => ({
      strategy: row.strategy,
      scaling: typeof scaling === "string" || scaling === null ? scaling : JSON.stringify(scaling),
      from,
      to,
      meanNegativeLogLikelihood: row.meanNegativeLogLikelihood,
      low: row.low,
      high: row.high,
      tokens: row.tokens,
      windows: row.windows,
      ...differenceOf("againstUnscaled", againstUnscaled),
      ...differenceOf("againstForgetting", againstForgetting),
    }));
  }
  return section.run.rows.map(({ key: _, measured: __, ...row }) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        typeof value === "number" || typeof value === "string" || value === null ? value : JSON.stringify(value),
      ]),
    ),
  );
}

function differenceOf(name: string, difference: Difference | null): Record<string, Cell> {
  return {
    [name]: difference?.mean ?? null,
    [`${name}Low`]: difference?.low ?? null,
    [`${name}High`]: difference?.high ?? null,
    [`${name}Verdict`]: difference?.verdict ?? null,
  };
}

/**
 * Everything as JSON lines, each with its run and what it is: `position` (a strategy at a bin), `strategy` (its summary),
 * `verdict`; of other runs their rows.
 */
export function reportJsonLines({ sections }: Report): string {
  const lines = sections.flatMap((section): object[] => {
    const { path: run, manifest } = section.run;
    const facts = { run, identityHash: manifest.identityHash, model: section.title, complete: section.complete };
    if (section.kind !== "compare") return section.run.rows.map((row) => ({ ...facts, ...row }));
    const { rows, strategies } = section.result;
    return [
      { ...facts, kind: "verdict", verdict: section.verdict },
      ...strategies.map((summary) => ({ ...facts, kind: "strategy", ...summary })),
      ...rows.map((row) => ({ ...facts, kind: "position", ...row })),
      ...section.run.rows.filter(({ kind }) => kind === "passkey").map((row) => ({ ...facts, ...row })),
    ];
  });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}
