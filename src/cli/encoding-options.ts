// The options by which score and generate change a model's positions.

import type { Command } from "commander";
import { Option } from "commander";
import type { EncodingOptions, LoadModelOptions, Precision, Reading } from "../engine/index.ts";
import { isJsonObject, type JsonValue, parseJson, withFile } from "../formats/bytes/index.ts";
import { openModel } from "../formats/open-model.ts";
import { parseStrategy, readTables } from "../models/index.ts";
import { numberAtLeast, tokenCount } from "./options.ts";

export interface EncodingFlags {
  readonly scaling?: string;
  readonly drop?: true | number;
  readonly table?: string;
  readonly length?: number;
  readonly reading?: Reading;
  readonly precision?: Precision | "auto";
  readonly threads?: number;
}

export const encodingHelp = `
--scaling takes a Hugging Face rope_parameters object, or one of
  none  drop  linear:F  ntk:F  ntk-by-parts:F  dynamic:F  yarn:F  llama3:F  gradient:F  dynamic-linear  dynamic-yarn
  self-extend:G[:W]   positions beyond W tokens in groups of G, at the trained frequencies (W: a quarter of that length)
and replaces the file's scaling, on the layers that its rope_parameters speaks of (by layer type, if nested so).
--table takes { "inverseFrequencies": [...], "attentionFactor": 1 }, or what longhand inspect --json printed, edited.`;

export function addEncodingOptions(command: Command): Command {
  return addMachineOptions(
    command
      .option("--scaling <form>", "a scaling in place of the file's: JSON or a short form (below)")
      .option(
        "--drop [coefficient]",
        "remove positions (cos 1, sin 0), with DroPE's temperature 1 + c·ln(length/trained); c is 0.103 when absent",
        (text: string) => numberAtLeast(0)(text),
      )
      .option("--table <file>", "rotary frequencies from a JSON file, in place of the model's")
      .addOption(
        new Option(
          "--reading <which>",
          "of dynamic and longrope: one table for the whole length, or that of each prefix",
        ).choices(["whole", "growing"]),
      ),
  );
}

/** How weights are used, and how many threads. */
export function addMachineOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--precision <which>", "float32 dequantises every weight; quantized keeps the file's blocks").choices([
        "auto",
        "float32",
        "quantized",
      ]),
    )
    .option("--threads <n>", "threads of a run", tokenCount);
}

/** Checks what needs no model: wrong words are an error before any file is read. */
export function checkEncodingFlags(flags: EncodingFlags): void {
  if (flags.scaling !== undefined) parseStrategy(flags.scaling);
  const given = (["scaling", "drop", "table"] as const).filter((name) => flags[name] !== undefined);
  if (given.length > 1) {
    throw new RangeError(
      `expected one of --scaling, --drop and --table, got ${given.map((g) => `--${g}`).join(" and ")}`,
    );
  }
}

export async function encodingOptions(path: string, flags: EncodingFlags): Promise<EncodingOptions> {
  const { scaling, drop, table, length, reading } = flags;
  return {
    ...(scaling === undefined ? {} : { scaling: parseStrategy(scaling) }),
    ...(drop === undefined ? {} : { drop: drop === true ? true : { coefficient: drop } }),
    ...(table === undefined ? {} : { encodings: readTables(await readJson(table), await openModel(path)) }),
    ...(length === undefined ? {} : { length }),
    ...(reading === undefined ? {} : { reading }),
  };
}

export function loadOptions({ precision, threads }: Pick<EncodingFlags, "precision" | "threads">): LoadModelOptions {
  return {
    ...(precision === undefined ? {} : { precision }),
    ...(threads === undefined ? {} : { threads }),
  };
}

/** Texts and token lists of books are a few megabytes. */
const maxFileBytes = 1024 * 2 ** 20;

export async function readJson(path: string): Promise<JsonValue> {
  return parseJson(await readText(path), path);
}

/** A text file; "-" is standard input. */
export async function readText(path: string): Promise<string> {
  if (path === "-") {
    const parts: Buffer[] = [];
    for await (const part of process.stdin) parts.push(part as Buffer);
    return new TextDecoder().decode(Buffer.concat(parts));
  }
  return withFile(path, async (source) => {
    if (source.size > maxFileBytes) {
      throw new RangeError(`${path}: expected a file of at most ${maxFileBytes} bytes, got ${source.size}`);
    }
    return new TextDecoder().decode(await source.read(0, source.size));
  });
}

/** Token ids from a JSON file: a list, or an object with a list `tokens`. */
export async function readTokens(path: string): Promise<number[]> {
  const value = await readJson(path);
  const list = isJsonObject(value) ? value.tokens : value;
  if (!Array.isArray(list) || !list.every((id) => Number.isInteger(id) && (id as number) >= 0)) {
    throw new RangeError(
      `${path}: expected a list of token ids, integers of at least 0, or an object with a list "tokens"`,
    );
  }
  return list as number[];
}
