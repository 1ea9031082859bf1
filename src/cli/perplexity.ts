// longhand perplexity: perplexity and bits per byte of texts, by non-overlapping or sliding windows, always named.

import type { Command } from "commander";
import type { EndpointsByStrategy } from "../endpoints/index.ts";
import { loadLanguageModel } from "../engine/index.ts";
import {
  byteCounts,
  type CompareText,
  chosenStrategies,
  type EvaluationStrategy,
  expectDecoder,
  factorList,
  inOrder,
  modelHashes,
  type PerplexityResult,
  type PerplexityWindow,
  perplexityResults,
  perplexityWindows,
  type Run,
  scorePerplexityWindow,
  splitStrategies,
  type WindowLoss,
  windowBos,
} from "../evaluation/index.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer, type Tokenizer } from "../formats/tokenizers/index.ts";
import { resumeCommand } from "./command-line.ts";
import { loadOptions } from "./encoding-options.ts";
import {
  addEndpointOptions,
  type EndpointFlags,
  endpointHelp,
  groupNames,
  openServers,
  servedStrategies,
  serverGroups,
  serversIdentity,
} from "./endpoint-options.ts";
import { openEvaluationRun, readTexts, softwareIdentity } from "./evaluation-run.ts";
import { Interrupted, interruptible } from "./interrupt.ts";
import { WorkLine } from "./live.ts";
import { lengthList, tokenCount } from "./options.ts";
import { addLastOptions, addStrategyOptions, asIs, type RunFlags } from "./run-options.ts";
import { palette } from "./terminal.ts";

interface Flags extends RunFlags, EndpointFlags {
  readonly text: readonly string[];
  readonly length?: readonly number[];
  readonly stride?: number;
  readonly maxTokens?: number;
}

const help = `
Two protocols, which rank encodings differently:
  non-overlapping   windows side by side; the first tokens of each see little
  sliding-window    --stride S: windows every S tokens, of each only what is new; every token sees at least
                    length − S tokens, at length / S times the cost
The loss of a token counts once. Bits per byte do not depend on the tokenizer. The number that Hugging Face's guide
computes is printed too where it differs: it weighs a window by its new tokens less one.

Examples:
  longhand perplexity model.gguf --text book.txt
  longhand perplexity model.gguf --text book.txt --length 2048 --stride 512
  longhand perplexity model.gguf --text book.txt --length 4096,8192,16384 --strategies none,yarn:2 --max-tokens 100k --json
  longhand perplexity ./SmolLM2-135M --text book.txt --endpoint http://127.0.0.1:8000
${endpointHelp}`;

export function addPerplexity(program: Command): void {
  const command = program
    .command("perplexity")
    .summary("perplexity and bits per byte of texts")
    .description("Measure perplexity by non-overlapping or sliding windows, under one strategy or several.")
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .requiredOption("--text <files...>", "texts to read; - is standard input")
    .option("--length <list>", "tokens of a window, or several as 2048,8k; the trained length when absent", lengthList)
    .option("--stride <tokens>", "slide the window by so many; side by side when absent", tokenCount)
    .option("--max-tokens <n>", "of each text only the first so many", tokenCount)
    .option("--out <folder>", "keep the windows in a run folder, and go on with one that stopped");
  addStrategyOptions(command, "as in longhand compare; as the file says when absent", "windows");
  addLastOptions(addEndpointOptions(command))
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => perplexity(path, flags, signal)));
}

interface Measurement {
  readonly strategy: EvaluationStrategy;
  readonly length: number;
  readonly windows: readonly { readonly key: string; readonly text: number; readonly window: PerplexityWindow }[];
}

async function perplexity(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const model = await openModel(path);
  expectDecoder(model);
  const { trainedLength } = model;
  const lengths = flags.length ?? (trainedLength === null ? [] : [trainedLength]);
  if (lengths.length === 0) {
    throw new RangeError("--length: expected a number of tokens for a model without a trained length, got none");
  }
  const tokenizer = await openTokenizer(flags.tokenizer ?? path);
  const bos = windowBos(tokenizer, flags.bos);
  const texts = (await readTexts(flags.text, tokenizer)).map((text) => ({
    ...text,
    tokens: Int32Array.from(text.tokens).subarray(0, flags.maxTokens),
  }));
  const factors = flags.factor === undefined ? undefined : factorList(flags.factor);
  const stride = flags.stride === undefined ? {} : { stride: flags.stride };
  const target = Math.max(...lengths);
  const groups = serverGroups(flags, { trainedLength, target }, asIs.name);
  const isNamed = groups?.some(({ strategy }) => strategy.name !== asIs.name);
  const list = flags.strategies ?? (isNamed ? groupNames(groups!) : undefined);
  const served = (all: EvaluationStrategy[]): EvaluationStrategy[] =>
    groups === null ? all : servedStrategies(all, groups, flags.strategies);
  const measurements: Measurement[] = lengths.flatMap((length) =>
    served(strategiesOf(model, length, list, factors)).map((strategy) => ({
      strategy,
      length,
      windows: texts.flatMap(({ tokens }, text) =>
        perplexityWindows(tokens.length, { length, bos, ...stride }).map((window) => ({
          key: `${strategy.name}/${length}/${flags.stride ?? "side-by-side"}/${text}/${window.index}`,
          text,
          window,
        })),
      ),
    })),
  );
  const servers = groups === null ? null : await openServers(groups, flags, { tokenizer, bos, length: target, signal });
  const identity = {
    ...softwareIdentity(),
    model: model.name,
    ...(servers === null
      ? { files: await modelHashes(path, signal), precision: flags.precision ?? "auto" }
      : { endpoints: serversIdentity(groups!, servers) }),
    bos,
    lengths: [...lengths],
    stride: flags.stride ?? null,
    texts: texts.map(({ name, sha256, tokens }) => ({ name, sha256, tokens: tokens.length })),
    strategies: [...new Set(measurements.map(({ strategy }) => strategy.name))],
    trainedLength,
    numWindows: measurements.reduce((sum, { windows }) => sum + windows.length, 0),
  };
  const run = await openEvaluationRun("perplexity", identity, flags.out ?? null);
  try {
    await measure(path, servers, measurements, texts, tokenizer, bos, run, flags, signal);
  } catch (error) {
    if (error instanceof Interrupted && flags.out !== undefined) {
      process.stderr.write(`${run.rows.length} windows are in ${flags.out}; to go on: ${resumeCommand(flags.out)}\n`);
    }
    throw error;
  } finally {
    await run.close();
  }
  const results = perplexityResults(run.rows, { stride: flags.stride ?? null, bos });
  if (flags.json) {
    const document = { model: model.name, trainedLength, run: flags.out ?? null, texts: identity.texts, results };
    process.stdout.write(`${JSON.stringify(document)}\n`);
    return;
  }
  process.stdout.write(`${table(results, bos !== null)}\n`);
}

