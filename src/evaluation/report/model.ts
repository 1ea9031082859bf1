// What a report says, as data: a section for each run. HTML, Markdown, SVG and tables of data are written from it.

import { type CompareResult, compareResult } from "../compare/result.ts";
import { compareVerdict } from "../compare/verdict.ts";
import { isRecord } from "../run-folder/json.ts";
import type { RunManifest } from "../run-folder/manifest.ts";
import type { RunRow } from "../run-folder/rows.ts";
import { type Proportion, proportion } from "../statistics/proportion.ts";
import { type EffectiveLength, effectiveLengthByScore, rulerEffectiveLength } from "../tasks/effective-length.ts";
import { type PerplexityResult, perplexityResults } from "../tasks/perplexity-results.ts";
import { checkCompare, checkShare, type Fields, fieldsOf, fieldsOfRow } from "./check.ts";

/** What `readRun` gives. */
export interface ReportRun {
  readonly path: string;
  readonly manifest: RunManifest;
  readonly rows: readonly RunRow[];
}

export interface Report {
  readonly sections: readonly ReportSection[];
}

export type ReportSection = CompareSection | NeedleSection | PerplexitySection | TrainSection;

interface SectionFacts {
  readonly run: ReportRun;
  /** The model's name, or what was trained. */
  readonly title: string;
  /** Whether all rows are there. */
  readonly complete: boolean;
}

export interface CompareSection extends SectionFacts {
  readonly kind: "compare";
  readonly result: CompareResult;
  readonly verdict: readonly string[];
  /** Strategies that were not run, with the reason; null where the run does not say. */
  readonly leftOut: readonly LeftOutStrategy[] | null;
  readonly needles: readonly NeedleMap[];
}

export interface LeftOutStrategy {
  readonly name: string;
  readonly why: string;
}

/** What one strategy finds, by length and depth. */
export interface NeedleMap {
  readonly strategy: string;
  readonly lengths: readonly number[];
  /** 0 at the begin, 1 at the end. */
  readonly depths: readonly number[];
  /** [depth][length]; null where nothing was asked. */
  readonly cells: readonly (readonly (NeedleCell | null)[])[];
}

export interface NeedleCell {
  readonly found: Proportion;
  readonly meanRank: number;
  readonly candidates: number;
}

export interface NeedleSection extends SectionFacts {
  readonly kind: "needle";
  readonly maps: readonly NeedleMap[];
  readonly strategies: readonly NeedleSummary[];
}

export interface NeedleSummary {
  readonly strategy: string;
  readonly tasks: readonly { readonly task: string; readonly length: number; readonly cell: NeedleCell }[];
  /** 85 % of the shortest length's score, and RULER's threshold, on the mean over tasks. */
  readonly effectiveLengths: readonly EffectiveLength[];
}

export interface PerplexitySection extends SectionFacts {
  readonly kind: "perplexity";
  /** One a strategy and length. */
  readonly results: readonly PerplexityResult[];
}

export interface TrainSection extends SectionFacts {
  readonly kind: "train";
  readonly steps: number;
  readonly length: number;
  readonly training: readonly TrainPoint[];
  readonly validation: readonly (TrainPoint & { readonly accuracy: number | null })[];
  readonly positions: readonly {
    readonly position: readonly [from: number, to: number];
    readonly loss: number;
    readonly low: number | null;
    readonly high: number | null;
    readonly windows: number;
  }[];
  readonly tasks: readonly { readonly size: number; readonly accuracy: number; readonly loss: number | null }[];
}

export interface TrainPoint {
  readonly step: number;
  readonly tokens: number;
  readonly loss: number;
}

