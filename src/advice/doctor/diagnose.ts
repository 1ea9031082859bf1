// The doctor: what the reader of a file finds, and every record's own check, as one list. Pure: no file is opened and
// nothing is run, so it works in a page too.

import type { Finding, Severity } from "../../formats/finding.ts";
import { inspectModel } from "../inspect.ts";
import { findingRecords, recordOf } from "./findings/index.ts";
import { pointerOf } from "./json-text.ts";
import { flagJson } from "./record.ts";
import { type Prepared, prepare, type Refusal } from "./subject.ts";
import {
  alike,
  type DiagnoseInput,
  type Diagnosis,
  type DoctorFinding,
  type FindingRecord,
  type Operation,
  type Subject,
} from "./types.ts";

const order: { readonly [S in Severity]: number } = { error: 0, warning: 1, note: 2 };

/**
 * Looks for mistakes in a long-context configuration.
 *
 * @param input a config.json (text or parsed) or a description of another format; a server's command line; the engine
 *   and its version; the length that is to be read, in tokens; shapes of the weights where a header was read
 * @returns the findings, errors first, each with its place, what stands there, what was expected, why, and what
 *   `applyFixes` would change; and the model as the engine is started on it
 * @throws RangeError for a command that is none, an engine that is unknown, a target that is no integer of at least 1.
 *   A file that cannot be read is a finding, not an exception.
 * @example
 * ```ts
 * import { diagnose } from "longhand/advice";
 * const { findings } = diagnose({
 *   config: {
 *     model_type: "qwen3", hidden_size: 4096, num_hidden_layers: 36, num_attention_heads: 32, head_dim: 128,
 *     max_position_embeddings: 40960, rope_theta: 1000000,
 *     rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32768 },
 *   },
 * });
 * [findings[0].code, findings[0].where]; // => ["yarn-factor-mismatch", "/rope_scaling/factor"]
 * findings[0].operations; // => [{ op: "add", path: "/max_position_embeddings", value: 131072 }]
 * ```
 */
export function diagnose(input: DiagnoseInput): Diagnosis {
  const prepared = prepare(input);
  const { subject } = prepared;
  const findings: DoctorFinding[] = [
    ...prepared.refusals.map((refusal) => ofRefusal(refusal)),
    ...ofReader(prepared),
    ...(input.weightFindings ?? []).map((finding) => ofFinding(finding, subject, null)),
    ...ofOverrides(prepared),
  ];
  for (const record of findingRecords) {
    for (const found of record.check?.(subject) ?? []) findings.push(ofCheck(record, found, subject));
  }
  return {
    model: subject.model,
    engine: subject.engine,
    engineVersion: subject.engine === null ? null : subject.version,
    target: subject.target,
    findings: unique(findings).sort((a, b) => order[a.severity] - order[b.severity]),
  };
}

function unique(findings: readonly DoctorFinding[]): DoctorFinding[] {
  const seen = new Set<string>();
  return findings.filter(({ code, where, expected }) => {
    const key = JSON.stringify([code, where, expected]);
    return seen.has(key) ? false : seen.add(key);
  });
}

function ofCheck(record: FindingRecord, found: Parameters<typeof textsOf>[1], subject: Subject): DoctorFinding {
  const texts = textsOf(record, found);
  return {
    code: record.code,
    severity: found.severity ?? record.severity,
    where: found.where,
    got: found.got,
    ...texts.en,
    engine: record.engines.find((engine) => engine === subject.engine) ?? null,
    references: record.references,
    operations: found.operations ?? [],
    chinese: texts.chinese,
  };
}

function textsOf(
  record: FindingRecord,
  found: ReturnType<NonNullable<FindingRecord["check"]>> extends Iterable<infer F> ? F : never,
) {
  const why = found.why ?? record.why;
  const fix = found.fix ?? record.fix;
  return {
    en: { expected: found.expected.en, why: why.en, fix: fix.en },
    chinese: { expected: found.expected["zh-TW"], why: why["zh-TW"], fix: fix["zh-TW"] },
  };
}

