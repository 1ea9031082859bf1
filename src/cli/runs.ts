// longhand runs and longhand merge: what run folders hold, in what they differ, and parts of one as one.

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import {
  type CompareIdentity,
  compareResult,
  compareRowOrder,
  compareVerdict,
  mergeRuns,
  type RunManifest,
  type RunRow,
  readRun,
  runDifferences,
  runDifferenceText,
} from "../evaluation/index.ts";
import { compareText } from "./compare-table.ts";
import { runsFolder, session } from "./evaluation-run.ts";
import { languageOption } from "./options.ts";
import { palette } from "./terminal.ts";

interface JsonFlag {
  readonly json?: true;
}

export function addRuns(program: Command): void {
  const runs = program
    .command("runs")
    .summary("what run folders hold")
    .description("List run folders, show one, or say in what two differ.")
    .addHelpText(
      "after",
      `
Examples:
  longhand runs                      those under ${runsFolder}
  longhand runs show runs/mine       what it is, and its result so far; also while it is being written
  longhand runs diff runs/a runs/b   settings, hashes and results that differ`,
    );
  runs
    .command("list", { isDefault: true })
    .description("list the runs in a folder")
    .argument("[folder]", "where they are", runsFolder)
    .option("--json", "print one JSON document")
    .action(list);
  runs
    .command("show")
    .description("what a run is, and its result so far")
    .argument("<run>", "a run folder")
    .option("--json", "print one JSON document")
    .action(show);
  runs
    .command("diff")
    .description("in what two runs differ")
    .argument("<first>", "a run folder")
    .argument("<second>", "another")
    .option("--json", "print one JSON document")
    .addOption(languageOption("what is printed"))
    .action(diff);
}

export function addMerge(program: Command): void {
  program
    .command("merge")
    .summary("join the parts of a run")
    .description(
      "Join the parts of a run, written with --shard, into one. They must be of the same run, hash for hash.",
    )
    .argument("<runs...>", "run folders, or a folder that holds them as shard-1-of-8, …")
    .option("--out <folder>", "where to; the folder that holds the parts when there is one")
    .option("--json", "print one JSON document")
    .addHelpText(
      "after",
      `
Examples:
  longhand merge runs/mine                            joins runs/mine/shard-*
  longhand merge part1 part2 part3 --out runs/mine`,
    )
    .action(merge);
}

async function list(folder: string, { json }: JsonFlag): Promise<void> {
  const entries = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" && folder === runsFolder) return [] as string[];
    throw error;
  });
  const found: { path: string; kind: string; model: string | null; rows: number; startedAt: string | null }[] = [];
  for (const name of entries.sort()) {
    const path = join(folder, name);
    if (!(await isRun(path))) continue;
    const { manifest, rows } = await readRun(path);
    found.push({
      path,
      kind: manifest.kind,
      model: typeof manifest.identity.model === "string" ? manifest.identity.model : null,
      rows: rows.length,
      startedAt: manifest.sessions[0]?.startedAt ?? null,
    });
  }
  if (json) {
    process.stdout.write(`${JSON.stringify({ folder, runs: found })}\n`);
    return;
  }
  if (found.length === 0) process.stdout.write(`No runs in ${folder}.\n`);
  for (const { path, kind, model, rows, startedAt } of found) {
    const facts = [kind, ...(model === null ? [] : [model]), `${rows.toLocaleString("en")} rows`];
    const when = startedAt === null ? "" : palette.dim(`  ${startedAt.slice(0, 16).replace("T", " ")}`);
    process.stdout.write(`${palette.bold(path)}  ${facts.join(" · ")}${when}\n`);
  }
}

async function show(path: string, { json }: JsonFlag): Promise<void> {
  const { manifest, rows } = await readRun(path);
  if (json) {
    const result = manifest.kind === "compare" ? { result: resultOf(manifest, rows) } : { rows };
    process.stdout.write(`${JSON.stringify({ run: path, manifest, ...result })}\n`);
    return;
  }
  process.stdout.write(`${describe(path, manifest, rows)}\n`);
  if (manifest.kind !== "compare") return;
  const result = compareResult(identityOf(manifest), rows);
  process.stdout.write(`\n${compareText(result, palette)}${result.complete ? "" : "\nNot complete yet.\n"}`);
}

