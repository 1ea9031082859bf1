// longhand export: a model's scaling in the words of an engine, and what that engine will compute from them.

import { Buffer } from "node:buffer";
import { access, mkdir, mkdtemp, open, realpath, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Command, Option } from "commander";
import type { Language } from "../advice/doctor/types.ts";
import { exportConfiguration } from "../advice/export/index.ts";
import { exportText, verificationText } from "../advice/export/text.ts";
import { type EngineExport, type ExportTarget, exportTargets } from "../advice/export/types.ts";
import { parseStrategy } from "../advice/strategy.ts";
import { parseJson } from "../formats/bytes/json.ts";
import { openFile } from "../formats/bytes/node-file.ts";
import { patchGguf } from "../formats/gguf/patch.ts";
import { modelFilesOf, opened } from "../formats/model-files.ts";
import { openModel } from "../formats/open-model.ts";
import { verifyExport } from "./export-verify.ts";
import { exitCodes } from "./failure.ts";
import { interruptible } from "./interrupt.ts";
import { languageOption, numberAtLeast, tokenCount } from "./options.ts";
import { type ProgressLine, progressLine } from "./progress.ts";
import { palette, terminalWidth } from "./terminal.ts";

interface Flags {
  readonly to: ExportTarget;
  readonly scaling?: string;
  readonly length?: number;
  readonly engineVersion?: string;
  readonly out?: string;
  readonly force?: true;
  readonly cacheBytes?: number;
  readonly verify?: true;
  readonly text?: string;
  readonly verifyTokens?: number;
  readonly threads?: number;
  readonly json?: true;
  readonly lang: Language;
}

const help = `
Nothing is written without --out. Where the engine has no words for a scaling, the nearest that it has is shown, with its
error in radians at the length; with --out it is written all the same.

--verify runs llama.cpp in this process on what was exported (gguf, llama.cpp, ollama) and compares its losses with ours,
at short positions and past the trained length. It takes the package node-llama-cpp (npm install node-llama-cpp; LLAMA_CPP
names another node_modules folder that has it). Where other programs run too, --threads 1 is faster: llama.cpp's threads wait
for each other by spinning.

Examples:
  longhand export model.gguf --scaling yarn:2 --to llama.cpp
  longhand export model.gguf --scaling yarn:2 --to gguf --out patched --verify --text book.txt
  longhand export ./Qwen2.5-7B --scaling yarn:4 --to vllm
  longhand export ./Qwen2.5-7B --scaling yarn:4 --to vllm --engine-version 0.10.2
  longhand export ./Llama-2-7b --scaling ntk:4 --length 16k --to transformers --out long --json

--scaling takes a Hugging Face rope_parameters object, or one of
  none  drop  linear:F  ntk:F  ntk-by-parts:F  dynamic:F  yarn:F  llama3:F  gradient:F  dynamic-linear  dynamic-yarn
and the file's own settings are exported without it.`;

export function addExport(program: Command): void {
  program
    .command("export")
    .summary("a scaling as an engine wants it written")
    .description("Write a model's scaling for an engine, with the command line, and what the engine will compute.")
    .argument("<model>", "a folder, config.json, .gguf or a built-in model")
    .addOption(new Option("--to <engine>", "the engine").choices([...exportTargets]).makeOptionMandatory())
    .option("--scaling <form>", "what to compute: JSON or a short form (below)")
    .option("--length <tokens>", "tokens that the engine is to read; what the scaling reaches when absent", tokenCount)
    .option("--engine-version <version>", "for which version, as 4.57.6 or 0.10.2; the newest known when absent")
    .option("--out <folder>", "write the files there")
    .option("--force", "write over files that exist")
    .option(
      "--cache-bytes <n>",
      "bytes of a number in the key/value cache: 2, or 1 for 8-bit caches",
      numberAtLeast(0, { exclusive: true }),
    )
    .option("--verify", "run llama.cpp on it and compare losses")
    .option("--text <file>", "what --verify reads; repeated words when absent")
    .option(
      "--verify-tokens <n>",
      "tokens that --verify reads; a little past the trained length when absent",
      tokenCount,
    )
    .option("--threads <n>", "threads of --verify", tokenCount)
    .option("--json", "print one JSON document")
    .addOption(languageOption("what is printed"))
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => run(path, flags, signal)));
}