function ofRefusal(refusal: Refusal): DoctorFinding {
  const record = recordOf(refusal.code)!;
  const { where, got, expected } = refusal;
  return {
    code: refusal.code,
    severity: "error",
    where,
    got,
    expected,
    why: record.why.en,
    fix: refusal.fix === "" ? record.fix.en : refusal.fix,
    engine: null,
    references: record.references,
    operations: refusal.operations,
    chinese: { expected: "", why: record.why["zh-TW"], fix: record.fix["zh-TW"] },
  };
}

/** What describes the file found, in the doctor's form. Findings that an override brought about stand at its flag. */
function ofReader({ subject, withoutOverrides }: Prepared): DoctorFinding[] {
  const { model, overrides } = subject;
  if (model === null) return [];
  const own = new Set((withoutOverrides?.findings ?? []).map(({ code, where }) => `${code} ${where}`));
  // Without a length to ask about, none of the file's own is past anything.
  const asked = subject.target ?? model.trainedLength;
  const target = asked === null ? {} : { target: asked };
  // Only tables of rows end somewhere; the rest of an inspection is for charts.
  const ends = model.groups.some(({ position }) => position.kind === "learned");
  return (ends ? inspectModel(model, target).findings : model.findings).map((finding) => {
    const isOverride = overrides !== null && !own.has(`${finding.code} ${finding.where}`);
    return ofFinding(finding, subject, isOverride ? overrides.flag : null);
  });
}

function ofFinding(finding: Finding, subject: Subject, flag: string | null): DoctorFinding {
  const record = recordOf(finding.code);
  const isFile = subject.config !== null && !finding.where.startsWith("tensor ") && finding.where !== "target length";
  const where = isFile ? pointerOf(finding.where) : finding.where;
  const operations = record?.repair?.(finding, subject) ?? [];
  return {
    code: finding.code,
    severity: severityOf(finding, record, subject),
    where: flag === null ? where : `${flag} ${where}`,
    got: finding.got,
    expected: finding.expected,
    why: finding.why,
    fix: finding.fix,
    engine: record?.engines.find((engine) => engine === subject.engine) ?? null,
    references: record?.references ?? [],
    operations: flag === null ? operations : inFlag(operations, subject),
    chinese:
      record === undefined
        ? { expected: "", why: "", fix: "" }
        : { expected: "", why: record.why["zh-TW"], fix: record.fix["zh-TW"] },
  };
}

/** What two readers read differently is wrong for the one that was named. */
function severityOf(finding: Finding, record: FindingRecord | undefined, { engine, version }: Subject): Severity {
  if (record === undefined) return finding.severity;
  if (record.severity === "note" || record.isHarmless?.(finding)) return "note";
  const isNamed = engine !== null && record.engines.includes(engine);
  const isRead = engine !== "transformers" || version === null || !version.startsWith("4");
  return finding.severity === "warning" && isNamed && isRead ? "error" : finding.severity;
}

/** Changes of the effective configuration, made where it came from: in the flag's JSON. */
function inFlag(operations: readonly Operation[], { overrides }: Subject): readonly Operation[] {
  if (overrides === null || operations.length === 0) return [];
  const value = structuredClone(overrides.value) as Record<string, unknown>;
  for (const operation of operations) {
    if (!("path" in operation)) return [];
    const keys = operation.path.slice(1).split("/");
    const name = keys.pop()!;
    let at: Record<string, unknown> = value;
    for (const key of keys) {
      if (typeof at[key] !== "object" || at[key] === null) at[key] = {};
      at = at[key] as Record<string, unknown>;
    }
    if (operation.op === "remove") delete at[name];
    else at[name] = operation.value;
  }
  // vLLM's older flags hold the dict alone.
  if (!/overrid/.test(overrides.flag)) return [];
  return [{ op: "set-flag", flag: overrides.flag, value: flagJson(value) }];
}

/** An override that is no object. */
function ofOverrides({ overrides, subject }: Prepared): DoctorFinding[] {
  if (overrides === null || overrides.value !== null) return [];
  const record = recordOf("override-not-json")!;
  const found = { where: overrides.flag, got: overrides.written, expected: alike('{"rope_parameters": {...}}') };
  return [ofCheck(record, found, subject)];
}
