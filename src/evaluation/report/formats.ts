// The forms that a report is written in, by the ending of a file's name.

import { reportHtml } from "./html.ts";
import { reportMarkdown } from "./markdown.ts";
import type { Language } from "./markup.ts";
import type { Report } from "./model.ts";
import { reportParquet } from "./parquet.ts";
import { reportSvg } from "./svg.ts";
import { reportCsv, reportJsonLines } from "./tables.ts";

export interface ReportFormat {
  /** Its media type. */
  readonly type: string;
  readonly write: (
    report: Report,
    options: { readonly version: string; readonly language?: Language | undefined },
  ) => string | Promise<Uint8Array<ArrayBuffer>>;
}

/** Every form under its ending. `language`: of Markdown and SVG, and what the page shows at first. */
export const reportFormats: Readonly<Record<string, ReportFormat>> = {
  html: {
    type: "text/html",
    write: (report, { version, language }) =>
      reportHtml(report, { version, ...(language === undefined ? {} : { language }) }),
  },
  md: { type: "text/markdown", write: (report, { language }) => reportMarkdown(report, language) },
  csv: { type: "text/csv", write: (report) => reportCsv(report) },
  jsonl: { type: "application/jsonl", write: (report) => reportJsonLines(report) },
  svg: { type: "image/svg+xml", write: (report, { language }) => reportSvg(report, language) },
  parquet: { type: "application/vnd.apache.parquet", write: (report) => reportParquet(report) },
};