async function run(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const strategy = flags.scaling === undefined ? ({ kind: "as-is" } as const) : parseStrategy(flags.scaling);
  for (const key of ["text", "verifyTokens"] as const) {
    if (flags[key] !== undefined && !flags.verify) {
      throw new RangeError(
        `--${key === "text" ? "text" : "verify-tokens"}: expected --verify, which reads it, got none`,
      );
    }
  }
  const model = await openModel(path);
  const config = await configOf(path);
  const called = calledAs(config?.path ?? path);
  const made = exportConfiguration(model, {
    to: flags.to,
    scaling: strategy,
    ...(flags.length === undefined ? {} : { length: flags.length }),
    ...(flags.engineVersion === undefined ? {} : { engineVersion: flags.engineVersion }),
    ...(config === null ? {} : { config: config.value, configText: config.text }),
    ...(flags.cacheBytes === undefined ? {} : { cacheBytes: flags.cacheBytes }),
    model: called,
    folder: flags.out ?? ".",
  });
  const line = progressLine();
  try {
    const patches = made.patch !== null && made.files.some(({ content }) => content === null);
    if (flags.verify) checkVerifiable(made, model.format);
    if (flags.out !== undefined) await writeFiles(path, model.format, made, flags, line, signal);
    let verified: EngineExport["verified"] = null;
    if (flags.verify) {
      // What flags amount to is written into a copy too: llama.cpp takes them from nowhere else in this process.
      const temporary = patches && flags.out !== undefined ? null : await mkdtemp(join(tmpdir(), "longhand-"));
      try {
        const file = join(temporary ?? flags.out!, patches ? patchedName(made) : "flags.gguf");
        if (temporary !== null) await writePatched(path, file, made, line, signal);
        verified = await verifyExport(
          {
            path,
            file,
            strategy,
            length: made.length,
            trainedLength: model.trainedLength,
            ...(flags.text === undefined ? {} : { text: flags.text }),
            ...(flags.verifyTokens === undefined ? {} : { tokens: flags.verifyTokens }),
            ...(flags.threads === undefined ? {} : { threads: flags.threads }),
          },
          line,
          signal,
        );
      } finally {
        if (temporary !== null) await rm(temporary, { recursive: true, force: true });
      }
    }
    line.end();
    if (verified !== null && !verified.passed) process.exitCode = exitCodes.checkFailed;
    if (flags.json) {
      const files = made.files.map((file) =>
        flags.out === undefined ? file : { ...file, path: join(flags.out, file.path) },
      );
      process.stdout.write(`${JSON.stringify({ ...made, files, written: flags.out !== undefined, verified })}\n`);
      return;
    }
    print(made, called, flags, verified);
  } finally {
    line.end();
  }
}

/** A configuration's folder; of one that lies alone under another name, no folder is known. */
function calledAs(path: string): string {
  if (!/\.json$/i.test(path)) return path;
  return basename(path) === "config.json" ? dirname(path) : "MODEL";
}

function print(made: EngineExport, called: string, flags: Flags, verified: EngineExport["verified"]): void {
  const { lang } = flags;
  const say = (en: string, chinese: string) => (lang === "en" ? en : chinese);
  process.stdout.write(exportText(made, palette, terminalWidth(), lang));
  if (called === "MODEL" && made.command.includes("MODEL") && !made.command.includes("MODEL.gguf")) {
    const model = say(
      "MODEL stands for the folder that the configuration belongs to.",
      "MODEL 代表這份設定所屬的資料夾。",
    );
    process.stdout.write(`\n${model}\n`);
  }
  if (made.files.length > 0) {
    const names = made.files
      .map(({ path }) => (flags.out === undefined ? path : join(flags.out, path)))
      .join(say(", ", "、"));
    const commands = made.commands.length === 1 ? "command" : "commands";
    const written =
      flags.out === undefined
        ? say(
            `Not written yet, and needed by the ${commands}: ${names}. Add --out FOLDER.`,
            `還沒有寫出來，而指令需要：${names}。請加上 --out 資料夾。`,
          )
        : say(`Written: ${names}`, `已寫出：${names}`);
    process.stdout.write(`\n${written}\n`);
  }
  if (verified !== null) process.stdout.write(`\n${verificationText(verified, palette, terminalWidth(), lang)}`);
}

