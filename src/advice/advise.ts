// What to do at a length, and why: from the configuration alone (hands, what the makers ship), and from a compare where
// there is one. It says what it does not know.

import { expectInteger } from "../encodings/errors.ts";
import { type CompareResult, readsTo, type StrategySummary } from "../evaluation/compare/index.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import { parseStrategy } from "../models/strategy.ts";
import { type Inspection, inspectModel } from "./inspect.ts";
import { shippedFor } from "./shipped.ts";

export interface AdviseOptions {
  /** Tokens to read. */
  readonly target: number;
  readonly trainedLength?: number;
  /** Nats that texts within the trained length may lose; 0.05 when absent. */
  readonly tolerance?: number;
  /** A compare of this model at this target. */
  readonly measured?: CompareResult;
  /** What commands call the model. */
  readonly model?: string;
}

/** One way to reach the target. */
export interface AdvisedOption {
  /** As `--scaling` takes it; null: keep the last tokens alone. */
  readonly scaling: string | null;
  /** Hands that reach unseen angles at the target; null where hands say nothing. */
  readonly unseen: number | null;
  /** Whether short texts are read as before. */
  readonly keepsShort: boolean;
  readonly why: readonly string[];
  /** Measured: nats lost within the trained length, and the length that is read; null without a compare. */
  readonly shortCost: number | null;
  readonly readsTo: number | null;
}

export interface Advice {
  readonly model: string;
  readonly trainedLength: number | null;
  readonly target: number;
  readonly tolerance: number;
  /** Hands of the layers that see everything, without scaling. */
  readonly hands: { readonly turning: number; readonly unfinishedInTraining: number; readonly unseen: number } | null;
  /** The first is recommended. */
  readonly options: readonly AdvisedOption[];
  readonly recommended: string | null;
  readonly why: readonly string[];
  readonly unknown: readonly string[];
  readonly basis: "configuration" | "measurement";
  /** To type next. */
  readonly next: readonly string[];
}

/**
 * Advice on a target length.
 *
 * @param model a description, as `openModel` gives
 * @param options the target in tokens; a compare's result where one was run
 * @throws RangeError for a target that is no integer of at least 1
 * @example
 * ```ts
 * import { advise } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "qwen2", hidden_size: 4096, num_hidden_layers: 2, num_attention_heads: 32,
 *   max_position_embeddings: 32768, rope_theta: 1000000,
 * });
 * advise(model, { target: 65536 }).recommended; // => "yarn:2"
 * advise(model, { target: 16384 }).recommended; // => "as-is"
 * ```
 */
