// longhand doctor: mistakes in a long-context configuration, and their repair.

import { type Command, Option } from "commander";
import { repair } from "../advice/doctor/apply-fixes.ts";
import { parseCommand } from "../advice/doctor/command.ts";
import { diagnose } from "../advice/doctor/diagnose.ts";
import { doctorText } from "../advice/doctor/text.ts";
import { type DiagnoseInput, type DoctorEngine, doctorEngines, type Language } from "../advice/doctor/types.ts";
import { extensionOf, modelFilesOf, opened } from "../formats/model-files.ts";
import { openModel } from "../formats/open-model.ts";
import { readSafetensorsAmong } from "../formats/safetensors/index.ts";
import { exitCodes } from "./failure.ts";
import { languageOption, tokenCountOrMultiple } from "./options.ts";
import { palette, terminalWidth } from "./terminal.ts";

interface Options {
  readonly engine?: DoctorEngine;
  readonly engineVersion?: string;
  readonly command?: string;
  readonly target?: { multiple: number } | { tokens: number };
  readonly fix?: boolean;
  readonly json?: boolean;
  readonly lang: Language;
}

const help = `
A MODEL is a folder with config.json (the header of its safetensors is read too), a config.json, a .gguf, a Modelfile,
or a server's command line in quotes. Of a command line, the model that it names is read where it is a path.

Examples:
  longhand doctor ./Qwen3-8B --target 128k
  longhand doctor config.json --engine vllm --engine-version 0.11.0
  longhand doctor "vllm serve ./Qwen3-8B --rope-scaling '{...}' --max-model-len 131072"
  longhand doctor ./Qwen3-8B --command "llama-server -m x.gguf -c 131072"
  longhand doctor config.json --fix        # the old file stays beside it as config.json.bak

Exit code 1 when there is an error. Every finding is explained in docs/findings.`;

export function addDoctor(program: Command): void {
  program
    .command("doctor")
    .summary("find mistakes in a long-context configuration")
    .description("Find mistakes in a long-context configuration or a server's command line, and repair them.")
    .argument("<model>", "a folder, config.json, .gguf, Modelfile, or a command line in quotes")
    .addOption(new Option("--engine <name>", "whose reading counts beside transformers'").choices(doctorEngines))
    .option("--engine-version <version>", "its version, as 0.11.0; the newest that was read when absent")
    .option("--command <line>", "how the model is served, where the command names it by another path")
    .option(
      "--target <tokens>",
      "length that is to be read: 131072, 128k, or 4x the trained length",
      tokenCountOrMultiple,
    )
    .option("--fix", "repair what can be repaired; the old file is kept beside the new one")
    .option("--json", "print one JSON document")
    .addOption(languageOption("the findings"))
    .addHelpText("after", help)
    .action(async (model: string, options: Options) => {
      const read = await inputOf(model, options);
      let diagnosis = diagnose(read.input);
      const fixed = options.fix ? await repairFiles(read) : null;
      if (fixed !== null) diagnosis = fixed.after;
      if (options.json) {
        const { model: description, ...rest } = diagnosis;
        const document = {
          model: description === null ? null : { name: description.name, modelType: description.modelType },
          ...rest,
          ...(fixed === null
            ? {}
            : { fixed: { applied: fixed.applied, command: fixed.command, backup: fixed.backup } }),
        };
        process.stdout.write(`${JSON.stringify(document)}\n`);
      } else {
        if (fixed !== null) process.stdout.write(fixedText(fixed, options.lang));
        const name = read.name ?? diagnosis.model?.name ?? model;
        process.stdout.write(doctorText(diagnosis, { palette, width: terminalWidth(), language: options.lang, name }));
      }
      if (diagnosis.findings.some(({ severity }) => severity === "error")) process.exitCode = exitCodes.checkFailed;
    });
}

interface Read {
  readonly input: DiagnoseInput;
  readonly name: string | null;
  /** The configuration's file; null without one. */
  readonly configPath: string | null;
  /** The Modelfile's; null where the command was typed. */
  readonly commandPath: string | null;
}

