// What the doctor is given, what it finds, and what one finding's record holds. A record is data and one check; every
// sentence for people exists in English and in Traditional Chinese (Taiwan).

import type { Finding, Severity } from "../../formats/finding.ts";
import type { JsonObject } from "../../formats/huggingface/values.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import type { ParsedCommand } from "./command.ts";

export const doctorEngines = [
  "transformers",
  "vllm",
  "sglang",
  "llama.cpp",
  "ollama",
  "mlx-lm",
  "exllamav2",
  "exllamav3",
] as const;

export type DoctorEngine = (typeof doctorEngines)[number];

/** One text in the languages of the project. */
export interface Both {
  readonly en: string;
  readonly "zh-TW": string;
}

export type Language = keyof Both;

/** The same text in both languages: names, numbers, code. */
export function alike(text: string): Both {
  return { en: text, "zh-TW": text };
}

export interface DiagnoseInput {
  /** config.json, as text (numbers keep their spelling: 8.0 is not 8) or as JSON.parse gave it. */
  readonly config?: string | JsonObject;
  /** What a GGUF or llama2.c header says (`openModel`), where there is no config.json. */
  readonly model?: ModelDescription;
  /** Shapes of the weights by tensor name, where a header was read. */
  readonly tensors?: ReadonlyMap<string, readonly number[]>;
  /** What the reader of the weights found. */
  readonly weightFindings?: readonly Finding[];
  /** A server's command line, or an Ollama Modelfile. */
  readonly command?: string;
  /** Whose reading counts beside transformers'; the command's own when absent. */
  readonly engine?: DoctorEngine;
  /** "0.11.0"; the newest that was read when absent. */
  readonly engineVersion?: string;
  /** Tokens that are to be read. */
  readonly target?: number;
}

/** One change that `applyFixes` makes: RFC 6902 on config.json, or on the command line. */
export type Operation =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string }
  | { readonly op: "set-flag"; readonly flag: string; readonly value: string }
  | { readonly op: "remove-flag"; readonly flag: string }
  | { readonly op: "set-variable"; readonly name: string; readonly value: string };

/** `where` is a JSON pointer into config.json, a flag, a GGUF key or a tensor; texts are English. */
export interface DoctorFinding extends Finding {
  /** The engine whose behaviour this is about; null: the configuration itself. */
  readonly engine: DoctorEngine | null;
  /** Where it was reported or stated in public. */
  readonly references: readonly string[];
  /** What applyFixes does about it; empty where a person must decide. */
  readonly operations: readonly Operation[];
  /** The same texts in Traditional Chinese; `expected` may be empty. */
  readonly chinese: { readonly expected: string; readonly why: string; readonly fix: string };
}

export interface Diagnosis {
  /** The model as the engine is started on it (overrides of the command line included); null when it cannot be read. */
  readonly model: ModelDescription | null;
  readonly engine: DoctorEngine | null;
  readonly engineVersion: string | null;
  readonly target: number | null;
  /** Errors first, then warnings, then notes. */
  readonly findings: readonly DoctorFinding[];
}

/** What checks look at. */
export interface Subject {
  /** config.json as it stands; null for GGUF and where only a command was given. */
  readonly config: JsonObject | null;
  /** Its text, where numbers keep their spelling. */
  readonly configText: string | null;
  /** config.json with the command line's overrides merged in, as the engine merges them. */
  readonly effective: JsonObject | null;
  /** The flag that carries the overrides, and what it holds. */
  readonly overrides: { readonly flag: string; readonly value: JsonObject } | null;
  /** Where the text model stands: "" or "/text_config". */
  readonly textPath: string;
  readonly model: ModelDescription | null;
  readonly tensors: ReadonlyMap<string, readonly number[]> | null;
  readonly command: ParsedCommand | null;
  readonly engine: DoctorEngine | null;
  /** The version given, or the newest that was read. */
  readonly version: string | null;
  readonly target: number | null;
}

/** One occurrence: what differs from case to case. */
export interface Found {
  readonly where: string;
  readonly got: unknown;
  readonly expected: Both;
  /** In place of the record's `why`, where numbers make it clearer. */
  readonly why?: Both;
  readonly fix?: Both;
  readonly severity?: Severity;
  readonly operations?: readonly Operation[];
}

/** A broken case: what the page shows, and what a test holds to bring the finding about. */
export interface Broken {
  readonly config?: JsonObject;
  readonly command?: string;
  readonly engine?: DoctorEngine;
  readonly engineVersion?: string;
  readonly target?: number;
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
  /** GGUF metadata, for findings that only such a file can have: key, type, value. */
  readonly gguf?: readonly (readonly [key: string, type: string, value: unknown])[];
}

export interface FindingRecord {
  /** Stable, kebab-case. */
  readonly code: string;
  readonly severity: Severity;
  /** Whose behaviour it is about; none: the file's, whoever reads it. */
  readonly engines: readonly DoctorEngine[];
  /** What happened, in one line. */
  readonly title: Both;
  /** The consequence, in one or two sentences. */
  readonly why: Both;
  /** What to do. */
  readonly fix: Both;
  readonly references: readonly string[];
  /** null: an accident of files that no configuration can show (a damaged index, …). */
  readonly broken: Broken | null;
  /** Absent: the reader of the file finds it. */
  readonly check?: (subject: Subject) => Iterable<Found>;
  /** A finding of the reader that changes nothing as it stands: a note then. */
  readonly isHarmless?: (finding: Finding) => boolean;
  /** Operations for a finding of the reader. */
  readonly repair?: (finding: Finding, subject: Subject) => readonly Operation[];
}