function patchedName(made: EngineExport): string {
  return made.files.find(({ content }) => content === null)!.path;
}

function checkVerifiable(made: EngineExport, format: string): void {
  if (!["gguf", "llama.cpp", "ollama"].includes(made.to)) {
    throw new RangeError(
      `--verify: expected gguf, llama.cpp or ollama, which llama.cpp runs in this process, got ${made.to}; ` +
        "longhand verify --endpoint asks a running server",
    );
  }
  if (format !== "gguf") {
    throw new RangeError("--verify: expected a .gguf, which llama.cpp loads, got another format; convert it first");
  }
  if (made.patch === null) throw new RangeError(`--verify: expected an export that ${made.to} computes, got none`);
  if (made.command.includes("--yarn-beta")) {
    throw new RangeError(
      "--verify: expected settings that a GGUF can say, got --yarn-beta flags, which cannot be given here",
    );
  }
}

/** A model's own config.json, with its text; null for other formats. */
async function configOf(
  path: string,
): Promise<{ text: string; value: Record<string, unknown>; path: string | null } | null> {
  const files = await modelFilesOf(path, "a model");
  const name = files.file === null || /\.safetensors$/i.test(files.file) ? "config.json" : files.file;
  if (!/\.json$/i.test(name)) return null;
  const text = await opened(files, name, async (source) => new TextDecoder().decode(await source.read(0, source.size)));
  return { text, value: parseJson(text, name) as Record<string, unknown>, path: files.locate?.(name) ?? null };
}

async function writeFiles(
  path: string,
  format: string,
  made: EngineExport,
  flags: Flags,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  const folder = flags.out!;
  if (made.files.some(({ content }) => content === null) && format !== "gguf") {
    throw new RangeError(
      `--to ${made.to}: expected a .gguf to patch, got another format; convert it (llama.cpp's convert_hf_to_gguf.py), or leave --out out`,
    );
  }
  await mkdir(folder, { recursive: true });
  const own = await Promise.all([
    realpath(path).catch(() => null),
    realpath(join(path, "config.json")).catch(() => null),
  ]);
  for (const { path: name } of made.files) {
    const place = await realpath(join(folder, name)).catch(() => null);
    if (place !== null && own.includes(place)) {
      throw new RangeError(
        `--out: expected a place beside the model's own files, got ${place}, which was read; name another folder`,
      );
    }
    const taken = await access(join(folder, name)).then(
      () => true,
      () => false,
    );
    if (taken && !flags.force) {
      throw new RangeError(`--out: expected no file at ${join(folder, name)}, got one; --force writes over it`);
    }
  }
  for (const { path: name, content } of made.files) {
    if (content === null) await writePatched(path, join(folder, name), made, line, signal);
    else await writeFile(join(folder, name), content);
  }
}

/** Streams the patched copy beside its place first, so that no half of one is left there. */
async function writePatched(
  path: string,
  target: string,
  made: EngineExport,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  const source = await openFile(path);
  const part = `${target}.part`;
  try {
    const patched = await patchGguf(source, made.patch!);
    const file = await open(part, "w");
    try {
      let done = 0;
      for await (const chunk of patched.chunks()) {
        signal.throwIfAborted();
        await file.writeFile(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        done += chunk.byteLength;
        line.show("writing bytes", done, patched.size);
      }
    } finally {
      await file.close();
    }
    await rename(part, target);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  } finally {
    await source.close();
  }
}
