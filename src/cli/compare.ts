// longhand compare: how far a model reads under each strategy, on one's own text. The main job.

import { availableParallelism } from "node:os";
import type { Command } from "commander";
import { shapeTitle } from "../advice/chart/scale.ts";
import { EndpointError, type EndpointsByStrategy } from "../endpoints/index.ts";
import { loadLanguageModel } from "../engine/index.ts";
import {
  type CompareIdentity,
  type CompareJob,
  type CompareSettings,
  type CompareStep,
  compareCost,
  compareIdentity,
  compareMemory,
  compareResult,
  compareSteps,
  compareVerdict,
  expectDecoder,
  factorList,
  type LeftOut,
  modelHashes,
  modelWeightBytes,
  parseShard,
  prepareCompare,
  type Run,
  runCompare,
  stepPasses,
  stepSeconds,
  trainedLengthOf,
} from "../evaluation/index.ts";
import { grouped } from "../evaluation/report/numbers.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import { resumeCommand } from "./command-line.ts";
import { compareTable, compareText } from "./compare-table.ts";
import { loadOptions } from "./encoding-options.ts";
import {
  addEndpointOptions,
  type EndpointFlags,
  endpointHelp,
  groupNames,
  openServers,
  type ServerGroup,
  servedStrategies,
  serverGroups,
  serversIdentity,
  serversText,
  unnamedStrategy,
} from "./endpoint-options.ts";
import {
  bytes,
  duration,
  openEvaluationRun,
  readTexts,
  readTokenFiles,
  runFolder,
  softwareIdentity,
} from "./evaluation-run.ts";
import { Interrupted, interruptible } from "./interrupt.ts";
import { LiveText, WorkLine } from "./live.ts";
import { seedNumber, type Target, targetTokens, tokenCount, tokenCountOrMultiple } from "./options.ts";
import { progressLine } from "./progress.ts";
import { addLastOptions, addShardOption, addStrategyOptions, type RunFlags } from "./run-options.ts";
import { palette } from "./terminal.ts";

interface Flags extends RunFlags, EndpointFlags {
  readonly text?: readonly string[];
  readonly tokens?: readonly string[];
  readonly target: Target;
  readonly windows: number;
  readonly needles: number;
  readonly trainedLength?: number;
  readonly seed: number;
  readonly shard?: string;
  readonly dryRun?: true;
}

const help = `
Windows of the target length are cut from the text, and every strategy reads the same ones. What is compared is the loss
of every position: within the trained length (the price of a strategy) and beyond it (what it buys), on the same tokens,
with 95 % intervals over the windows. One strategy, window, is simply forgetting: the unscaled model sees the last tokens
only. An extension that does not beat it buys nothing.

--strategies takes a list, or all. Without it, what makes sense for the model is run. In the list:
  none  as-is  linear:F  ntk:F  ntk-by-parts:F  dynamic:F  yarn:F  llama3:F  gradient:F  JSON (a rope_parameters object)
  yarn            without a factor: that of the target, or each of --factor
  yarn:2,4,8      several factors; yarn:2..8 doubles
  dynamic:F@growing   the table of each prefix, in blocks (as decoding without a cache sees it)
  drop  drop+temperature[:C]   no positions, with DroPE's factor on the queries
  self-extend[:G[:W]]   distances below W as they are, farther ones in groups of G tokens (Jin et al. 2024); W is a quarter
                  of the trained length and G what reaches the target when absent. Takes the weights a second time
  window[:W[:STRIDE]]   the last W tokens only, read in steps of STRIDE; always there

Results go into a run folder, a row at a time. The same command goes on where it stopped, also after a power cut, and
prints the result again when all is there. --shard 2/8 does the second of eight parts; longhand merge joins them.

Examples:
  longhand compare model.gguf --text book.txt --target 4x
  longhand compare ./SmolLM2-135M --text a.txt b.txt --target 12288 --windows 4
  longhand compare model.gguf --text book.txt --target 4x --strategies yarn,dynamic --factor 2,4,8 --json
  longhand compare model.gguf --text book.txt --target 4x --out runs/mine --shard 2/8
  longhand compare ./SmolLM2-135M --text book.txt --endpoint none=http://a:8000,yarn:4=http://b:8000
${endpointHelp}`;