/** A command line has more than one word and names a program; everything else is a path. */
async function inputOf(given: string, options: Options): Promise<Read> {
  const { existsSync, readFileSync, statSync } = await import("node:fs");
  const base = {
    ...(options.engine === undefined ? {} : { engine: options.engine }),
    ...(options.engineVersion === undefined ? {} : { engineVersion: options.engineVersion }),
  };
  const exists = existsSync(given);
  const isModelfile = exists && statSync(given).isFile() && /(^|[\\/])modelfile|\.modelfile$|\.(txt|sh)$/i.test(given);
  let command = options.command;
  let path: string | null = exists && !isModelfile ? given : null;
  if (isModelfile) command = readFileSync(given, "utf8");
  else if (!exists && /\s/.test(given)) command = given;
  else if (!exists) path = given;
  if (path === null && command !== undefined) {
    // The command's own model, where it is here.
    const named = parseCommand(command).model;
    if (named !== null && existsSync(named)) path = named;
  }
  const withCommand = { ...base, ...(command === undefined ? {} : { command }) };
  const commandPath = isModelfile ? given : null;
  if (path === null)
    return { input: withTarget(withCommand, options, null), name: null, configPath: null, commandPath };
  const files = await modelFilesOf(
    path,
    "a folder with config.json, a config.json, a .gguf, a Modelfile, or a command line in quotes",
  );
  const file = files.file ?? "config.json";
  if (extensionOf(file) === "json" || extensionOf(file) === "safetensors") {
    const config = extensionOf(file) === "json" ? file : "config.json";
    const names = await files.list();
    if (!names.includes(config)) return readModel(path, withCommand, options, commandPath);
    const bytes = await opened(files, config, (source) => source.read(0, source.size));
    const text = new TextDecoder().decode(bytes);
    // A lone configuration may lie among others' weights.
    const weights = files.file === null ? await readSafetensorsAmong(names, files.open) : null;
    const tensors =
      weights === null
        ? {}
        : {
            tensors: new Map(Array.from(weights.tensors, ([name, { shape }]) => [name, shape])),
            weightFindings: weights.findings,
          };
    const input = { ...withCommand, config: text, ...tensors };
    const name = config === "config.json" ? files.folder : config.replace(/\.json$/i, "");
    return {
      input: withTarget(input, options, trainedOf(input)),
      name,
      configPath: files.locate?.(config) ?? null,
      commandPath,
    };
  }
  return readModel(path, withCommand, options, commandPath);
}

async function readModel(
  path: string,
  base: DiagnoseInput,
  options: Options,
  commandPath: string | null,
): Promise<Read> {
  const model = await openModel(path);
  return {
    input: withTarget({ ...base, model }, options, model.trainedLength),
    name: model.name,
    configPath: null,
    commandPath,
  };
}

function trainedOf(input: DiagnoseInput): number | null {
  return diagnose(input).model?.trainedLength ?? null;
}

function withTarget(input: DiagnoseInput, { target }: Options, trained: number | null): DiagnoseInput {
  if (target === undefined) return input;
  if ("tokens" in target) return { ...input, target: target.tokens };
  if (trained === null) {
    throw new RangeError(
      `--target: expected a number of tokens for a model without a trained length, got ${target.multiple}x`,
    );
  }
  return { ...input, target: Math.round(target.multiple * trained) };
}

interface Written {
  readonly after: ReturnType<typeof diagnose>;
  readonly applied: readonly string[];
  readonly command: string | null;
  readonly backup: string | null;
  readonly path: string | null;
}

async function repairFiles({ input, configPath, commandPath }: Read): Promise<Written> {
  const { diagnosis, config, command, applied } = repair(input);
  const isConfigChanged = config !== null && config !== input.config;
  const isCommandChanged = command !== null && command !== input.command;
  const writes = [
    ...(isConfigChanged && configPath !== null ? [{ path: configPath, text: config }] : []),
    ...(isCommandChanged && commandPath !== null ? [{ path: commandPath, text: command }] : []),
  ];
  const backups: string[] = [];
  for (const { path, text } of writes) backups.push(await replaceFile(path, text));
  return {
    after: diagnosis,
    applied,
    command: isCommandChanged && commandPath === null ? command : null,
    backup: backups[0] ?? null,
    path: writes[0]?.path ?? null,
  };
}

/** The old file under a name that is free; the new one in its place. */
async function replaceFile(path: string, text: string): Promise<string> {
  const { constants } = await import("node:fs");
  const { copyFile, rename, writeFile } = await import("node:fs/promises");
  let backup = `${path}.bak`;
  for (let i = 1; ; i++) {
    try {
      await copyFile(path, backup, constants.COPYFILE_EXCL);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || i > 1000) throw error;
      backup = `${path}.bak${i}`;
    }
  }
  await writeFile(`${path}.tmp`, text);
  await rename(`${path}.tmp`, path);
  return backup;
}

function fixedText({ applied, command, backup, path }: Written, language: Language): string {
  const say = (en: string, chinese: string) => (language === "en" ? en : chinese);
  if (applied.length === 0) return `${say("Nothing that could be repaired.", "沒有可以自動修正的項目。")}\n\n`;
  const lines = [say(`Repaired: ${applied.join(", ")}.`, `已修正：${applied.join("、")}。`)];
  if (backup !== null)
    lines.push(say(`Wrote ${path}; the old file is ${backup}.`, `已寫入 ${path}；舊檔在 ${backup}。`));
  if (command !== null) lines.push(say("The command, repaired:", "修正後的命令："), `  ${command}`);
  return `${lines.join("\n")}\n\n`;
}
