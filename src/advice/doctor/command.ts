// A server's command line, or an Ollama Modelfile, as flags: which engine it starts, on which model, with what. Words are
// split as a POSIX shell does (quotes, backslashes, line ends); nothing is expanded or run.

import type { DoctorEngine } from "./types.ts";

export interface Flag {
  /** Canonical: "--max-model-len", "--ctx-size"; a Modelfile's parameter is "PARAMETER num_ctx". */
  readonly name: string;
  /** As written: "-c", "--max_model_len". */
  readonly written: string;
  /** null: a switch without a value. */
  readonly value: string | null;
}

export interface ParsedCommand {
  readonly text: string;
  readonly engine: DoctorEngine;
  /** What it starts: "vllm serve", "llama-server", "Modelfile". */
  readonly program: string;
  /** The model as named; null when none is. */
  readonly model: string | null;
  /** In order; a flag that is given twice stands twice, and the last counts. */
  readonly flags: readonly Flag[];
  /** Variables set before the command, `NAME=value`, and those of `env` and `docker run -e`. */
  readonly variables: ReadonlyMap<string, string>;
}

interface Program {
  readonly engine: DoctorEngine;
  readonly name: string;
  /** The words that say so, one after another. */
  readonly words: RegExp;
  readonly model: readonly string[];
  /** Whether the first word that is no flag names the model. */
  readonly positional: boolean;
}

const programs: readonly Program[] = [
  { engine: "vllm", name: "vllm serve", words: /(^|[\s/])vllm serve$/, model: ["--model"], positional: true },
  { engine: "vllm", name: "vllm", words: /-m vllm\.entrypoints\.[\w.]+$/, model: ["--model"], positional: false },
  { engine: "vllm", name: "vllm", words: /vllm\/vllm-openai(:\S*)?$/, model: ["--model"], positional: true },
  { engine: "sglang", name: "sglang", words: /-m sglang\.launch_server$/, model: ["--model-path"], positional: false },
  {
    engine: "sglang",
    name: "sglang serve",
    words: /(^|[\s/])sglang serve$/,
    model: ["--model-path"],
    positional: true,
  },
  {
    engine: "llama.cpp",
    name: "llama.cpp",
    words: /(^|[\s/])llama-(server|cli|perplexity|bench|completion|run|mtmd-cli)(\.exe)?$/,
    model: ["--model", "--hf-repo"],
    positional: false,
  },
  { engine: "mlx-lm", name: "mlx_lm", words: /(^|[\s/]|-m )mlx_lm\.\w+$/, model: ["--model"], positional: false },
  { engine: "mlx-lm", name: "mlx_lm", words: /(^|[\s/]|-m )mlx_lm \w+$/, model: ["--model"], positional: false },
  { engine: "ollama", name: "ollama", words: /(^|[\s/])ollama (run|create|serve)$/, model: [], positional: true },
];

/** Other spellings of a flag, by engine. */
const spellings: { readonly [E in DoctorEngine]?: Readonly<Record<string, string>> } = {
  vllm: { "--model-path": "--model" },
  sglang: { "--model": "--model-path" },
  "llama.cpp": {
    "-m": "--model",
    "-hf": "--hf-repo",
    "-hfr": "--hf-repo",
    "-c": "--ctx-size",
    "-np": "--parallel",
    "-kvu": "--kv-unified",
  },
};

/** llama.cpp reads each of these flags from the environment too. */
const llamaVariables: Readonly<Record<string, string>> = {
  LLAMA_ARG_CTX_SIZE: "--ctx-size",
  LLAMA_ARG_N_PARALLEL: "--parallel",
  LLAMA_ARG_ROPE_SCALING_TYPE: "--rope-scaling",
  LLAMA_ARG_ROPE_SCALE: "--rope-scale",
  LLAMA_ARG_ROPE_FREQ_BASE: "--rope-freq-base",
  LLAMA_ARG_ROPE_FREQ_SCALE: "--rope-freq-scale",
  LLAMA_ARG_YARN_ORIG_CTX: "--yarn-orig-ctx",
  LLAMA_ARG_YARN_EXT_FACTOR: "--yarn-ext-factor",
  LLAMA_ARG_YARN_ATTN_FACTOR: "--yarn-attn-factor",
  LLAMA_ARG_YARN_BETA_SLOW: "--yarn-beta-slow",
  LLAMA_ARG_YARN_BETA_FAST: "--yarn-beta-fast",
};