export function advise(model: ModelDescription, options: AdviseOptions): Advice {
  const { target, tolerance = 0.05, measured } = options;
  expectInteger("advise", "target", target, 1);
  const trainedLength = options.trainedLength ?? model.trainedLength;
  const called = options.model ?? model.name;
  const lengths = { target, ...(options.trainedLength === undefined ? {} : { trainedLength: options.trainedLength }) };
  const plain = inspectModel(model, lengths);
  const wide = widest(plain);
  const hands =
    wide === undefined || wide.summary === null
      ? null
      : {
          turning: wide.summary.turning,
          unfinishedInTraining: wide.summary.unfinishedInTraining,
          unseen: wide.summary.unseenUnscaled,
        };
  const common = { model: model.name, trainedLength, target, tolerance, hands };
  const decided = measured === undefined ? fromConfiguration() : fromMeasurement(measured);
  return { ...common, ...decided };

  function fromConfiguration(): Omit<Advice, keyof typeof common> {
    const basis = "configuration" as const;
    const measure = `longhand advise ${called} --target ${target} --text YOUR.txt`;
    const other = withoutRotation(model, target, trainedLength);
    if (other !== null) return { basis, options: [], next: [measure], ...other };
    const claimed = Math.max(model.maxPositionEmbeddings ?? 0, trainedLength ?? 0);
    if (trainedLength !== null && target <= trainedLength) {
      const why = [`${number(target)} tokens are within the ${number(trainedLength)} of training: change nothing.`];
      return { basis, ...keep(why), unknown: [retrieval], next: [exportCommand("as-is", called)] };
    }
    const own = ownScaling(model);
    if (own !== null && target <= own.reach) {
      const why = [`The file's own ${own.type} reaches ${number(own.reach)} tokens: use the file as it is.`];
      return { basis, ...keep(why), unknown: [retrieval], next: [exportCommand("as-is", called)] };
    }
    if (trainedLength === null) {
      const why = ["The file does not say at which length the model was trained, so no factor can be computed."];
      const unknown = ["The trained length: give --trained-length."];
      return { basis, options: [], recommended: null, why, unknown, next: [measure] };
    }
    const factor = roundUp(target / trainedLength);
    const shipped = shippedFor(model);
    const list = candidates(model, lengths, factor);
    const unknown = [
      "Which of these is best on your text: rankings of the same methods turn over between corpora (LongRoPE, 2402.13753: Llama 2 7B at 16,384 tokens, YaRN the worst of three on PG19 and the best of them on Proof-pile).",
      retrieval,
      ...(claimed > trainedLength
        ? [`Whether training went on at ${number(claimed)} tokens, which the file claims.`]
        : []),
      ...(factor > 4 ? [`Whether factor ${factor} holds without further training.`] : []),
    ];
    const why = [
      ...(hands === null || hands.unseen === 0
        ? []
        : [
            `${hands.unseen} of ${hands.turning} hands (pairs of channels that turn together) reach angles at ${number(target)} tokens that training never showed.`,
          ]),
      ...(shipped === null ? [] : [`The makers: ${shipped.says} (${shipped.source}).`]),
      ...(shipped !== null && target > shipped.reach
        ? [`That reaches ${number(shipped.reach)} tokens, less than asked for.`]
        : []),
    ];
    const recommended = list[0]!.scaling!;
    const reason = reasons[recommended.replace(/:.*/, "")];
    if (reason !== undefined) {
      const leaves = list[0]!.unseen === 0 && hands !== null && hands.unseen > 0;
      why.push(
        `${recommended}${leaves ? " leaves none of them unseen. It" : ""} ${reason}. Only a measurement says how good it is here.`,
      );
    }
    return { basis, options: list, recommended, why, unknown, next: [measure, exportCommand(recommended, called)] };
  }

  function fromMeasurement(result: CompareResult): Omit<Advice, keyof typeof common> {
    const trained = result.trainedLength ?? trainedLength ?? result.target;
    const rows = result.strategies.filter(({ beyond, error }) => beyond !== null && error === null);
    const fits = (row: StrategySummary): boolean => (row.shortCost?.mean ?? 0) <= tolerance;
    const forgets = (row: StrategySummary): boolean => row.strategy === result.forgetting;
    const beats = (row: StrategySummary): boolean =>
      forgets(row) || row.againstForgetting === null || row.againstForgetting.verdict === "lower";
    const usable = rows.filter((row) => fits(row) && beats(row));
    const order = (row: StrategySummary): number => row.beyond!.mean;
    const ranked = [...usable].sort((a, b) => order(a) - order(b));
    const rest = rows.filter((row) => !usable.includes(row)).sort((a, b) => order(a) - order(b));
    const list = [...ranked, ...rest].map((row): AdvisedOption => {
      // What forgets reads no length, however low its loss.
      const to = forgets(row) ? null : readsTo(row, trained);
      return {
        scaling: forgets(row) ? null : row.strategy,
        unseen: null,
        keepsShort: (row.shortCost?.mean ?? 0) === 0,
        why: [
          ...(fits(row)
            ? []
            : [
                `costs ${nats(row.shortCost!.mean)} within ${number(trained)} tokens, more than the ${nats(tolerance)} of --tolerance`,
              ]),
          ...(beats(row) ? [] : ["does no better than keeping the last tokens alone"]),
        ],
        shortCost: row.shortCost?.mean ?? 0,
        readsTo: to,
      };
    });
    const best = ranked[0];
    const unknown = [
      ...(result.windows < 2 ? ["How sure this is: one window gives no interval. More text, or --windows, does."] : []),
      "Other texts than yours.",
      ...(rows.some(({ passkey }) => passkey.length > 0) ? [] : [retrieval]),
    ];
    if (best === undefined || forgets(best)) {
      const why = [
        `On this text nothing does better past training than seeing the last ${number(trained)} tokens alone: cut longer texts to those, and leave the positions as they are.`,
      ];
      return {
        basis: "measurement",
        options: list,
        recommended: best === undefined ? null : "as-is",
        why,
        unknown,
        next: [],
      };
    }
    const to = readsTo(best, trained);
    const why = [
      `${best.strategy} has the lowest loss beyond ${number(trained)} tokens of those that cost at most ${nats(tolerance)} within them` +
        `${to === null || to <= trained ? "" : `; it reads to ${number(to)} of ${number(result.target)} tokens`}.`,
    ];
    const level = ranked.filter((row) => row !== best && row.againstBest?.verdict === "tie");
    if (level.length > 0)
      why.push(`${level.map(({ strategy }) => strategy).join(", ")} cannot be told from it on this text.`);
    return {
      basis: "measurement",
      options: list,
      recommended: best.strategy,
      why,
      unknown,
      next: [exportCommand(best.strategy, called)],
    };
  }

  function exportCommand(scaling: string, path: string): string {
    const asked = scaling === "as-is" ? "" : ` --scaling ${scaling}`;
    return `longhand export ${path}${asked} --length ${target} --to ENGINE`;
  }
}

const retrieval = "Whether the model finds things at that length: a low loss does not say so (longhand needle does).";

