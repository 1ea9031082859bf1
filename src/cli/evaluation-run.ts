// What the commands that measure share: texts as tokens, hashes of a model's files, lists of strategies, a run folder.

import { cpus, totalmem } from "node:os";
import { basename, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import {
  type CompareText,
  defaultStrategies,
  type EvaluationStrategy,
  expectDecoder,
  factorFor,
  type JsonRecord,
  jsonHash,
  type LeftOut,
  memoryRunFiles,
  openRun,
  parseEvaluationStrategy,
  positionsEnd,
  type Run,
  type RunSession,
  Sha256,
  type Shard,
  type StrategyLengths,
  sha256,
  sha256File,
  splitStrategies,
  windowedName,
} from "../evaluation/index.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import { type ModelFiles, modelFilesOf, opened } from "../formats/model-files.ts";
import type { Tokenizer } from "../formats/tokenizers/index.ts";
import { readText, readTokens } from "./encoding-options.ts";

/** Where runs go when no --out says otherwise. */
export const runsFolder = "longhand-runs";

/** SHA-256 and size of every file that a model's results depend on. */
export interface ModelFingerprint {
  readonly hashes: Readonly<Record<string, string>>;
  readonly weightBytes: number;
}

/** Sizes alone: at once, also of weights of many gigabytes. */
export async function weightBytes(path: string): Promise<number> {
  const files = await modelFilesOf(path, expectedModel);
  let bytes = 0;
  for (const file of await filesThatCount(files)) {
    if (/\.(safetensors|gguf|bin)$/i.test(file)) bytes += await opened(files, file, async ({ size }) => size);
  }
  return bytes;
}

export async function modelHashes(path: string, signal: AbortSignal): Promise<Record<string, string>> {
  const files = await modelFilesOf(path, expectedModel);
  const out: Record<string, string> = {};
  for (const file of await filesThatCount(files)) {
    signal.throwIfAborted();
    out[file] =
      files.locate === undefined ? await hashOpened(files, file) : await sha256File(files.locate(file), signal);
  }
  return out;
}

const expectedModel = "a folder with config.json and safetensors, a .gguf, or a llama2.c .bin";

async function hashOpened(files: ModelFiles, file: string): Promise<string> {
  return opened(files, file, async (source) => {
    const hash = new Sha256();
    const piece = 2 ** 22;
    for (let at = 0; at < source.size; at += piece) {
      hash.update(await source.read(at, Math.min(piece, source.size - at)));
    }
    return hash.hex();
  });
}

/** Configuration, weights, tokenizer. */
async function filesThatCount({ list, file }: ModelFiles): Promise<string[]> {
  const names = [...(await list())].sort();
  if (file === null) return names.filter((name) => /\.(json|safetensors|model)$|^merges\.txt$/.test(name));
  const stem = file.replace(/-\d{5}-of-\d{5}\.gguf$/i, "");
  const isPart = (name: string): boolean => name === file || (stem !== file && name.startsWith(`${stem}-`));
  return names.filter((name) => isPart(name) || (/\.bin$/i.test(file) && /^tok.*\.(bin|model|json)$/.test(name)));
}

/** Texts as tokens, with their hashes. */
export async function readTexts(paths: readonly string[], tokenizer: Tokenizer): Promise<CompareText[]> {
  const out: CompareText[] = [];
  for (const path of paths) {
    const text = await readText(path);
    // A stranger's text holds no special tokens.
    const tokens = Int32Array.from(tokenizer.encode(text, { addSpecial: false, parseSpecial: false }));
    out.push({ name: path === "-" ? "standard input" : basename(path), sha256: sha256(text), tokens });
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

/** The BOS for the head of every window, where the model was trained with one; null: none. */
export function bosOf(tokenizer: Tokenizer, wanted: boolean): number | null {
  return wanted && tokenizer.addsBos ? tokenizer.bosToken : null;
}

/** Names that stand for themselves times a factor: "yarn" is yarn at every factor that is asked for. */
const withFactor = ["linear", "ntk", "ntk-by-parts", "dynamic", "yarn", "llama3", "gradient"];

/**
 * The strategies that were asked for, the baselines among them.
 *
 * @param list as typed; absent: what makes sense for the model; "all": everything that applies to it
 */
export function chosenStrategies(
  model: ModelDescription,
  lengths: StrategyLengths,
  list: string | undefined,
  factors: readonly number[] | undefined,
): { strategies: EvaluationStrategy[]; leftOut: readonly LeftOut[] } {
  expectDecoder(model);
  if (list === undefined || list.trim() === "all") {
    const options = { all: list !== undefined, ...(factors === undefined ? {} : { factors }) };
    const { strategies, leftOut } = defaultStrategies(model, lengths, options);
    return { strategies: [...strategies], leftOut };
  }
  const { trainedLength, target } = lengths;
  const names = splitStrategies(list).flatMap((name) => {
    const [bare, at] = name.split(/(?=@)/);
    if (!withFactor.includes(bare!)) return [name];
    if (factors === undefined && trainedLength === null) {
      throw new RangeError(`--strategies: expected ${bare}:FACTOR for a model without a trained length, got ${name}`);
    }
    return (factors ?? [factorFor(trainedLength!, target)]).map((factor) => `${bare}:${factor}${at ?? ""}`);
  });
  if (target <= positionsEnd(model) && !names.includes("none")) names.unshift("none");
  const beyond = trainedLength !== null && target > trainedLength;
  if (beyond && !names.some((name) => /^window(:|$)/.test(name))) names.push(windowedName);
  const strategies = [...new Set(names)].map((name) => parseEvaluationStrategy(name, lengths));
  return { strategies, leftOut: [] };
}

/** 2,4,8 or 2..16 (doubling). */
export function factorList(text: string): number[] {
  const range = /^([\d.]+)\.\.([\d.]+)$/.exec(text.trim());
  const parts = range === null ? text.split(",").map(Number) : [];
  if (range !== null) for (let f = Number(range[1]); f <= Number(range[2]); f *= 2) parts.push(f);
  if (parts.length === 0 || !parts.every((factor) => factor > 0 && Number.isFinite(factor))) {
    throw new RangeError(`--factor: expected factors above 0, as 2,4,8 or 2..16, got ${JSON.stringify(text)}`);
  }
  return parts;
}

export interface OpenedRun {
  readonly run: Run;
  /** null: in memory. */
  readonly folder: string | null;
}

/** The run's folder: --out, or one that its name and identity give, so that the same command finds it again. */
export function runFolder(
  kind: string,
  model: string,
  identity: JsonRecord,
  out: string | undefined,
  shard: Shard | null,
): string {
  const name = model.replace(/\.[a-z]+$/i, "").replace(/[^\w.-]+/g, "-");
  const base = out ?? join(runsFolder, `${kind}-${name}-${jsonHash(identity).slice(0, 8)}`);
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
