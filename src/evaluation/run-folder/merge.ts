// Parts of a run, written in different places, as one.

import { expectSameRun, type RunManifest } from "./manifest.ts";
import { type RunRow, rowDifferences } from "./rows.ts";
import { type OpenRunOptions, openRun, readRun } from "./run.ts";
import type { RunFiles } from "./run-files.ts";

export interface MergeResult {
  readonly path: string;
  readonly manifest: RunManifest;
  readonly rows: readonly RunRow[];
  /** Parts that are not among those given, where all name the same number of parts; for a message. */
  readonly missing: readonly string[];
}

/**
 * Joins runs into a new folder (or one that holds a part of the same run). Rows come in the order of `order`, where it
 * is given (the order that one process would have written), else in that of the parts.
 *
 * @param parts folders, or RunFiles; at least one
 * @throws RangeError when the parts are of different runs, naming what differs, or a row is there twice and differs
 */
export async function mergeRuns(
  parts: readonly (string | RunFiles)[],
  target: string | RunFiles,
  options: { readonly session?: OpenRunOptions["session"]; readonly order?: (a: RunRow, b: RunRow) => number } = {},
): Promise<MergeResult> {
  if (parts.length === 0) throw new RangeError("merge: expected at least one run, got none");
  const runs = await Promise.all(parts.map(readRun));
  const first = runs[0]!;
  for (const { manifest, path } of runs) expectSameRun(first.manifest, manifest, path);
  const rows = new Map<string, { row: RunRow; path: string }>();
  for (const { rows: own, path } of runs) {
    for (const row of own) {
      const known = rows.get(row.key);
      if (known === undefined) {
        rows.set(row.key, { row, path });
        continue;
      }
      const differences = rowDifferences(known.row, row);
      if (differences.length > 0) {
        throw new RangeError(
          `merge: expected ${JSON.stringify(row.key)} to be equal in ${known.path} and ${path}, got ${differences[0]}`,
        );
      }
    }
  }
  const ordered = Array.from(rows.values(), ({ row }) => row);
  if (options.order !== undefined) ordered.sort(options.order);
  const { kind, identity } = first.manifest;
  const run = await openRun(target, {
    kind,
    identity,
    ...(options.session === undefined ? {} : { session: options.session }),
  });
  try {
    for (const row of ordered) await run.append(row);
    return {
      path: run.path,
      manifest: run.manifest,
      rows: run.rows,
      missing: missingParts(runs.map((r) => r.manifest)),
    };
  } finally {
    await run.close();
  }
}

function missingParts(manifests: readonly RunManifest[]): string[] {
  const shards = manifests.flatMap(({ shard }) => (shard === null ? [] : [shard]));
  const counts = [...new Set(shards.map(({ count }) => count))];
  if (shards.length < manifests.length || counts.length !== 1) return [];
  const there = new Set(shards.map(({ index }) => index));
  return Array.from({ length: counts[0]! }, (_, i) => i + 1)
    .filter((index) => !there.has(index))
    .map((index) => `${index}/${counts[0]}`);
}