/**
 * The report of run folders, in the order given. Runs that are not complete are reported as far as they are.
 *
 * @throws RangeError for no runs, a kind of run that has no report, and whatever in a run is not as it should be
 * @example
 * ```ts
 * import { memoryRunFiles, openRun, readRun, reportOf } from "longhand/evaluation";
 * const files = memoryRunFiles("runs/alibi");
 * const recipe = { encoding: ["alibi"], steps: 2, length: 8 };
 * const run = await openRun(files, { kind: "train", identity: { recipe } });
 * await run.append({ key: "train:1", kind: "train", step: 1, tokens: 64, loss: 5.5 });
 * await run.close();
 * const [section] = reportOf([await readRun(files)]).sections;
 * [section.title, section.complete, section.training.length]; // => ["alibi", false, 1]
 * ```
 */
export function reportOf(runs: readonly ReportRun[]): Report {
  if (runs.length === 0) throw new RangeError("report: expected at least one run, got none");
  return {
    sections: runs.map((run) => {
      const { kind } = run.manifest;
      if (kind === "compare") return compareSection(run);
      if (kind === "needle") return needleSection(run);
      if (kind === "perplexity") return perplexitySection(run);
      if (kind === "train") return trainSection(run);
      throw new RangeError(
        `${run.path}: expected a run of longhand compare, needle, perplexity, train or drop, got one of kind ${JSON.stringify(kind)}`,
      );
    }),
  };
}

function compareSection(run: ReportRun): CompareSection {
  const identity = checkCompare(run);
  const result = compareResult(identity, run.rows);
  // The depths that were asked for; where a needle fits is a few tokens off.
  const needles = run.rows
    .filter(({ kind, error }) => kind === "passkey" && error === undefined)
    .map((row) => ({ row, depth: ((row.needle as number) + 0.5) / Math.max(1, identity.needles) }));
  return {
    kind: "compare",
    run,
    title: identity.model,
    complete: result.complete,
    result,
    verdict: compareVerdict(result),
    leftOut: leftOutOf(identity.leftOut),
    needles: needleMaps(needles),
  };
}

function leftOutOf(value: unknown): LeftOutStrategy[] | null {
  if (!Array.isArray(value)) return null;
  return value.filter(isRecord).map(({ name, why }) => ({ name: String(name), why: String(why) }));
}

function needleMaps(asked: readonly { readonly row: RunRow; readonly depth: number }[]): NeedleMap[] {
  const distinct = (values: readonly number[]): number[] => [...new Set(values)].sort((a, b) => a - b);
  const lengths = distinct(asked.map(({ row }) => row.length as number));
  const depths = distinct(asked.map(({ depth }) => depth));
  return [...new Set(asked.map(({ row }) => row.strategy as string))].map((strategy) => {
    const own = asked.filter(({ row }) => row.strategy === strategy);
    const cell = (depth: number, length: number): NeedleCell | null =>
      cellOf(own.filter((one) => one.depth === depth && one.row.length === length).map(({ row }) => row));
    return { strategy, lengths, depths, cells: depths.map((depth) => lengths.map((length) => cell(depth, length))) };
  });
}

function cellOf(rows: readonly RunRow[]): NeedleCell | null {
  if (rows.length === 0) return null;
  const sum = (key: string): number => rows.reduce((total, row) => total + (row[key] as number), 0);
  return {
    found: proportion(Math.min(rows.length, sum("exact")), rows.length),
    meanRank: sum("rank") / rows.length,
    candidates: rows[0]!.candidates as number,
  };
}

