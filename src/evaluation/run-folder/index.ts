// A run folder is the truth about a run: manifest.json says what it is, rows.jsonl holds what came out, append-only.

export {
  canonicalJson,
  type Json,
  type JsonDifference,
  type JsonRecord,
  jsonDifferences,
  jsonHash,
} from "./json.ts";
export { type RunManifest, type RunSession, runDifferences, runName } from "./manifest.ts";
export { type MergeResult, mergeRuns } from "./merge.ts";
export { modelHashes, modelWeightBytes } from "./model-hashes.ts";
export { nodeRunFiles, sha256File } from "./node-run-files.ts";
export type { RunRow } from "./rows.ts";
export { type OpenRunOptions, openRun, Run, readRun } from "./run.ts";
export { type Appender, memoryRunFiles, type RunFiles, type RunLock, RunLockedError } from "./run-files.ts";
export { Sha256, sha256 } from "./sha256.ts";
export { inShard, parseShard, type Shard } from "./shard.ts";
