// A run as a page of the lab shows it: what a report says of it, as plain data that JSON can carry, without its rows.

import type { Chart } from "./chart.ts";
import { reasonInChinese, verdictInChinese } from "./chinese.ts";
import { chartsOf } from "./curves.ts";
import { type Both, both, visibleText } from "./markup.ts";
import { type ReportRun, type ReportSection, reportOf } from "./model.ts";

type WithoutRun<T> = T extends unknown ? Omit<T, "run"> : never;

export interface RunView {
  readonly section: WithoutRun<ReportSection>;
  readonly charts: readonly Chart[];
  /** A sentence each; in English where there is no translation. */
  readonly verdict: readonly Both<string>[];
  readonly leftOut: readonly { readonly name: string; readonly why: Both<string> }[];
  readonly rows: number;
}

/**
 * What a page shows of a run, complete or not. Characters that hide or reorder others are shown by their numbers.
 *
 * @throws RangeError for a kind of run that has no report, and whatever in a run is not as it should be
 */
export function runView(run: ReportRun): RunView {
  const { run: _, ...section } = shown(reportOf([run]).sections[0]!);
  const verdict = section.kind === "compare" ? section.verdict : [];
  const leftOut = section.kind === "compare" ? (section.leftOut ?? []) : [];
  return {
    section,
    charts: chartsOf({ ...section, run } as ReportSection),
    verdict: verdict.map((sentence) => both(sentence, verdictInChinese(sentence) ?? sentence)),
    leftOut: leftOut.map(({ name, why }) => ({ name, why: both(why, reasonInChinese(why) ?? why) })),
    rows: run.rows.length,
  };
}

/** A section with every text in it made visible; its run is left as it is. */
function shown(section: ReportSection): ReportSection {
  const { run, ...rest } = section;
  return { ...visibleData(rest), run } as ReportSection;
}

/** Plain data with `visibleText` in the place of every text in it. */
export function visibleData<T>(value: T): T {
  const visible = (one: unknown): unknown => {
    if (typeof one === "string") return visibleText(one);
    if (Array.isArray(one)) return one.map(visible);
    if (typeof one !== "object" || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, item]) => [visibleText(key), visible(item)]));
  };
  return visible(value) as T;
}