export function addCompare(program: Command): void {
  const command = program
    .command("compare")
    .summary("how far a model reads under each strategy, on your text")
    .description(
      "Compare strategies: loss by position on one's own text, its price at short length, retrieval, a verdict.",
    )
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .option("--text <files...>", "texts to read; - is standard input")
    .option("--tokens <files...>", "token ids instead: JSON lists, or objects with a list tokens; BOS is not in them")
    .option("--target <length>", "tokens of a window, as 16384, 16k, or 4x the trained length", tokenCountOrMultiple, {
      multiple: 4,
    })
    .option("--windows <n>", "windows at most", tokenCount, 8)
    .option(
      "--needles <n>",
      "passkeys for each strategy, at the trained length and at the target; 0: none",
      seedNumber,
      4,
    )
    .option("--trained-length <n>", "the length of training, where the file is silent", tokenCount)
    .option("--seed <n>", "of the passkeys", seedNumber, 0)
    .option("--out <folder>", "the run folder")
    .option("--dry-run", "print the plan and stop");
  addStrategyOptions(command, "which ones (below); what makes sense for the model when absent; all", "windows");
  addLastOptions(addEndpointOptions(addShardOption(command)), "print one JSON document when done")
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => compare(path, flags, signal)));
}

async function compare(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const say = (text: string): void => {
    if (!flags.json) process.stdout.write(`${text}\n`);
  };
  if ((flags.text === undefined) === (flags.tokens === undefined)) {
    throw new RangeError(`expected one of --text and --tokens, got ${flags.text === undefined ? "neither" : "both"}`);
  }
  const factors = flags.factor === undefined ? undefined : factorList(flags.factor);
  const shard = flags.shard === undefined ? null : parseShard(flags.shard);
  const model = await openModel(path);
  expectDecoder(model);
  const trainedLength = trainedLengthOf(model, flags.trainedLength);
  const target = targetTokens(flags.target, trainedLength);
  const trained = trainedLength === null ? "trained length unknown" : `trained at ${grouped(trainedLength)} tokens`;
  say(`${palette.bold(model.name)}  ${shapeTitle(model)} · ${trained} · target ${grouped(target)}`);
  const tokenizer = await openTokenizer(flags.tokenizer ?? path);
  const lengths = { trainedLength, target };
  const groups = serverGroups(flags, lengths, unnamedStrategy(model, lengths));
  const texts = flags.text === undefined ? await readTokenFiles(flags.tokens!) : await readTexts(flags.text, tokenizer);
  const list = flags.strategies ?? (groups === null ? undefined : groupNames(groups));
  const prepared = prepareCompare(model, tokenizer, texts, { ...flags, strategies: list, target, factors });
  const leftOut = [...prepared.leftOut];
  let job = groups === null ? prepared.job : servedJob(prepared.job, groups, flags.strategies);
  const plan = await planOf(path, job, flags, leftOut);
  say(planText(plan, groups !== null));
  if (flags.dryRun) {
    if (flags.json) process.stdout.write(`${JSON.stringify({ model: model.name, plan })}\n`);
    return;
  }

  const { bos } = job.settings;
  const servers = groups === null ? null : await openServers(groups, flags, { tokenizer, bos, length: target, signal });
  if (servers !== null) say(palette.dim(serversText(groups!, servers)));
  if (servers?.models.some(({ facts }) => facts.prompts === "text")) {
    // What it would read begins in the middle of words, which no text does.
    const strategies = job.settings.strategies.filter(({ reading }) => reading.kind !== "windowed");
    job = { ...job, settings: { ...job.settings, strategies } };
    const why = "a server takes text alone, and the last tokens of a window are no text of their own";
    leftOut.push({ name: "window", why });
    say(palette.dim(`  without window: ${why}`));
  }
  const identity = compareIdentity(job, {
    ...softwareIdentity(),
    ...(servers === null
      ? { files: await modelHashes(path, signal), precision: flags.precision ?? "auto" }
      : { endpoints: serversIdentity(groups!, servers) }),
    // What a report says of the strategies that are not in the rows.
    leftOut: leftOut.map((one) => ({ ...one })),
  });
  const folder = runFolder("compare", model.name, identity, flags.out, shard);
  const run = await openEvaluationRun("compare", identity, folder, shard);
  const began = performance.now();
  try {
    await runSteps(path, servers, job, run, identity, flags, signal);
  } catch (error) {
    if (error instanceof Interrupted || error instanceof EndpointError) {
      const base = flags.out ?? (shard === null ? folder : folder.replace(/[\\/]shard-\d+-of-\d+$/, ""));
      process.stderr.write(
        `${run.rows.length} of ${plan.rows} rows are in ${folder}; to go on: ${resumeCommand(base)}\n`,
      );
    }
    throw error;
  } finally {
    await run.close();
  }
  const result = compareResult(identity, run.rows);
  const verdict = compareVerdict(result);
  if (flags.json) {
    const document = {
      run: folder,
      ...result,
      verdict,
      leftOut,
      plan,
      seconds: Math.round(performance.now() - began) / 1000,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
    };
    process.stdout.write(`${JSON.stringify(document)}\n`);
    return;
  }
  if (shard !== null) {
    say(`\nPart ${shard.index} of ${shard.count}: ${run.rows.length} rows in ${folder}.`);
    say(`When all parts are done: longhand merge ${folder.replace(/[\\/]shard-\d+-of-\d+$/, "")}`);
    return;
  }
  say(`\n${compareText(result, palette)}\n${palette.dim(`Run folder: ${folder}`)}`);
}

