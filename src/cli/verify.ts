// longhand verify: is the scaling that a server was started with really in force? Its losses at long positions, against
// those of the same weights under each strategy that may be meant; or, without weights, one server against another.

import type { Command } from "commander";
import { type InForce, type InForceVerdict, inForce } from "../endpoints/index.ts";
import { loadLanguageModel, type Precision } from "../engine/index.ts";
import { type EvaluationStrategy, parseEvaluationStrategy, splitStrategies, windowBos } from "../evaluation/index.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import { openModel } from "../formats/open-model.ts";
import { openTokenizer } from "../formats/tokenizers/index.ts";
import { addMachineOptions, loadOptions, readText, readTokens } from "./encoding-options.ts";
import {
  addEndpointOptions,
  type EndpointFlags,
  openServers,
  serverGroups,
  serversText,
  unnamedStrategy,
} from "./endpoint-options.ts";
import { exitCodes } from "./failure.ts";
import { interruptible } from "./interrupt.ts";
import { tokenCount } from "./options.ts";
import { progressLine } from "./progress.ts";
import { palette } from "./terminal.ts";

interface Flags extends EndpointFlags {
  readonly text?: string;
  readonly tokens?: string;
  readonly scaling?: string;
  readonly against?: string;
  readonly length?: number;
  readonly bos: boolean;
  readonly precision?: Precision | "auto";
  readonly threads?: number;
  readonly json?: true;
}

const help = `
The same tokens go to the server and through MODEL's own weights, under the strategy that the server should run, without
any, and under those of --against. Whose losses the server's are, token by token, it runs. The text should be longer than
the trained length: many scalings show nowhere else. Exit 1: what was asked for is not what the server runs.

Give two servers and no --scaling, none=http://a:8000,yarn:4=http://b:8000, to hold them against each other; MODEL's weights
are not needed then. Equal losses mean that the scaling of one is not in force.

Examples:
  longhand verify ./SmolLM2-135M --endpoint http://127.0.0.1:8000 --scaling yarn:2 --text book.txt
  longhand verify model.gguf --endpoint http://127.0.0.1:8080 --token-by-token --text book.txt --length 1k
  longhand verify ./config-and-tokenizer --endpoint none=http://a:8000,yarn:4=http://b:8000 --text book.txt --length 40k`;

export function addVerify(program: Command): void {
  const command = program
    .command("verify")
    .summary("is a server's scaling really in force?")
    .description("Hold a running server's losses against those of the same weights: is its scaling really in force?")
    .argument("<model>", "a folder, .gguf or llama2.c .bin: the weights that the server serves")
    .option("--text <file>", "a text; - reads standard input")
    .option("--tokens <file>", "token ids instead: a JSON list, or an object with a list tokens")
    .option("--scaling <strategy>", "what the server was started with, as yarn:4; what MODEL's file says when absent")
    .option("--against <list>", "other strategies that it may run instead, as linear:4,ntk:4")
    .option("--length <tokens>", "tokens to hold against each other; twice the trained length when absent", tokenCount)
    .option("--no-bos", "no BOS at the head");
  addMachineOptions(addEndpointOptions(command))
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action((path: string, flags: Flags) => interruptible((signal) => verify(path, flags, signal)));
}

async function verify(path: string, flags: Flags, signal: AbortSignal): Promise<void> {
  if (flags.endpoint === undefined) throw new RangeError("--endpoint: expected the address of a server, got none");
  if ((flags.text === undefined) === (flags.tokens === undefined)) {
    throw new RangeError(`expected one of --text and --tokens, got ${flags.text === undefined ? "neither" : "both"}`);
  }
  const model = await openModel(path);
  const { trainedLength } = model;
  const wanted = flags.length ?? (trainedLength === null ? undefined : 2 * trainedLength);
  if (wanted === undefined) {
    throw new RangeError("--length: expected a number of tokens for a model without a trained length, got none");
  }
  const lengths = { trainedLength, target: wanted };
  const groups = serverGroups(flags, lengths, flags.scaling ?? unnamedStrategy(model, lengths))!;
  const tokens = await readWindow(path, flags, wanted);
  const tokenizer = await openTokenizer(flags.tokenizer ?? path);
  const bos = windowBos(tokenizer, flags.bos);
  const servers = await openServers(groups, flags, { tokenizer, bos, length: tokens.length, signal });
  if (!flags.json) process.stdout.write(`${serversText(groups, servers)}\n`);
  if (groups.length > 2)
    throw new RangeError(`--endpoint: expected servers of one or two strategies, got ${groups.length}`);
  const losses = await Promise.all(
    groups.map(({ strategy }) =>
      servers
        .score(tokens, { ...strategy.encoding, signal })
        .then(({ negativeLogLikelihood }) => negativeLogLikelihood),
    ),
  );
  const [first, second] = losses as [Float64Array, Float64Array | undefined];
  const asked = groups[0]!.strategy;
  const result =
    second === undefined
      ? await againstWeights(path, model, flags, asked, tokens, first, signal)
      : againstServer(groups[1]!.strategy, second, asked, first, trainedLength);
  if (flags.json) {
    const endpoints = servers.models.map(({ facts }) => facts);
    process.stdout.write(
      `${JSON.stringify({ model: model.name, trainedLength, tokens: tokens.length, endpoints, ...result })}\n`,
    );
  } else {
    process.stdout.write(`${report(result, tokens.length, trainedLength, second !== undefined)}\n`);
  }
  if (result.verdict !== "in-force") process.exitCode = exitCodes.checkFailed;
}