function strategiesOf(
  model: Awaited<ReturnType<typeof openModel>>,
  length: number,
  list: string | undefined,
  factors: readonly number[] | undefined,
): EvaluationStrategy[] {
  if (list === undefined) return [asIs];
  const asked = list.trim() === "all" ? null : new Set(splitStrategies(list));
  const { strategies } = chosenStrategies(model, { trainedLength: model.trainedLength, target: length }, list, factors);
  return strategies.filter(({ name, reading }) => {
    if (reading.kind === "whole") return asked === null || name !== "none" || asked.has("none");
    // Only none and window are there unasked.
    if (asked !== null && (reading.kind === "growing" || asked.has(name))) {
      throw new RangeError(
        `--strategies: expected ones that read a window in one pass, got ${name}; longhand compare runs it`,
      );
    }
    return false;
  });
}

async function measure(
  path: string,
  servers: EndpointsByStrategy | null,
  measurements: readonly Measurement[],
  texts: readonly CompareText[],
  tokenizer: Tokenizer,
  bos: number | null,
  run: Run,
  flags: Flags,
  signal: AbortSignal,
): Promise<void> {
  const wanted = measurements.flatMap(({ strategy, length, windows }) =>
    windows.filter(({ key }) => run.wants(key)).map((one) => ({ strategy, length, ...one })),
  );
  if (wanted.length === 0) return;
  const sizes = texts.map(({ tokens }) => byteCounts(tokenizer, tokens));
  await using model = servers ?? (await loadLanguageModel(path, { ...loadOptions(flags), signal }));
  const line = new WorkLine(wanted.reduce((sum, { window }) => sum + window.end - window.begin, 0));
  let done = 0;
  try {
    const score = ({ strategy, text, window }: (typeof wanted)[number], stopped: AbortSignal): Promise<WindowLoss> => {
      signal.throwIfAborted();
      line.show(done, `${strategy.name}, window ${window.index + 1}`);
      const either = AbortSignal.any([signal, stopped]);
      return scorePerplexityWindow(model, texts[text]!.tokens, window, strategy, { bos }, { signal: either });
    };
    await inOrder(wanted, servers?.concurrency ?? 1, score, async ({ strategy, length, key, text, window }, loss) => {
      const { sum, count } = loss;
      let bytes = 0;
      for (let i = window.scored; i < window.end; i++) bytes += sizes[text]![i]!;
      await run.append({
        key,
        strategy: strategy.name,
        length,
        text,
        begin: window.begin,
        end: window.end,
        sum,
        tokens: count,
        bytes,
      });
      done += window.end - window.begin;
    });
  } finally {
    line.clear();
  }
}

function table(results: readonly PerplexityResult[], hasBos: boolean): string {
  const { dim } = palette;
  const range = (low: number | null, high: number | null): string =>
    low === null || high === null ? "" : `${Math.exp(low).toFixed(3)} to ${Math.exp(high).toFixed(3)}`;
  const rows = results.map((one) => [
    one.strategy,
    one.length.toLocaleString("en"),
    one.protocol === "non-overlapping" ? one.protocol : `${one.protocol}, stride ${one.stride.toLocaleString("en")}`,
    one.perplexity.toFixed(4),
    range(one.low, one.high),
    one.bitsPerByte?.toFixed(4) ?? "",
    one.tokens.toLocaleString("en"),
    Math.abs(one.guidePerplexity / one.perplexity - 1) > 5e-5 ? one.guidePerplexity.toFixed(4) : "",
  ]);
  const head = ["strategy", "length", "protocol", "perplexity", "95 %", "bits/byte", "tokens", "guide's"];
  const used = head.map((_, i) => i < 7 || rows.some((row) => row[i] !== ""));
  const widths = head.map((text, i) => Math.max(text.length, ...rows.map((row) => row[i]!.length)));
  const left = [0, 2];
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (left.includes(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .filter((_, i) => used[i])
      .join("  ")
      .trimEnd();
  return [dim(line(head)), ...rows.map(line), dim(hasBos ? "BOS at the head of every window" : "no BOS")].join("\n");
}