/** Of a job, what the servers run. */
function servedJob(job: CompareJob, groups: readonly ServerGroup[], asked: string | undefined): CompareJob {
  const strategies = servedStrategies(job.settings.strategies, groups, asked);
  return { ...job, settings: { ...job.settings, strategies } };
}

/** Whatever the run still wants, with a table that is drawn again after every window. */
async function runSteps(
  path: string,
  servers: EndpointsByStrategy | null,
  job: CompareJob,
  run: Run,
  identity: CompareIdentity,
  flags: Flags,
  signal: AbortSignal,
): Promise<void> {
  const steps = compareSteps(job.settings, job.model).filter(({ key }) => run.wants(key));
  if (steps.length === 0) return;
  const loading = progressLine();
  await using model =
    servers ??
    (await loadLanguageModel(path, {
      ...loadOptions(flags),
      signal,
      onProgress: ({ done, total }) => loading.show("reading weights", done, total),
    }));
  loading.end();
  const work = (step: CompareStep): number => stepSeconds(step, job, 1);
  const line = new WorkLine(steps.reduce((sum, step) => sum + work(step), 0));
  const table = new LiveText();
  let done = 0;
  try {
    await runCompare(model, job, run, {
      signal,
      concurrency: servers?.concurrency ?? 1,
      onProgress: (step, share) => line.show(done + share * work(step), describeStep(step, job.settings)),
      onRow: (step) => {
        done += work(step);
        const isLast = step.strategy === job.settings.strategies.at(-1);
        if (flags.json || !isLast) return;
        line.clear();
        table.draw(`\n${compareTable(compareResult(identity, run.rows), palette)}`);
      },
    });
  } finally {
    line.clear();
    table.clear();
  }
}

function describeStep(step: CompareStep, { places, needles }: CompareSettings): string {
  const { name } = step.strategy;
  if (step.kind === "passkey") return `${name}, passkey ${step.needle + 1} of ${needles} at ${grouped(step.length)}`;
  return `${name}, ${step.kind === "short" ? "short " : ""}window ${step.window + 1} of ${places.length}`;
}

interface Plan {
  readonly windows: number;
  readonly strategies: readonly { readonly name: string; readonly passes: number }[];
  readonly rows: number;
  /** Fed to the model. */
  readonly tokens: number;
  /** Before anything was measured: by operations, at 20 GFLOP/s a thread. */
  readonly seconds: number;
  readonly memoryBytes: number;
  readonly bos: boolean;
  readonly leftOut: readonly LeftOut[];
}

async function planOf(path: string, job: CompareJob, flags: Flags, leftOut: readonly LeftOut[]): Promise<Plan> {
  const { settings, model } = job;
  const { rows, tokens, seconds } = compareCost(job, flags.threads ?? availableParallelism());
  const stored = await modelWeightBytes(path);
  const inMemory = flags.precision === "float32" ? Math.max(stored, 4 * (model.numParameters ?? 0)) : stored;
  return {
    windows: settings.places.length,
    strategies: settings.strategies.map((strategy) => ({
      name: strategy.name,
      passes: stepPasses({ kind: "loss", key: "", strategy, window: 0 }, settings).length,
    })),
    rows,
    tokens,
    seconds,
    memoryBytes: compareMemory(model, inMemory, settings),
    bos: settings.bos !== null,
    leftOut,
  };
}

function planText(plan: Plan, isRemote: boolean): string {
  const names = plan.strategies.map(({ name }) => name).join(", ");
  const lines = [
    `${numbered(plan.strategies.length, "strategy", "strategies")} on ${numbered(plan.windows, "window", "windows")}: ${names}`,
    `${grouped(plan.tokens)} tokens to read in ${grouped(plan.rows)} rows · ` +
      (isRemote ? "on servers" : `about ${duration(plan.seconds)} · ${bytes(plan.memoryBytes)} of memory`),
    ...plan.leftOut.map(({ name, why }) => palette.dim(`  without ${name}: ${why}`)),
  ];
  return lines.join("\n");
}

function numbered(n: number, one: string, several: string): string {
  return `${n} ${n === 1 ? one : several}`;
}
