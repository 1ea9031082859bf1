// What is diagnosed: the file, the command line and what they come to together. A file that cannot be read gives findings
// instead of an exception; where its meaning is certain, reading goes on with the repaired text, so that one look shows
// all that is wrong.

import { FormatError } from "../../formats/bytes/format-error.ts";
import { parseJson } from "../../formats/bytes/json.ts";
import { describeHuggingFace } from "../../formats/huggingface/describe.ts";
import { findTextModel } from "../../formats/huggingface/text-model.ts";
import { isObject, type JsonObject } from "../../formats/huggingface/values.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import { flagOf, numberOf, type ParsedCommand, parseCommand } from "./command.ts";
import { patchText, pointerOf } from "./json-text.ts";
import { merged, type Overrides, overridesOf } from "./overrides.ts";
import { type DiagnoseInput, type DoctorEngine, doctorEngines, type Operation, type Subject } from "./types.ts";
import { readVersions } from "./versions.ts";

/** What a reader threw. */
export interface Refusal {
  readonly code: "number-in-quotes" | "missing-rope-key" | "unknown-rope-type" | "factor-list-length" | "unreadable";
  readonly where: string;
  readonly got: string;
  readonly expected: string;
  readonly fix: string;
  readonly operations: readonly Operation[];
}

export interface Prepared {
  readonly subject: Subject;
  readonly refusals: readonly Refusal[];
  /** The file's own description, without the command line's overrides; null without overrides. */
  readonly withoutOverrides: ModelDescription | null;
  readonly overrides: Overrides | null;
}

export function prepare(input: DiagnoseInput): Prepared {
  const command = input.command === undefined ? null : parseCommand(input.command);
  const engine = engineOf(input, command);
  const refusals: Refusal[] = [];
  const { config, text } = readConfig(input.config, refusals);
  const overrides = command === null ? null : overridesOf(command);
  const usable = config !== null && overrides?.value != null && engine !== null ? overrides.value : null;
  const effective = usable === null ? config : merged(config!, usable, engine!);
  const read = effective === null ? null : describe(effective, refusals);
  const model = effective === null ? (input.model ?? null) : (read?.model ?? null);
  return {
    subject: {
      config,
      configText: text,
      effective: read?.config ?? effective,
      overrides: usable === null ? null : { flag: overrides!.flag, value: usable },
      textPath: effective === null ? "" : textPathOf(effective),
      model,
      tensors: input.tensors ?? null,
      command,
      engine,
      version: input.engineVersion ?? (engine === null ? null : readVersions[engine]),
      target: input.target ?? servedLength(command),
    },
    refusals,
    withoutOverrides: usable === null ? null : describe(config!, []).model,
    overrides,
  };
}

function engineOf(input: DiagnoseInput, command: ParsedCommand | null): DoctorEngine | null {
  const { engine } = input;
  if (engine !== undefined && !doctorEngines.includes(engine)) {
    throw new RangeError(`diagnose: expected engine to be one of ${doctorEngines.join(", ")}, got ${String(engine)}`);
  }
  if (engine !== undefined && command !== null && command.engine !== engine) {
    throw new RangeError(`diagnose: expected engine ${command.engine}, which the command starts, got ${engine}`);
  }
  if (input.target !== undefined && !(Number.isInteger(input.target) && input.target >= 1)) {
    throw new RangeError(`diagnose: expected target to be an integer of at least 1, got ${String(input.target)}`);
  }
  return engine ?? command?.engine ?? null;
}

/** The length that a server is started for, where it says so. */
export function servedLength(command: ParsedCommand | null): number | null {
  for (const flag of ["--max-model-len", "--context-length", "--ctx-size", "PARAMETER num_ctx"]) {
    const value = numberOf(command, flag);
    if (value !== null && Number.isInteger(value) && value >= 1) return value;
  }
  // mlx_lm keeps the last tokens only.
  return flagOf(command, "--max-kv-size") === undefined ? null : numberOf(command, "--max-kv-size");
}

function readConfig(
  config: DiagnoseInput["config"],
  refusals: Refusal[],
): { config: JsonObject | null; text: string | null } {
  if (config === undefined) return { config: null, text: null };
  if (typeof config !== "string") return { config, text: null };
  try {
    const value: unknown = parseJson(config, "config.json");
    if (isObject(value)) return { config: value, text: config };
    refusals.push(refusalOf(new FormatError("config.json", "expected an object, got another value")));
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    refusals.push(refusalOf(error));
  }
  return { config: null, text: config };
}

/** How often one file may be repaired in memory. */
const maxRepairs = 12;

function describe(config: JsonObject, refusals: Refusal[]): { model: ModelDescription | null; config: JsonObject } {
  let current = config;
  for (let round = 0; ; round++) {
    try {
      return { model: describeHuggingFace(current), config: current };
    } catch (error) {
      // What computes in no arithmetic (a factor of 1e308) is a RangeError of the scaling.
      if (!(error instanceof FormatError || error instanceof RangeError)) throw error;
      const refusal = refusalOf(error);
      refusals.push(refusal);
      const repaired = round < maxRepairs ? patched(current, refusal.operations) : null;
      if (repaired === null) return { model: null, config: current };
      current = repaired;
    }
  }
}

function patched(config: JsonObject, operations: readonly Operation[]): JsonObject | null {
  let text: string | null = operations.length === 0 ? null : JSON.stringify(config);
  for (const operation of operations) if (text !== null && "path" in operation) text = patchText(text, operation);
  return text === null ? null : (JSON.parse(text) as JsonObject);
}

/** "config.json a.b: expected X, got Y; fix (byte N)" in its parts. */
function refusalOf(error: Error): Refusal {
  const match = /^(?:config\.json ?)?(\S*?)(?: \(or [^)]*\))?:? ?expected ([\s\S]*?), got ([\s\S]*)$/.exec(
    error.message,
  );
  const [, place = "", expected = error.message, rest = ""] = match ?? [];
  const [got = "", ...fixes] = rest.split("; ");
  const where = pointerOf(place.replace(/:$/, ""));
  const number = /^"([^"]*)"$/.exec(got)?.[1] ?? "";
  const isQuoted = number.trim() !== "" && Number.isFinite(Number(number)) && fixes.includes(`write ${Number(number)}`);
  const kind = isQuoted
    ? "number-in-quotes"
    : / requires$/.test(expected)
      ? "missing-rope-key"
      : /^one of default, /.test(expected)
        ? "unknown-rope-type"
        : /^a list of \d+ numbers, half of/.test(expected)
          ? "factor-list-length"
          : "unreadable";
  return {
    code: kind,
    where,
    got,
    expected,
    fix: fixes.join("; "),
    operations: isQuoted ? [{ op: "replace", path: where, value: Number(number) }] : [],
  };
}

function textPathOf(config: JsonObject): string {
  try {
    const modelType = typeof config.model_type === "string" ? config.model_type : "";
    return pointerOf(findTextModel(config, modelType, []).source.path);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return "";
  }
}
