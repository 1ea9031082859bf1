// longhand needle: what a model finds in a long text, by length and depth, and how long a text it really uses.

import type { Command } from "commander";
import { loadLanguageModel } from "../engine/index.ts";
import {
  type CompareText,
  chosenStrategies,
  type EffectiveLength,
  type EvaluationStrategy,
  effectiveLengthByScore,
  expectDecoder,
  factorList,
  generatedHaystack,
  type Haystack,
  inOrder,
  type JsonRecord,
  modelHashes,
  type Proportion,
  parseShard,
  proportion,
  type RetrievalTask,
  type Run,
  type RunRow,
  retrievalTasks,
  rulerEffectiveLength,
  scoreRetrieval,
  textHaystack,
  windowBos,
} from "../evaluation/index.ts";
import { grouped } from "../evaluation/report/numbers.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
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
import { openEvaluationRun, readTexts, runFolder, softwareIdentity } from "./evaluation-run.ts";
import { Interrupted, interruptible } from "./interrupt.ts";
import { WorkLine } from "./live.ts";
import { lengthList, seedNumber, tokenCount } from "./options.ts";
import { addLastOptions, addShardOption, addStrategyOptions, asIs, type RunFlags } from "./run-options.ts";
import { palette } from "./terminal.ts";

interface Flags extends RunFlags, EndpointFlags {
  readonly text?: readonly string[];
  readonly lengths?: readonly number[];
  readonly depths: readonly number[];
  readonly tasks: readonly RetrievalTask[];
  readonly samples: number;
  readonly greedy?: true;
  readonly seed: number;
  readonly shard?: string;
}

const taskNames = Object.keys(retrievalTasks) as RetrievalTask[];

const help = `
Tasks: ${taskNames.join(", ")}; or all.
passkey is asked at every depth; the others, which are made in the manner of RULER, place their needles by seed;
associative-recall, for small models, is the text of longhand train --task recall. Prompts have the length that is asked
for, to the token (lists of words or pairs: as many as fit). Scored without generating: the share of the answers whose
every token is the likeliest when those before are given, and the rank of the right answer among wrong ones. --greedy
generates besides.
Effective lengths: the longest with at least 85 % of the shortest length's score, and RULER's (at least 85.6 %).

Examples:
  longhand needle model.gguf --lengths 512,1k,2k --strategies none,yarn:4
  longhand needle model.gguf --text book.txt --tasks all --samples 5 --out runs/needle
  longhand needle model.gguf --lengths 4k,8k --depths 0,0.25,0.5,0.75,1 --greedy --json
  longhand needle model.gguf --lengths 1k,4k --endpoint http://127.0.0.1:8080
${endpointHelp}`;

export function addNeedle(program: Command): void {
  const command = program
    .command("needle")
    .summary("what a model finds in a long text, by length and depth")
    .description("Ask a model for what is hidden in a long text: passkeys by depth, and tasks in the manner of RULER.")
    .argument("<model>", "a folder, .gguf or llama2.c .bin")
    .option("--text <files...>", "the haystack, the first text that is long enough; made-up sentences when absent")
    .option("--lengths <list>", "tokens of prompt and answer, as 2k,4k,8k; up to twice the trained length", lengthList)
    .option("--depths <list>", "of the passkey: 0 at the begin, 1 at the end", depthList, [0, 0.25, 0.5, 0.75, 1])
    .option("--tasks <list>", "which ones (below)", taskList, ["passkey"])
    .option("--samples <n>", "of each task, length and depth", tokenCount, 1)
    .option("--greedy", "also generate, and count the answers that the text contains")
    .option("--seed <n>", "of the needles", seedNumber, 0)
    .option("--out <folder>", "the run folder");
  addStrategyOptions(command, "as in longhand compare; as the file says when absent", "prompts");
  addLastOptions(addEndpointOptions(addShardOption(command)))
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => needle(path, flags, signal)));
}

function depthList(text: string): number[] {
  const depths = text.split(",").map(Number);
  if (depths.every((depth) => depth >= 0 && depth <= 1)) return depths;
  throw new RangeError(`--depths: expected numbers from 0 to 1, as 0,0.5,1, got ${JSON.stringify(text)}`);
}

function taskList(text: string): RetrievalTask[] {
  if (text.trim() === "all") return taskNames;
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !Object.hasOwn(retrievalTasks, name));
  if (unknown === undefined) return names as RetrievalTask[];
  throw new RangeError(`--tasks: expected ${taskNames.join(", ")} or all, got ${JSON.stringify(unknown)}`);
}

interface Question {
  readonly key: string;
  readonly strategy: EvaluationStrategy;
  readonly task: RetrievalTask;
  readonly length: number;
  /** Of passkey; null where the seed places the needles. */
  readonly depth: number | null;
  readonly sample: number;
}

