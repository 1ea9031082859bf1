// The charts of a report as one SVG that stands alone.

import { chartsDocument } from "./chart.ts";
import { chartsOf } from "./curves.ts";
import type { Language } from "./markup.ts";
import type { Report } from "./model.ts";

/** @throws RangeError where no run has curves */
export function reportSvg({ sections }: Report, language: Language = "en"): string {
  const charts = sections.flatMap((section) =>
    chartsOf(section).map((chart) => ({ heading: `${section.title} · ${chart.title[language]}`, chart })),
  );
  if (charts.length === 0) throw new RangeError("report: expected a run with curves for an SVG, got none");
  return chartsDocument(charts, language);
}
