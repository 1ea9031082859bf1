// manifest.json of a run folder: what the run is. `identity` is everything that the rows depend on (hashes of weights,
// configuration, text and strategies; seed; protocol): a run is gone on with only when it agrees. `sessions` is what may
// differ: when, where and by which command each writer ran.

import {
  expectJson,
  isRecord,
  type Json,
  type JsonDifference,
  type JsonRecord,
  jsonDifferences,
  jsonHash,
} from "./json.ts";
import type { Shard } from "./shard.ts";

export const manifestName = "manifest.json";
const format = "longhand-run";
const formatVersion = 1;

export interface RunManifest {
  readonly format: typeof format;
  readonly formatVersion: typeof formatVersion;
  /** Which command's rows: "compare", "train". */
  readonly kind: string;
  readonly identity: JsonRecord;
  /** SHA-256 of the canonical JSON of kind and identity. */
  readonly identityHash: string;
  /** The part of the rows that this folder holds; null: all. */
  readonly shard: Shard | null;
  readonly sessions: readonly RunSession[];
}

/** One writer. More may be added. */
export interface RunSession {
  /** ISO 8601. */
  readonly startedAt: string;
  /** As typed, the program's name first; null where there is none. */
  readonly command: readonly string[] | null;
  /** Of longhand, Node, the runtime. */
  readonly versions: Readonly<Record<string, string>>;
  readonly hardware: JsonRecord;
}

export function createManifest(kind: string, identity: JsonRecord, shard: Shard | null): RunManifest {
  expectJson(identity, "identity");
  return { format, formatVersion, kind, identity, identityHash: hashOf(kind, identity), shard, sessions: [] };
}

function hashOf(kind: string, identity: JsonRecord): string {
  return jsonHash({ kind, identity });
}

export function encodeManifest(manifest: RunManifest): Uint8Array {
  expectJson(manifest, manifestName);
  return new TextEncoder().encode(`${JSON.stringify(manifest, null, 2)}\n`);
}

/**
 * A manifest from its bytes.
 *
 * @throws RangeError for what is no manifest, one of a later version, or one whose identity was changed by hand
 */
export function decodeManifest(bytes: Uint8Array, folder: string): RunManifest {
  const where = `${folder}/${manifestName}`;
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new RangeError(`${where}: expected JSON, got ${(error as Error).message}`);
  }
  if (!isRecord(value) || value.format !== format || !isRecord(value.identity) || typeof value.kind !== "string") {
    throw new RangeError(`${where}: expected the manifest of a run ("format": "${format}"), got something else`);
  }
  if (value.formatVersion !== formatVersion) {
    throw new RangeError(
      `${where}: expected format version ${formatVersion}, got ${JSON.stringify(value.formatVersion)}`,
    );
  }
  const manifest = value as unknown as RunManifest;
  const hash = hashOf(manifest.kind, manifest.identity);
  if (manifest.identityHash !== hash) {
    throw new RangeError(
      `${where}: expected identityHash ${hash}, that of its identity, got ${manifest.identityHash}; it was changed by hand`,
    );
  }
  return manifest;
}

/** Throws RangeError, naming what differs, unless both are the same run. */
export function expectSameRun(there: RunManifest, here: RunManifest, folder: string): void {
  const differences = runDifferences(there, here);
  if (differences.length === 0) return;
  const shown = differences.slice(0, 8).map(({ message }) => `\n  ${message}`);
  const more = differences.length > shown.length ? `\n  and ${differences.length - shown.length} more` : "";
  throw new RangeError(
    `${folder}: expected the run that the folder holds, got another one; use another folder, or ask for the same.` +
      `${shown.join("")}${more}`,
  );
}

/** What differs between two runs. */
export function runDifferences(there: RunManifest, here: RunManifest): JsonDifference[] {
  const facts = ({ kind, identity }: RunManifest): Json => ({ kind, ...identity });
  return jsonDifferences(facts(there), facts(here));
}

/** A name for a run's folder, which the same run gets again. */
export function runName(kind: string, model: string, identity: JsonRecord): string {
  const name = model.replace(/\.[a-z]+$/i, "").replace(/[^\w.-]+/g, "-");
  return `${kind}-${name}-${jsonHash(identity).slice(0, 8)}`;
}