async function readWindow(path: string, flags: Flags, length: number): Promise<number[]> {
  if (flags.tokens !== undefined) return (await readTokens(flags.tokens)).slice(0, length);
  const tokenizer = await openTokenizer(flags.tokenizer ?? path);
  const bos = windowBos(tokenizer, flags.bos);
  const own = tokenizer.encode(await readText(flags.text!), { addSpecial: false, parseSpecial: false });
  const tokens = [...(bos === null ? [] : [bos]), ...own].slice(0, length);
  if (tokens.length < length && flags.length !== undefined) {
    throw new RangeError(`--text: expected at least ${length} tokens, got ${tokens.length}`);
  }
  if (tokens.length < 2) throw new RangeError(`--text: expected at least 2 tokens, got ${tokens.length}`);
  return tokens;
}

/** The server's losses among those of the weights at hand. */
async function againstWeights(
  path: string,
  model: ModelDescription,
  flags: Flags,
  asked: EvaluationStrategy,
  tokens: readonly number[],
  server: Float64Array,
  signal: AbortSignal,
): Promise<InForce> {
  const { trainedLength } = model;
  const lengths = { trainedLength, target: tokens.length };
  const factor = /^[\w-]+:([\d.]+)$/.exec(asked.name)?.[1];
  // What a setting is most often mistaken for: the same factor in another way.
  const usual =
    factor === undefined ? ["yarn:2", "linear:2"] : ["linear", "ntk", "yarn"].map((way) => `${way}:${factor}`);
  const others = flags.against === undefined ? usual : splitStrategies(flags.against);
  const names = [...new Set([asked.name, "none", ...others])];
  const line = progressLine();
  await using own = await loadLanguageModel(path, {
    ...loadOptions(flags),
    signal,
    onProgress: ({ done, total }) => line.show("reading weights", done, total),
  });
  const candidates = [];
  try {
    for (const name of names) {
      const { encoding } = parseEvaluationStrategy(name, lengths);
      const { negativeLogLikelihood } = await own.score(tokens, {
        ...encoding,
        signal,
        onProgress: ({ done, total }) => line.show(`scoring under ${name}`, done, total),
      });
      candidates.push({ name, losses: negativeLogLikelihood });
    }
  } finally {
    line.end();
  }
  // For a server that should run no scaling: told from the first of the others.
  const unscaled = asked.name === "none" ? names[1]! : "none";
  return inForce(server, candidates, { asked: asked.name, unscaled, trainedLength });
}

/** Two servers: the second's losses should not be the first's. */
function againstServer(
  second: EvaluationStrategy,
  secondLosses: Float64Array,
  first: EvaluationStrategy,
  firstLosses: Float64Array,
  trainedLength: number | null,
): InForce {
  const candidates = [
    { name: second.name, losses: secondLosses },
    { name: first.name, losses: firstLosses },
  ];
  const told = inForce(secondLosses, candidates, { asked: second.name, unscaled: first.name, trainedLength });
  return told.verdict === "cannot-tell" ? { ...told, verdict: "not-in-force" } : told;
}

const sentences: Readonly<Record<InForceVerdict, (result: InForce) => string>> = {
  "in-force": ({ asked }) => `${asked} is in force.`,
  "not-in-force": ({ asked }) =>
    `${asked} is NOT in force: the server's losses are those of the model without it. Check that the setting reached it ` +
    "(its log, the quoting of a JSON argument, the name of the key).",
  another: ({ asked, nearest }) => `Not ${asked}: the server's losses are those of ${nearest}.`,
  "cannot-tell": ({ asked, separation }) =>
    `Cannot tell: with and without ${asked} the losses differ by ${separation.toFixed(4)} nats on this text. Give a longer ` +
    "one, and --length beyond the trained length.",
  "none-of-these": ({ asked }) =>
    `Neither ${asked} nor another candidate: the server has other weights, another quantisation, or a setting that is not ` +
    "among them; --against names more.",
};

function report(result: InForce, tokens: number, trainedLength: number | null, two: boolean): string {
  const { bold, dim } = palette;
  const cell = (value: number | null): string => (value === null ? "" : value.toFixed(4)).padStart(12);
  const short = trainedLength === null ? "" : `to ${(trainedLength - 1).toLocaleString("en")}`;
  const head = `${"".padEnd(16)}${"all".padStart(12)}${short.padStart(12)}${"beyond".padStart(12)}`;
  const rows = result.candidates.map(
    (one) => `${one.name.padEnd(16)}${cell(one.all)}${cell(one.short)}${cell(one.long)}`,
  );
  const sentence =
    two && result.verdict !== "in-force"
      ? `The two servers' losses are the same: ${result.asked} is NOT in force, or both run it.`
      : two
        ? `The two servers' losses differ by ${result.separation.toFixed(4)} nats: they do not run the same.`
        : sentences[result.verdict](result);
  return [
    dim(`root mean square difference from the server's losses, nats, ${tokens.toLocaleString("en")} tokens`),
    dim(head),
    ...rows,
    bold(sentence),
  ].join("\n");
}
