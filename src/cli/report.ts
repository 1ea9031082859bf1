// longhand report: run folders as one page that stands alone, and as tables and curves for other programs.

import { rename, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { type Command, Option } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { type Language, readRun, reportFormats, reportOf } from "../evaluation/index.ts";

interface Flags {
  readonly output?: readonly string[];
  readonly language?: Language;
  readonly json?: true;
}

const formats = Object.keys(reportFormats);

const help = `
RUN is a run folder of longhand compare, needle, perplexity, train or drop; several become one report. A run that is not
complete is reported as far as it is. The page holds everything: verdict, curves with intervals, tables, passkeys by
length and depth, hashes, versions and commands; English and Traditional Chinese, light and dark; nothing is loaded from
elsewhere.

-o names the file, and by its ending the format; again for more files:
  .html   the page                           .svg      the curves
  .md     tables for an issue                .csv      a line for every strategy and bin of positions
  .jsonl  everything, a JSON object a line   .parquet  the columns of the CSV, for DuckDB, pandas and Polars

Examples:
  longhand report longhand-runs/compare-model-1a2b3c4d
  longhand report runs/a runs/b -o both.html
  longhand report runs/a -o a.html -o a.csv -o a.svg`;

export function addReport(program: Command): void {
  program
    .command("report")
    .summary("run folders as one page that stands alone")
    .description(
      "Write run folders as one HTML file that stands alone, or as CSV, Parquet, JSON lines, Markdown or SVG.",
    )
    .argument("<runs...>", "run folders")
    .option(
      "-o, --output <file>",
      "where to: .html, .md, .csv, .jsonl, .parquet or .svg; RUN/report.html when absent (longhand-report.html of several runs)",
      (file: string, files: readonly string[] | undefined) => [...(files ?? []), file],
    )
    .addOption(
      new Option("--language <language>", "of .md and .svg, and what the page shows at first").choices(["en", "zh-TW"]),
    )
    .option("--json", "print one JSON document: the files, and the verdict of each run")
    .addHelpText("after", help)
    .action(report);
}

async function report(paths: readonly string[], flags: Flags): Promise<void> {
  const outputs = flags.output ?? [paths.length === 1 ? join(paths[0]!, "report.html") : "longhand-report.html"];
  // Before any work is done.
  const wanted = outputs.map((path) => ({ path, format: formatOf(path) }));
  const made = reportOf(await Promise.all(paths.map(readRun)));
  const files: { path: string; format: string; bytes: number }[] = [];
  for (const { path, format } of wanted) {
    const written = await reportFormats[format]!.write(made, {
      version: packageJson.version,
      language: flags.language,
    });
    const bytes = typeof written === "string" ? new TextEncoder().encode(written) : written;
    await writeFile(`${path}.new`, bytes);
    await rename(`${path}.new`, path);
    files.push({ path, format, bytes: bytes.length });
  }
  if (flags.json) {
    const runs = made.sections.map((section) => ({
      run: section.run.path,
      kind: section.kind,
      model: section.title,
      complete: section.complete,
      verdict: section.kind === "compare" ? section.verdict : [],
    }));
    process.stdout.write(`${JSON.stringify({ files, runs })}\n`);
    return;
  }
  for (const section of made.sections) {
    if (!section.complete) process.stdout.write(`${section.run.path} is not complete; this is what it has so far.\n`);
  }
  for (const { path, bytes } of files)
    process.stdout.write(`${path}  ${Math.ceil(bytes / 1000).toLocaleString("en")} kB\n`);
}

function formatOf(path: string): string {
  const ending = extname(path).slice(1).toLowerCase();
  if (formats.includes(ending)) return ending;
  const known = formats.map((format) => `.${format}`).join(", ");
  throw new RangeError(`-o: expected a file that ends in ${known}, got ${JSON.stringify(path)}`);
}
