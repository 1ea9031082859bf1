// Carries out what findings propose: on the text of config.json, so that the rest of it stays as it was written, and on a
// command line. The inputs are not changed; whoever writes files keeps the old one.

import { isModelfile, parseCommand, quoted, shellWords } from "./command.ts";
import { diagnose } from "./diagnose.ts";
import { patchText } from "./json-text.ts";
import type { DiagnoseInput, Diagnosis, DoctorFinding, Operation } from "./types.ts";

export interface Fixed {
  /** The text of config.json; null where none was given. */
  readonly config: string | null;
  readonly command: string | null;
  /** Codes whose operations were all carried out. */
  readonly applied: readonly string[];
  /** Codes that have no operations, or whose place is no longer there. */
  readonly skipped: readonly string[];
}

/**
 * Applies the operations of findings to copies of their inputs.
 *
 * @param input config.json as text, and the command line, as they were diagnosed
 * @param findings of `diagnose`
 * @returns the new texts, and which codes were applied; diagnose again to see what is left
 * @example
 * ```ts
 * import { applyFixes, diagnose } from "longhand/advice";
 * const config = `{"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4,
 *   "head_dim": 16, "rope_scaling": {"type": "linear", "factor": 8.0}, "sliding_window": 512}`;
 * const fixed = applyFixes({ config }, diagnose({ config }).findings);
 * fixed.applied; // => ["legacy-type-lost"]
 * fixed.config.includes('{"factor": 8.0, "rope_type": "linear"}'); // => true
 * ```
 */
export function applyFixes(
  input: { readonly config?: string | undefined; readonly command?: string | undefined },
  findings: readonly DoctorFinding[],
): Fixed {
  let config = input.config ?? null;
  let command = input.command ?? null;
  const applied: string[] = [];
  const skipped: string[] = [];
  /** A flag is set whole: a second finding about it waits for the next look. */
  const settled = new Set<string>();
  for (const { code, operations } of findings) {
    const flags = operations.flatMap((operation) => ("flag" in operation ? [operation.flag] : []));
    if (operations.length === 0 || flags.some((flag) => settled.has(flag))) {
      skipped.push(code);
      continue;
    }
    let [nextConfig, nextCommand]: [string | null, string | null] = [config, command];
    let isDone = true;
    for (const operation of operations) {
      if ("path" in operation) {
        const text = nextConfig === null ? null : patchText(nextConfig, operation);
        if (text === null) isDone = false;
        else nextConfig = text;
      } else {
        const text = nextCommand === null ? null : patchCommand(nextCommand, operation);
        if (text === null) isDone = false;
        else nextCommand = text;
      }
    }
    // A finding is repaired whole or not at all.
    if (isDone) [config, command] = [nextConfig, nextCommand];
    if (isDone) for (const flag of flags) settled.add(flag);
    (isDone ? applied : skipped).push(code);
  }
  return { config, command, applied, skipped };
}

/** One repair can uncover the next; more than this many in a row have not been seen. */
const maxRounds = 8;

export interface Repaired {
  /** What is left after all repairs. */
  readonly diagnosis: Diagnosis;
  /** The text of config.json; null where none was given, or an object was. */
  readonly config: string | null;
  readonly command: string | null;
  /** Codes that were repaired, in order, each once. */
  readonly applied: readonly string[];
}

/**
 * Diagnoses, applies what can be applied, and diagnoses again, until nothing changes.
 *
 * @param input as for `diagnose`, the configuration as text
 * @throws RangeError as `diagnose`
 * @example
 * ```ts
 * import { repair } from "longhand/advice";
 * const config = `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
 *   "max_position_embeddings": 16384, "rope_theta": 500000.0,
 *   "rope_scaling": {"rope_type": "linear", "factor": "4.0"}}`;
 * const { applied, diagnosis } = repair({ config });
 * applied; // => ["number-in-quotes"]
 * diagnosis.findings.some(({ severity }) => severity === "error"); // => false
 * ```
 */
export function repair(input: DiagnoseInput): Repaired {
  let current = input;
  let diagnosis = diagnose(current);
  const applied: string[] = [];
  for (let round = 0; round < maxRounds; round++) {
    const config = typeof current.config === "string" ? current.config : undefined;
    const fixed = applyFixes({ config, command: current.command }, diagnosis.findings);
    if (fixed.config === (config ?? null) && fixed.command === (current.command ?? null)) break;
    applied.push(...fixed.applied);
    current = {
      ...current,
      ...(fixed.config === null ? {} : { config: fixed.config }),
      ...(fixed.command === null ? {} : { command: fixed.command }),
    };
    diagnosis = diagnose(current);
  }
  return {
    diagnosis,
    config: typeof current.config === "string" ? current.config : null,
    command: current.command ?? null,
    applied: [...new Set(applied)],
  };
}

type CommandOperation = Exclude<Operation, { readonly path: string }>;

function patchCommand(text: string, operation: CommandOperation): string | null {
  if (operation.op === "set-variable") return `${operation.name}=${quoted(operation.value)} ${text}`;
  return isModelfile(text) ? patchModelfile(text, operation) : patchFlags(text, operation);
}

function patchModelfile(text: string, operation: Exclude<CommandOperation, { op: "set-variable" }>): string {
  const name = operation.flag.replace(/^PARAMETER /, "");
  const lines = text.split("\n");
  const isParameter = (line: string) => new RegExp(`^\\s*parameter\\s+${name}(\\s|$)`, "i").test(line);
  if (operation.op === "remove-flag") return lines.filter((line) => !isParameter(line)).join("\n");
  const line = `PARAMETER ${name} ${operation.value}`;
  const at = lines.findIndex(isParameter);
  if (at >= 0) lines[at] = line;
  else lines.splice(lines.at(-1) === "" ? -1 : lines.length, 0, line);
  return lines.join("\n");
}

function patchFlags(text: string, operation: Exclude<CommandOperation, { op: "set-variable" }>): string | null {
  const words = shellWords(text);
  if (words === null) return null;
  const { flags, variables } = parseCommand(text);
  const written = new Set(flags.filter(({ name }) => name === operation.flag).map((flag) => flag.written));
  const out: string[] = [];
  let isSet = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const [head = word] = word.split("=", 1);
    if (!written.has(head) || variables.has(head)) {
      out.push(word);
      continue;
    }
    const isJoined = word.includes("=");
    const next = words[i + 1];
    const hasValue = !isJoined && next !== undefined && !/^--?[a-zA-Z]/.test(next);
    if (hasValue) i++;
    if (operation.op === "remove-flag" || isSet) continue;
    out.push(...(isJoined ? [`${head}=${operation.value}`] : [head, operation.value]));
    isSet = true;
  }
  if (operation.op === "set-flag" && !isSet) out.push(operation.flag, operation.value);
  return out.map(quotedWord).join(" ");
}

/** NAME=value before a command keeps its name bare. */
function quotedWord(word: string): string {
  const set = /^([A-Z_][A-Z0-9_]*=)(.*)$/s.exec(word);
  return set === null ? quoted(word) : set[1]! + (set[2] === "" ? "" : quoted(set[2]!));
}