function describe(path: string, manifest: RunManifest, rows: readonly RunRow[]): string {
  const { kind, identity, identityHash, shard, sessions } = manifest;
  const flat = Object.entries(identity).map(([key, value]) => {
    const text = JSON.stringify(value);
    return `  ${key.padEnd(16)}${text.length > 90 ? `${text.slice(0, 87)}...` : text}`;
  });
  return [
    `${palette.bold(path)}  ${kind}, ${rows.length.toLocaleString("en")} rows` +
      `${shard === null ? "" : `, part ${shard.index} of ${shard.count}`}`,
    ...flat,
    `  identity        ${identityHash}`,
    ...sessions.map(({ startedAt, command, hardware }) =>
      palette.dim(`  ${startedAt}  ${command?.join(" ") ?? ""}  ${hardware.cpu ?? ""}`),
    ),
  ].join("\n");
}

interface DiffFlags extends JsonFlag {
  readonly lang: "en" | "zh-TW";
}

async function diff(first: string, second: string, { json, lang }: DiffFlags): Promise<void> {
  const [a, b] = await Promise.all([readRun(first), readRun(second)]);
  const settings = runDifferences(a.manifest, b.manifest);
  const results =
    a.manifest.kind === "compare" && b.manifest.kind === "compare"
      ? compareStrategies(resultOf(a.manifest, a.rows), resultOf(b.manifest, b.rows))
      : [];
  if (json) {
    process.stdout.write(`${JSON.stringify({ runs: [first, second], settings, results })}\n`);
    return;
  }
  const lines = [
    ...(settings.length === 0
      ? [lang === "en" ? "The same settings." : "設定相同。"]
      : settings.map((difference) => runDifferenceText(difference, lang))),
    ...results.map(({ strategy, first, second }) => {
      const [x, y] = [first.toFixed(4), second.toFixed(4)];
      const change = `${second < first ? "−" : "+"}${Math.abs(second - first).toFixed(4)}`;
      const said =
        lang === "en"
          ? `beyond the trained length ${x} and ${y} nats, ${change}`
          : `超過訓練長度之後 ${x} 與 ${y} nats，${change}`;
      return `${strategy.padEnd(20)} ${said}`;
    }),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

function compareStrategies(
  a: ReturnType<typeof resultOf>,
  b: ReturnType<typeof resultOf>,
): { strategy: string; first: number; second: number }[] {
  return a.strategies.flatMap(({ strategy, beyond }) => {
    const other = b.strategies.find((one) => one.strategy === strategy)?.beyond;
    return beyond === null || other === null || other === undefined
      ? []
      : [{ strategy, first: beyond.mean, second: other.mean }];
  });
}

async function merge(paths: readonly string[], flags: JsonFlag & { readonly out?: string }): Promise<void> {
  const parts: string[] = [];
  const holders: string[] = [];
  for (const path of paths) {
    if (await isRun(path)) {
      parts.push(path);
      continue;
    }
    const inside = (await readdir(path)).filter((name) => /^shard-\d+-of-\d+$/.test(name)).sort();
    if (inside.length === 0) throw new RangeError(`${path}: expected a run folder, or one with shard-…, got neither`);
    parts.push(...inside.map((name) => join(path, name)));
    holders.push(path);
  }
  const out = flags.out ?? (holders.length === 1 ? holders[0] : undefined);
  if (out === undefined) throw new RangeError("--out: expected a folder to write to, got none");
  const { manifest } = await readRun(parts[0]!);
  const isCompare = manifest.kind === "compare";
  const merged = await mergeRuns(parts, out, {
    session: session(),
    ...(isCompare ? { order: compareRowOrder(identityOf(manifest)) } : {}),
  });
  const result = isCompare ? resultOf(merged.manifest, merged.rows) : null;
  if (flags.json) {
    const { missing, rows } = merged;
    process.stdout.write(`${JSON.stringify({ run: out, parts, missing, rows: rows.length, result })}\n`);
    return;
  }
  const lacking = merged.missing.length === 0 ? "" : `; missing: ${merged.missing.join(", ")}`;
  process.stdout.write(`${parts.length} parts, ${merged.rows.length.toLocaleString("en")} rows in ${out}${lacking}\n`);
  if (result !== null) process.stdout.write(`\n${compareText(result, palette)}`);
}

function resultOf(manifest: RunManifest, rows: readonly RunRow[]) {
  const result = compareResult(identityOf(manifest), rows);
  return { ...result, verdict: compareVerdict(result) };
}

function identityOf(manifest: RunManifest): CompareIdentity {
  return manifest.identity as CompareIdentity;
}

async function isRun(path: string): Promise<boolean> {
  return stat(join(path, "manifest.json")).then(
    (info) => info.isFile(),
    () => false,
  );
}