function needleSection(run: ReportRun): NeedleSection {
  const identity = fieldsOf(run.manifest.identity, `${run.path}/manifest.json, identity`);
  for (const row of run.rows) {
    const fields = fieldsOfRow(run, row);
    fields.string("strategy");
    fields.string("task");
    for (const key of ["length", "rank", "candidates"]) fields.number(key);
    checkShare(fields, "exact");
    fields.numberOrNull("depth");
  }
  const names = [...new Set(run.rows.map(({ strategy }) => strategy as string))];
  const strategies = names.map((strategy): NeedleSummary => {
    const own = run.rows.filter((row) => row.strategy === strategy);
    const tasks = [...new Set(own.map(({ task }) => task as string))].flatMap((task) => {
      const lengths = [...new Set(own.filter((row) => row.task === task).map(({ length }) => length as number))];
      return lengths
        .sort((a, b) => a - b)
        .map((length) => ({
          task,
          length,
          cell: cellOf(own.filter((row) => row.task === task && row.length === length))!,
        }));
    });
    const lengths = [...new Set(tasks.map(({ length }) => length))].sort((a, b) => a - b);
    const scores = lengths.map((length) => {
      const at = tasks.filter((one) => one.length === length);
      return { length, score: at.reduce((sum, { cell }) => sum + cell.found.proportion, 0) / at.length };
    });
    return {
      strategy,
      tasks,
      effectiveLengths: [effectiveLengthByScore(scores, scores[0]!.score), rulerEffectiveLength(scores)],
    };
  });
  const byDepth = run.rows.filter(({ depth }) => depth !== null);
  return {
    kind: "needle",
    run,
    title: identity.string("model"),
    complete: run.rows.length >= needleRows(identity),
    maps: needleMaps(byDepth.map((row) => ({ row, depth: row.depth as number }))),
    strategies,
  };
}

/** Rows that a complete run has: passkey is asked at every depth, the other tasks place their needles by seed. */
function needleRows(identity: Fields): number {
  const [lengths, depths, strategies] = ["lengths", "depths", "strategies"].map((key) => identity.list(key).length);
  const questions = identity.list("tasks").reduce<number>((sum, task) => sum + (task === "passkey" ? depths! : 1), 0);
  return lengths! * strategies! * identity.number("samples") * questions;
}

function perplexitySection(run: ReportRun): PerplexitySection {
  const identity = fieldsOf(run.manifest.identity, `${run.path}/manifest.json, identity`);
  const windows = identity.number("numWindows");
  const [stride, bos] = [identity.numberOrNull("stride"), identity.numberOrNull("bos")];
  for (const row of run.rows) {
    const fields = fieldsOfRow(run, row);
    fields.string("strategy");
    for (const key of ["length", "text", "begin", "end", "sum"]) fields.number(key);
    if (fields.number("tokens") < 1) fields.fail("tokens", "a number of at least 1");
    if (fields.number("bytes") < 0) fields.fail("bytes", "a number of at least 0");
  }
  return {
    kind: "perplexity",
    run,
    title: identity.string("model"),
    complete: run.rows.length >= windows,
    results: perplexityResults(run.rows, { stride, bos }),
  };
}

function trainSection(run: ReportRun): TrainSection {
  const identity = fieldsOf(run.manifest.identity, `${run.path}/manifest.json, identity`);
  const recipe = identity.record("recipe");
  const steps = recipe.number("steps");
  const all = run.rows.map((row) => ({ kind: row.kind, fields: fieldsOfRow(run, row) }));
  const of = (kind: string): Fields[] => all.filter((one) => one.kind === kind).map(({ fields }) => fields);
  const point = (fields: Fields): TrainPoint => ({
    step: fields.number("step"),
    tokens: fields.number("tokens"),
    loss: fields.number("loss"),
  });
  const optional = (fields: Fields, key: string): number | null =>
    fields.value[key] === undefined ? null : fields.number(key);
  const training = of("train").map(point);
  const validation = of("validation").map((fields) => ({ ...point(fields), accuracy: optional(fields, "accuracy") }));
  const last = Math.max(0, ...[...training, ...validation].map(({ step }) => step));
  return {
    kind: "train",
    run,
    title: recipe.list("encoding").map(String).join(", "),
    complete: last >= steps,
    steps,
    length: recipe.number("length"),
    training,
    validation,
    positions: of("position").map((fields) => {
      const [from, to] = fields.list("position");
      if (typeof from !== "number" || typeof to !== "number") fields.fail("position", "two numbers");
      return {
        position: [from as number, to as number],
        loss: fields.number("loss"),
        low: fields.numberOrNull("low"),
        high: fields.numberOrNull("high"),
        windows: fields.number("windows"),
      };
    }),
    tasks: of("task").map((fields) => ({
      size: fields.number("size"),
      accuracy: checkShare(fields, "accuracy"),
      loss: optional(fields, "meanLoss"),
    })),
  };
}