async function needle(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  const model = await openModel(path);
  expectDecoder(model);
  const trained = model.trainedLength;
  const lengths = [...(flags.lengths ?? (trained === null ? [] : [trained / 2, trained, 2 * trained]))].sort(
    (a, b) => a - b,
  );
  if (lengths.length === 0) {
    throw new RangeError("--lengths: expected numbers of tokens for a model without a trained length, got none");
  }
  const target = lengths.at(-1)!;
  const factors = flags.factor === undefined ? undefined : factorList(flags.factor);
  const groups = serverGroups(flags, { trainedLength: trained, target }, asIs.name);
  const isNamed = groups?.some(({ strategy }) => strategy.name !== asIs.name);
  const list = flags.strategies ?? (isNamed ? groupNames(groups!) : undefined);
  const chosen =
    list === undefined ? [asIs] : chosenStrategies(model, { trainedLength: trained, target }, list, factors).strategies;
  const strategies = groups === null ? chosen : servedStrategies(chosen, groups, flags.strategies);
  const tokenizer = await openTokenizer(flags.tokenizer ?? path);
  const bos = windowBos(tokenizer, flags.bos);
  const texts = flags.text === undefined ? [] : await readTexts(flags.text, tokenizer);
  const { haystack, source } = hayOf(texts, target);
  const shard = flags.shard === undefined ? null : parseShard(flags.shard);
  const servers = groups === null ? null : await openServers(groups, flags, { tokenizer, bos, length: target, signal });
  const identity: JsonRecord = {
    ...softwareIdentity(),
    model: model.name,
    ...(servers === null
      ? { files: await modelHashes(path, signal), precision: flags.precision ?? "auto" }
      : { endpoints: serversIdentity(groups!, servers) }),
    bos,
    haystack: source,
    lengths,
    depths: [...flags.depths],
    tasks: [...flags.tasks],
    samples: flags.samples,
    strategies: strategies.map(({ name }) => name),
    greedy: flags.greedy === true,
    seed: flags.seed,
  };
  const questions = questionsOf(strategies, lengths, flags);
  const folder =
    flags.out === undefined && shard === null ? null : runFolder("needle", model.name, identity, flags.out, shard);
  const run = await openEvaluationRun("needle", identity, folder, shard);
  try {
    await ask(run);
  } catch (error) {
    if (error instanceof Interrupted && flags.out !== undefined) {
      const [done, all] = [run.rows.length, questions.length];
      process.stderr.write(`${done} of ${all} rows are in ${folder}; to go on: ${resumeCommand(flags.out)}\n`);
    }
    throw error;
  } finally {
    await run.close();
  }
  const results = resultsOf(run.rows, strategies, flags.tasks, lengths);
  if (flags.json) {
    const document = {
      model: model.name,
      trainedLength: trained,
      run: folder,
      haystack: source,
      results,
      rows: run.rows,
    };
    process.stdout.write(`${JSON.stringify(document)}\n`);
  } else {
    process.stdout.write(report(run.rows, results, lengths, flags));
  }

  function hayOf(list: readonly CompareText[], length: number): { haystack: Haystack; source: JsonRecord } {
    const text = list.find(({ tokens }) => tokens.length >= length) ?? list[0];
    if (text === undefined) return { haystack: generatedHaystack(tokenizer), source: { kind: "generated" } };
    return {
      haystack: textHaystack(tokenizer, text.tokens),
      source: { kind: "text", name: text.name, sha256: text.sha256 },
    };
  }

  async function ask(into: Run): Promise<void> {
    const wanted = questions.filter(({ key }) => into.wants(key));
    if (wanted.length === 0) return;
    await using loaded = servers ?? (await loadLanguageModel(path, { ...loadOptions(flags), signal }));
    const line = new WorkLine(wanted.reduce((sum, { length }) => sum + length, 0));
    let done = 0;
    try {
      const answer = async (
        { key, strategy, task, length, depth, sample }: Question,
        stopped: AbortSignal,
      ): Promise<RunRow> => {
        signal.throwIfAborted();
        line.show(done, `${strategy.name}, ${task} at ${grouped(length)}`);
        const began = performance.now();
        const question = retrievalTasks[task]({ tokenizer, bos }, haystack, {
          length,
          seed: flags.seed + sample,
          ...(depth === null ? {} : { depth }),
        });
        const decode = (tokens: readonly number[]): string => tokenizer.decode(tokens, { skipSpecial: true });
        const { greedy, ...score } = await scoreRetrieval(loaded, question, strategy, {
          bos,
          signal: AbortSignal.any([signal, stopped]),
          ...(flags.greedy ? { greedy: { decode, stop: tokenizer.endTokens } } : {}),
        });
        return {
          key,
          strategy: strategy.name,
          task,
          length,
          depth: depth ?? null,
          depths: [...question.depths],
          sample,
          fillRate: question.fillRate,
          ...score,
          ...(greedy === undefined ? {} : { contained: greedy.contained, text: greedy.text }),
          measured: { seconds: Math.round(performance.now() - began) / 1000 },
        };
      };
      await inOrder(wanted, servers?.concurrency ?? 1, answer, async ({ length }, row) => {
        await into.append(row);
        done += length;
      });
    } finally {
      line.clear();
    }
  }
}

