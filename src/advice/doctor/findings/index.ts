// Every finding, in one list: the doctor runs their checks, and docs/findings/ is made of them.

import type { FindingRecord } from "../types.ts";
import { baseAndShare } from "./base-and-share.ts";
import { engineFindings } from "./engines.ts";
import { gguf } from "./gguf.ts";
import { layers } from "./layers.ts";
import { lengths } from "./lengths.ts";
import { llamaCpp } from "./llama-cpp.ts";
import { magnitude } from "./magnitude.ts";
import { notes } from "./notes.ts";
import { otherEngines } from "./other-engines.ts";
import { spelling } from "./spelling.ts";
import { vllm } from "./vllm.ts";

export const findingRecords: readonly FindingRecord[] = [
  ...spelling,
  ...layers,
  ...lengths,
  ...baseAndShare,
  ...magnitude,
  ...gguf,
  ...vllm,
  ...llamaCpp,
  ...otherEngines,
  ...engineFindings,
  ...notes,
];

/** The record of a code; "assumed-…" share one. */
export function recordOf(code: string): FindingRecord | undefined {
  return (
    findingRecords.find((record) => record.code === code) ??
    findingRecords.find((record) => record.code.endsWith("*") && code.startsWith(record.code.slice(0, -1)))
  );
}
