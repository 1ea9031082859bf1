// Which strategies make sense for a model at a target length: by the sites of its positions and its trained length. What
// does not is said with the reason, as data, so that a report leaves nothing out silently.

import type { ModelDescription } from "../../formats/model-description.ts";
import { isEncoderDecoder, neighborWindowOf, trainedConfig, viewedGroups } from "../../models/index.ts";
import { type EvaluationStrategy, parseEvaluationStrategy, type StrategyLengths } from "./strategy.ts";

export interface StrategySet {
  readonly strategies: readonly EvaluationStrategy[];
  readonly leftOut: readonly LeftOut[];
}

export interface LeftOut {
  readonly name: string;
  readonly why: string;
}

/** The windowed baseline's name in the default set. */
export const windowedName = "window";

/**
 * The strategies for a model.
 *
 * @param options.all also those that cost much or that a model is seldom good at without training: ntk-by-parts, llama3,
 *   dynamic with growing tables, self-extend, drop with and without temperature
 * @throws RangeError for a model with an encoder
 * @example
 * ```ts
 * import { defaultStrategies } from "longhand/evaluation";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "llama", hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, max_position_embeddings: 512,
 * });
 * const { strategies } = defaultStrategies(model, { trainedLength: 512, target: 2048 });
 * strategies.map(({ name }) => name); // => ["none", "linear:4", "ntk:4", "dynamic:4", "yarn:4", "window"]
 * ```
 */
export function defaultStrategies(
  model: ModelDescription,
  lengths: StrategyLengths,
  options: { readonly all?: boolean; readonly factors?: readonly number[] } = {},
): StrategySet {
  expectDecoder(model);
  const { trainedLength, target } = lengths;
  const { all = false } = options;
  const names: string[] = [];
  const leftOut: LeftOut[] = [];
  const out = (name: string, why: string): void => void leftOut.push({ name, why });

  const positions = model.groups.map(({ position }) => position);
  const rotary = positions.filter((position) => position.site === "query-key");
  const proportional = rotary.some(({ rope }) => rope.ropeType === "proportional");
  const end = positionsEnd(model);
  if (target > end) {
    out("none", `the model has ${end} learned positions and nothing to put at a later one`);
  } else {
    if (rotary.some((position) => !sameSettings(trainedConfig(position, model).rope, position.rope)))
      names.push("as-is");
    names.push("none");
  }

  const beyond = trainedLength !== null && target > trainedLength;
  const scalings = ["linear", "ntk", "ntk-by-parts", "dynamic", "yarn", "llama3"];
  if (rotary.length === 0) {
    out(scalings.join(", "), `they scale rotary angles, and the model has ${kinds(model)}`);
  } else if (trainedLength === null) {
    out(scalings.join(", "), "the file does not say at which length the model was trained");
  } else if (!beyond) {
    out(scalings.join(", "), `the target, ${target} tokens, is within the trained length of ${trainedLength}`);
  } else {
    for (const factor of options.factors ?? [factorFor(trainedLength, target)]) {
      for (const name of scalings) {
        const text = `${name}:${factor}`;
        if (proportional && name !== "linear") {
          out(text, "it would turn channels that stood still in training (proportional rotary positions)");
        } else if (!all && (name === "ntk-by-parts" || name === "llama3")) {
          out(text, "close to yarn; --strategies all runs it");
        } else {
          names.push(text);
        }
      }
      if (proportional) continue;
      if (all) names.push(`dynamic:${factor}@growing`);
      else
        out(`dynamic:${factor}@growing`, "a table for each prefix takes about nine passes; --strategies all runs it");
    }
  }
  if (rotary.length > 0 && !rotary.some(({ rope }) => rope.ropeType === "longrope")) {
    out("longrope", "the checkpoint carries no long and short factors");
  }
  selfExtend();
  if (positions.some(({ site }) => site !== "none")) {
    for (const name of ["drop", "drop+temperature"]) {
      if (all) names.push(name);
      else out(name, "only of use to a model that was trained on without positions; --strategies all runs it");
    }
  }
  if (beyond) names.push(windowedName);
  else out(windowedName, "the target is within the trained length, or that is unknown: there is nothing to forget");
  return { strategies: names.map((name) => parseEvaluationStrategy(name, lengths)), leftOut };

  function selfExtend(): void {
    const name = "self-extend";
    if (rotary.length === 0) {
      out(name, `it moves rotary positions, and the model has ${kinds(model)}`);
    } else if (viewedGroups(model).length === 0) {
      out(name, "every rotary layer sees a window only, and no key is far");
    } else if (trainedLength === null) {
      out(name, "the file does not say at which length the model was trained");
    } else if (!beyond) {
      out(name, `the target, ${target} tokens, is within the trained length of ${trainedLength}`);
    } else if (!all) {
      out(name, "it takes the weights into memory a second time and a pass is slower; --strategies all runs it");
    } else {
      const factors = options.factors ?? [factorFor(trainedLength, target)];
      names.push(...new Set(factors.map((factor) => selfExtendName(trainedLength, factor))));
    }
  }
}

/** Throws for what is not a decoder alone. */
export function expectDecoder(model: ModelDescription): void {
  if (!isEncoderDecoder(model)) return;
  throw new RangeError(
    `${model.name}: expected a decoder alone, which reads one long text and predicts every token of it, got ` +
      `${model.modelType}, whose encoder reads one text while its decoder writes another; longhand score takes the two ` +
      "(--text and --decoder-tokens)",
  );
}

/** target / trained, rounded up to three digits, so that the scaling reaches the target. */
export function factorFor(trainedLength: number, target: number): number {
  return Math.ceil((target / trainedLength) * 1000 - 1e-9) / 1000;
}

/** Self-Extend with the default window, and the smallest groups that reach so many times the trained length:
 *  (L − W)·G + W tokens. */
export function selfExtendName(trainedLength: number, factor: number): string {
  const window = neighborWindowOf(trainedLength);
  const groupSize = Math.max(1, Math.ceil((trainedLength * factor - window) / (trainedLength - window)));
  return `self-extend:${groupSize}:${window}`;
}

/** The first position that the model has nothing for; Infinity where there is none. */
export function positionsEnd(model: ModelDescription): number {
  return Math.min(
    ...model.groups.map(({ position }) =>
      position.site === "embedding" ? (position.numPositions ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
    ),
  );
}

function kinds(model: ModelDescription): string {
  const names: Readonly<Record<string, string>> = {
    nope: "none",
    learned: "a learned table",
    alibi: "ALiBi",
    t5: "T5's",
  };
  return [...new Set(model.groups.map(({ position }) => names[position.kind] ?? `${position.kind} ones`))].join(
    " and ",
  );
}

function sameSettings(a: object, b: object): boolean {
  const text = (value: object): string => JSON.stringify(Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1)));
  return text(a) === text(b);
}
