// What the commands that measure share: texts as tokens, lists of factors, a run folder.

import { cpus, totalmem } from "node:os";
import { basename, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import {
  type CompareText,
  type JsonRecord,
  memoryRunFiles,
  openRun,
  type Run,
  type RunSession,
  runName,
  type Shard,
  sha256,
  tokenizedText,
} from "../evaluation/index.ts";
import type { Tokenizer } from "../formats/tokenizers/index.ts";
import { readText, readTokens } from "./encoding-options.ts";

/** Where runs go when no --out says otherwise. */
export const runsFolder = "longhand-runs";

/** Texts as tokens, with their hashes. */
export async function readTexts(paths: readonly string[], tokenizer: Tokenizer): Promise<CompareText[]> {
  const out: CompareText[] = [];
  for (const path of paths) {
    out.push(tokenizedText(path === "-" ? "standard input" : basename(path), await readText(path), tokenizer));
  }
  return out;
}

/** Texts that are tokens already: JSON lists, or objects with a list tokens. */
export async function readTokenFiles(paths: readonly string[]): Promise<CompareText[]> {
  const out: CompareText[] = [];
  for (const path of paths) {
    const tokens = Int32Array.from(await readTokens(path));
    out.push({ name: basename(path), sha256: sha256(JSON.stringify(Array.from(tokens))), tokens });
  }
  return out;
}

/** The run's folder: --out, or one that its name and identity give, so that the same command finds it again. */
export function runFolder(
  kind: string,
  model: string,
  identity: JsonRecord,
  out: string | undefined,
  shard: Shard | null,
): string {
  const base = out ?? join(runsFolder, runName(kind, model, identity));
  return shard === null ? base : join(base, `shard-${shard.index}-of-${shard.count}`);
}

export async function openEvaluationRun(
  kind: string,
  identity: JsonRecord,
  folder: string | null,
  shard: Shard | null = null,
): Promise<Run> {
  return openRun(folder ?? memoryRunFiles(), { kind, identity, shard, session: session() });
}

export function session(): RunSession {
  return {
    startedAt: new Date().toISOString(),
    command: ["longhand", ...process.argv.slice(2)],
    versions: { longhand: packageJson.version, node: process.version },
    hardware: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      memoryBytes: totalmem(),
      platform: `${process.platform} ${process.arch}`,
    },
  };
}

/** What every measured row depends on besides its own settings. */
export function softwareIdentity(): JsonRecord {
  return { longhand: packageJson.version };
}

/** 45 s, 3 min, 2.5 h. */
export function duration(seconds: number): string {
  if (seconds < 99.5) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5970) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** 850 MB, 3.2 GB. */
export function bytes(count: number): string {
  return count < 999.5e6 ? `${Math.round(count / 1e6)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}