/** A shell's words; null where a quote does not end. */
export function shellWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === "'") {
      const end = text.indexOf("'", i + 1);
      if (end < 0) return null;
      word = (word ?? "") + text.slice(i + 1, end);
      i = end;
    } else if (c === '"') {
      word ??= "";
      for (i++; text[i] !== '"'; i++) {
        if (i >= text.length) return null;
        if (text[i] === "\\" && /["\\$`\n]/.test(text[i + 1] ?? "")) i++;
        word += text[i];
      }
    } else if (c === "\\") {
      i++;
      if (text[i] === "\r") i++;
      if (text[i] !== "\n" && i < text.length) word = (word ?? "") + text[i];
    } else if (/\s/.test(c)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (word !== null) words.push(word);
  return words;
}

/** A word as a shell must be given it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** True for text that is a Modelfile: it begins with FROM, comments aside. */
export function isModelfile(text: string): boolean {
  return /^\s*(#.*\n\s*)*FROM\s+\S/i.test(text);
}

/**
 * Reads a command line of vLLM, SGLang, llama.cpp or mlx-lm, or an Ollama Modelfile.
 *
 * @param text as typed: `vllm serve MODEL --max-model-len 131072`, several lines with backslashes too
 * @returns its engine, model and flags under their canonical names
 * @throws RangeError for a quote that does not end, and for a program that is none of these
 * @example
 * ```ts
 * import { parseCommand } from "longhand/advice";
 * const { engine, model, flags } = parseCommand("llama-server -m model.gguf -c 131072 --rope-scaling yarn");
 * [engine, model, flags[1].name, flags[1].value]; // => ["llama.cpp", "model.gguf", "--ctx-size", "131072"]
 * ```
 */
export function parseCommand(text: string): ParsedCommand {
  if (isModelfile(text)) return parseModelfile(text);
  const words = shellWords(text);
  if (words === null) throw new RangeError(`command: expected quotes that end, got ${shown(text)}`);
  for (let end = 1; end <= words.length; end++) {
    const before = words.slice(0, end).join(" ");
    const program = programs.find(({ words: pattern }) => pattern.test(before));
    if (program !== undefined) return parseFlags(text, words, end, program);
  }
  throw new RangeError(
    "command: expected vllm serve, python -m vllm.entrypoints…, python -m sglang.launch_server, llama-server, " +
      `mlx_lm.server, ollama or a Modelfile, got ${shown(text)}`,
  );
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
}

function parseFlags(text: string, words: readonly string[], start: number, program: Program): ParsedCommand {
  const variables = new Map<string, string>();
  const flags: Flag[] = [];
  for (const [i, word] of words.slice(0, start).entries()) {
    const set = /^([A-Z_][A-Z0-9_]*)=(.*)$/s.exec(word);
    const isGiven = i === 0 || words.slice(0, i).every((w) => w === "env" || w === "export" || w.includes("="));
    if (set !== null && (isGiven || words[i - 1] === "-e" || words[i - 1] === "--env")) variables.set(set[1]!, set[2]!);
  }
  if (program.engine === "llama.cpp") {
    for (const [name, flag] of Object.entries(llamaVariables)) {
      const value = variables.get(name);
      if (value !== undefined) flags.push({ name: flag, written: name, value });
    }
  }
  let positional: string | null = null;
  for (let i = start; i < words.length; i++) {
    const word = words[i]!;
    // A command that follows another one is not ours.
    if (word === "&&" || word === "||" || word === "|" || word === ";" || word === "&") break;
    if (!/^--?[a-zA-Z]/.test(word)) {
      positional ??= word;
      continue;
    }
    const equals = word.startsWith("--") ? word.indexOf("=") : -1;
    const written = equals < 0 ? word : word.slice(0, equals);
    const next = words[i + 1];
    const hasNext = next !== undefined && !/^--?[a-zA-Z]/.test(next);
    const value = equals >= 0 ? word.slice(equals + 1) : hasNext ? next : null;
    if (equals < 0 && hasNext) i++;
    flags.push({ name: canonical(written, program.engine), written, value });
  }
  const named = program.model.map((name) => last(flags, name)).find((flag) => flag !== undefined);
  return {
    text,
    engine: program.engine,
    program: program.name,
    model: named?.value ?? (program.positional ? positional : null),
    flags,
    variables,
  };
}

function canonical(written: string, engine: DoctorEngine): string {
  // Python's servers take underscores for hyphens; keys behind a dot are the override's own.
  const [head = written, ...path] = written.split(".");
  const plain = engine === "vllm" || engine === "sglang" ? head.replaceAll("_", "-") : head;
  const name = spellings[engine]?.[plain] ?? plain;
  return [name, ...path].join(".");
}

function parseModelfile(text: string): ParsedCommand {
  const flags: Flag[] = [];
  let model: string | null = null;
  for (const line of text.split("\n")) {
    const [, instruction = "", rest = ""] = /^\s*([A-Za-z]+)\s+(.*?)\s*$/.exec(line) ?? [];
    if (/^from$/i.test(instruction)) model = rest;
    if (!/^parameter$/i.test(instruction)) continue;
    const [, name = "", value = ""] = /^(\S+)\s*(.*)$/.exec(rest) ?? [];
    flags.push({ name: `PARAMETER ${name.toLowerCase()}`, written: `PARAMETER ${name}`, value });
  }
  return { text, engine: "ollama", program: "Modelfile", model, flags, variables: new Map() };
}

function last(flags: readonly Flag[], name: string): Flag | undefined {
  return flags.findLast((flag) => flag.name === name);
}

/** The flag that counts, under its canonical name; undefined when it is not given. */
export function flagOf(command: ParsedCommand | null, name: string): Flag | undefined {
  return command === null ? undefined : last(command.flags, name);
}

/** The number that a flag holds; null when it is absent or no number. 32k is 32,768 to llama.cpp's users, 32,000 to vLLM. */
export function numberOf(command: ParsedCommand | null, name: string): number | null {
  const value = flagOf(command, name)?.value ?? null;
  if (value === null) return null;
  const match = /^([+-]?\d+(?:[\d_]*\d)?(?:\.\d+)?(?:e[+-]?\d+)?)([kKmM]?)$/i.exec(value);
  if (match === null) return null;
  const scale = { "": 1, k: 1000, K: 1024, m: 1e6, M: 1024 ** 2 }[match[2]!] ?? 1;
  const number = Number(match[1]!.replaceAll("_", "")) * scale;
  return Number.isFinite(number) ? number : null;
}