function keep(why: readonly string[]): Pick<Advice, "options" | "recommended" | "why"> {
  const option = { scaling: "as-is", unseen: null, keepsShort: true, why, shortCost: null, readsTo: null };
  return { options: [option], recommended: "as-is", why };
}

/** The rotary group that sees farthest. */
function widest({ groups }: Inspection): Inspection["groups"][number] | undefined {
  const rotary = groups.filter(({ summary, site }) => summary !== null && site === "query-key");
  return (
    rotary.find(({ slidingWindow, attentionChunkSize }) => slidingWindow === null && attentionChunkSize === null) ??
    rotary[0]
  );
}

/** Models whose positions have no angle: what their encoding itself says. */
function withoutRotation(
  { groups }: ModelDescription,
  target: number,
  trained: number | null,
): Pick<Advice, "recommended" | "why" | "unknown"> | null {
  if (groups.some(({ position }) => position.site === "query-key")) return null;
  const learned = groups.find(({ position }) => position.kind === "learned")?.position;
  if (learned?.kind === "learned") {
    const fits = target <= learned.numPositions;
    const why = fits
      ? [`The table has ${number(learned.numPositions)} rows: change nothing.`]
      : [`The learned table ends at ${number(learned.numPositions)} positions: nothing reads past it.`];
    return { recommended: fits ? "as-is" : null, why, unknown: fits ? [retrieval] : [] };
  }
  const kind = groups[0]?.position.kind ?? "nope";
  const past = trained !== null && target > trained;
  return {
    recommended: "as-is",
    why: [
      kind === "alibi"
        ? "ALiBi needs no change at any length: far tokens weigh less and less (2108.12409)."
        : kind === "t5"
          ? "T5's buckets need no change: all far distances share one, so their order is lost."
          : "There is no angle that could be unseen, and nothing to scale.",
    ],
    unknown: [...(past ? ["How far the loss stays low past training: measure it with --text."] : []), retrieval],
  };
}

/** A scaling that the file has, and how far it goes by itself. */
function ownScaling(model: ModelDescription): { type: string; reach: number } | null {
  for (const { position } of model.groups) {
    if (position.kind !== "rope") continue;
    const { rope } = position;
    if (rope.ropeType === "default" || rope.ropeType === "proportional" || rope.ropeType === "table") continue;
    const scaled =
      (rope.ropeType === "yarn" || rope.ropeType === "ntk-by-parts") && rope.factor !== null
        ? rope.factor * rope.originalMaxPositionEmbeddings
        : 0;
    return { type: rope.ropeType, reach: Math.max(model.maxPositionEmbeddings ?? 0, Math.round(scaled)) };
  }
  return null;
}

/** Why the first of the candidates is the first. */
const reasons: Readonly<Record<string, string>> = {
  yarn: "is the most widely used way without further training, and every engine that longhand export writes for has it",
  linear: "is the one scaling that proportional tables take",
};

const facts: Readonly<Record<string, readonly string[]>> = {
  yarn: [
    "keeps fast hands, slows slow ones, sharpens attention a little",
    "one table for every length: short texts pay too (users of Qwen3 measured 15 to 20 % on agent tasks, vllm-project/vllm#18728)",
  ],
  dynamic: [
    "short texts are read as before",
    "the table changes with the length, so cached keys do not fit: transformers has it, vLLM and llama.cpp do not",
  ],
  ntk: ["a larger base and nothing else: every engine can do it"],
  linear: ["slows every hand alike, which blurs near distances: meant for further training (2306.15595)"],
};

function candidates(
  model: ModelDescription,
  lengths: { target: number; trainedLength?: number },
  factor: number,
): AdvisedOption[] {
  const { target } = lengths;
  const proportional = model.groups.some(
    ({ position }) => position.kind === "rope" && position.rope.ropeType === "proportional",
  );
  const names = proportional ? ["linear"] : ["yarn", "dynamic", "ntk", "linear"];
  const list = names.map((name): AdvisedOption => {
    const scaling = `${name}:${factor}`;
    const group = widest(inspectModel(model, { ...lengths, length: target, strategy: parseStrategy(scaling) }));
    return {
      scaling,
      unseen: group?.summary?.unseen ?? null,
      keepsShort: name === "dynamic",
      why: facts[name]!,
      shortCost: null,
      readsTo: null,
    };
  });
  const last: AdvisedOption = {
    scaling: null,
    unseen: 0,
    keepsShort: true,
    why: [
      "keep the last tokens alone: nothing changes, and what is older is forgotten; every extension has to beat it",
    ],
    shortCost: null,
    readsTo: null,
  };
  return [...list, last];
}

/** A factor with two decimals that reaches the ratio. */
function roundUp(ratio: number): number {
  return Math.ceil(ratio * 100 - 1e-9) / 100;
}

const number = (x: number): string => x.toLocaleString("en-US");
const nats = (x: number): string => `${Number(x.toFixed(3))} nats`;