function questionsOf(strategies: readonly EvaluationStrategy[], lengths: readonly number[], flags: Flags): Question[] {
  const out: Question[] = [];
  for (const length of lengths) {
    for (const task of flags.tasks) {
      for (const depth of task === "passkey" ? flags.depths : [null]) {
        for (let sample = 0; sample < flags.samples; sample++) {
          for (const strategy of strategies) {
            const key = `${task}/${strategy.name}/${length}/${depth ?? "by-seed"}/${sample}`;
            out.push({ key, strategy, task, length, depth, sample });
          }
        }
      }
    }
  }
  return out;
}

interface StrategyResult {
  readonly strategy: string;
  /** Mean over tasks, each task's questions weighing alike. */
  readonly scores: readonly { readonly length: number; readonly score: number }[];
  readonly tasks: readonly {
    readonly task: string;
    readonly length: number;
    readonly exact: Proportion;
    readonly meanRank: number;
    readonly candidates: number;
    readonly fillRate: number;
  }[];
  readonly effectiveLengths: readonly EffectiveLength[];
}

function resultsOf(
  rows: readonly RunRow[],
  strategies: readonly EvaluationStrategy[],
  tasks: readonly RetrievalTask[],
  lengths: readonly number[],
): StrategyResult[] {
  return strategies.flatMap(({ name }) => {
    const own = rows.filter(({ strategy }) => strategy === name);
    if (own.length === 0) return [];
    const cells = tasks.flatMap((task) =>
      lengths.flatMap((length) => {
        const asked = own.filter((row) => row.task === task && row.length === length);
        if (asked.length === 0) return [];
        const sum = (key: string): number => asked.reduce((total, row) => total + (row[key] as number), 0);
        return [
          {
            task,
            length,
            exact: proportion(sum("exact"), asked.length),
            meanRank: sum("rank") / asked.length,
            candidates: asked[0]!.candidates as number,
            fillRate: sum("fillRate") / asked.length,
          },
        ];
      }),
    );
    const scores = lengths.flatMap((length) => {
      const at = cells.filter((cell) => cell.length === length);
      return at.length === 0
        ? []
        : [{ length, score: at.reduce((s, { exact }) => s + exact.proportion, 0) / at.length }];
    });
    const effectiveLengths = [effectiveLengthByScore(scores, scores[0]!.score), rulerEffectiveLength(scores)];
    return [{ strategy: name, scores, tasks: cells, effectiveLengths }];
  });
}

function report(
  rows: readonly RunRow[],
  results: readonly StrategyResult[],
  lengths: readonly number[],
  flags: Flags,
): string {
  const { bold, dim } = palette;
  const out: string[] = [];
  const line = (name: string, cells: readonly string[]): string =>
    `  ${name.padEnd(18)}${cells.map((cell) => cell.padStart(9)).join("")}`;
  const percent = (share: number): string => `${Math.round(100 * share)} %`;
  for (const { strategy, tasks, effectiveLengths } of results) {
    out.push(bold(strategy), dim(line("exact, by length", lengths.map(grouped))));
    for (const task of flags.tasks) {
      const at = (length: number) => tasks.find((cell) => cell.task === task && cell.length === length);
      out.push(
        line(
          task,
          lengths.map((length) => (at(length) === undefined ? "" : percent(at(length)!.exact.proportion))),
        ),
      );
      out.push(
        dim(
          line(
            `  rank of ${at(lengths[0]!)?.candidates ?? ""}`,
            lengths.map((length) => at(length)?.meanRank.toFixed(1) ?? ""),
          ),
        ),
      );
      if (task !== "passkey" || flags.depths.length < 2) continue;
      for (const depth of flags.depths) {
        const cells = lengths.map((length) => {
          const asked = rows.filter(
            (row) => row.strategy === strategy && row.task === task && row.length === length && row.depth === depth,
          );
          const found = asked.reduce((sum, row) => sum + (row.exact as number), 0);
          return asked.length === 0 ? "" : percent(found / asked.length);
        });
        out.push(dim(line(`  depth ${depth}`, cells)));
      }
    }
    const [relative, ruler] = effectiveLengths.map(({ length, atLeast }) =>
      length === null ? "none" : `${atLeast ? "at least " : ""}${grouped(length)}`,
    );
    out.push(`  effective length: ${relative} (85 % of the shortest's score), ${ruler} (RULER's 85.6 %)`, "");
  }
  return out.join("\n");
}
