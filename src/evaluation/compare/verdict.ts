// A compare in sentences that a person can act on. Nothing is said that an interval does not carry: what lies inside it is
// called a tie, and an extension that loses to simply forgetting is called that.

import type { Difference } from "../statistics/paired.ts";
import type { CompareResult, StrategySummary } from "./result.ts";

/** The verdict, a sentence or two each. Empty while nothing was measured. */
export function compareVerdict(result: CompareResult): string[] {
  const { trainedLength, target, windows, forgetting } = result;
  const measured = result.strategies.filter(({ beyond }) => beyond !== null);
  if (measured.length === 0) return [];
  const out: string[] = [];
  if (windows < 2) {
    out.push(
      "One window gives no interval, so nothing can be called better or worse; more --windows, or more text, do that.",
    );
  }
  if (trainedLength === null || target <= trainedLength) {
    out.push(...withinTrained(result, measured));
  } else if (windows >= 2) {
    out.push(...beyondTrained(result, measured, trainedLength));
  }
  out.push(...passkeys(result, measured));
  for (const { strategy, error } of result.strategies) {
    if (error !== null) out.push(`${strategy} gave losses that are no numbers: ${error}`);
  }
  if (forgetting === null && trainedLength !== null && target > trainedLength) {
    out.push("The windowed baseline was not run, so nothing here says whether forgetting would do as well.");
  }
  return out;
}

function beyondTrained(result: CompareResult, measured: readonly StrategySummary[], trained: number): string[] {
  const { forgetting, unscaled, best } = result;
  const extensions = measured.filter(({ strategy }) => strategy !== forgetting && strategy !== unscaled);
  const losing = extensions.filter(({ againstForgetting }) => againstForgetting?.verdict === "higher");
  const tied = extensions.filter(({ againstForgetting }) => againstForgetting?.verdict === "tie");
  const winning = measured.filter(
    ({ strategy, againstForgetting }) =>
      strategy !== forgetting && (againstForgetting === null || againstForgetting.verdict === "lower"),
  );
  const last = `the last ${tokens(trained)} tokens`;
  const out: string[] = [];
  if (winning.length === 0) {
    const kept = `keep ${last}, and leave the positions alone`;
    out.push(
      tied.length === 0
        ? `Nothing beats simply forgetting (${last}): ${kept}.`
        : `Nothing beats simply forgetting (${last}); ${names(tied)} ${tied.length === 1 ? "ties" : "tie"} with it: ${kept}.`,
    );
  } else {
    // Those that no interval tells from the best; of them the cheapest at short length comes first.
    const level = winning.filter(({ strategy, againstBest }) => strategy === best || againstBest?.verdict === "tie");
    const first = [...level].sort((a, b) => price(a) - price(b) || a.beyond!.mean - b.beyond!.mean)[0] ?? winning[0]!;
    out.push(`${sentence(first, result, trained)}.`);
    const others = level.filter((one) => one !== first);
    for (const one of others)
      out.push(`${one.strategy} ties with the best beyond ${tokens(trained)}; ${cost(one, trained)}.`);
    for (const one of winning.filter((w) => !level.includes(w))) {
      const { mean } = one.againstBest!;
      out.push(`${sentence(one, result, trained)}, and is ${nats(mean)} behind ${best} beyond ${tokens(trained)}.`);
    }
    if (tied.length > 0)
      out.push(`${names(tied)} ${tied.length === 1 ? "does" : "do"} no better than forgetting (a tie).`);
  }
  for (const one of losing) {
    out.push(`${one.strategy} loses to simply forgetting (${last}) by ${interval(one.againstForgetting!)}.`);
  }
  const none = measured.find(({ strategy }) => strategy === unscaled);
  if (none !== undefined && !winning.includes(none)) {
    const to = readsTo(none, trained);
    const against = none.againstForgetting;
    if (against?.verdict === "higher") {
      const reach = to === null || to <= trained ? `does not read past ${tokens(trained)}` : `reads to ${tokens(to)}`;
      out.push(
        `Unscaled, the model ${reach}; beyond ${tokens(trained)} it loses to forgetting by ${interval(against)}.`,
      );
    } else {
      out.push(`Unscaled, the model does no better than forgetting (a tie).`);
    }
  }
  return out;
}

/** "yarn:4 reads to 2,048 tokens; it costs 0.021 nats (0.015 to 0.027) within 512" */
function sentence(one: StrategySummary, { target }: CompareResult, trained: number): string {
  const to = readsTo(one, trained);
  const reach =
    to === null || to <= trained
      ? `${one.strategy} beats forgetting, but reads no length beyond ${tokens(trained)} as well as that one`
      : `${one.strategy} reads to ${tokens(to)}${to < target ? ` of ${tokens(target)}` : ""} tokens`;
  return `${reach}; ${cost(one, trained)}`;
}

function cost({ shortCost }: StrategySummary, trained: number): string {
  if (shortCost === null) return "it is the model as it is";
  const where = `within ${tokens(trained)}`;
  if (shortCost.verdict === "higher") return `it costs ${interval(shortCost)} ${where}`;
  if (shortCost.verdict === "lower") return `it gains ${interval({ ...shortCost, ...turned(shortCost) })} ${where}`;
  return shortCost.mean === 0 ? `it costs nothing ${where}` : `what it costs ${where} is a tie with nothing`;
}

function price({ shortCost }: StrategySummary): number {
  return shortCost?.verdict === "higher" ? shortCost.mean : 0;
}

/** The length up to which the loss is no higher than the strategy's own at the trained length, and than forgetting's. */
export function readsTo(summary: StrategySummary, trained: number): number | null {
  const byLoss = summary.effectiveLength?.length ?? null;
  if (byLoss === null) return null;
  if (summary.beatsForgettingTo === null) return byLoss;
  return Math.min(byLoss, summary.beatsForgettingTo.length ?? trained);
}

function withinTrained(result: CompareResult, measured: readonly StrategySummary[]): string[] {
  const where =
    result.trainedLength === null
      ? "The file does not say at which length the model was trained, so no strategy can be called an extension."
      : `All ${tokens(result.target)} tokens are within the trained length: there is nothing to extend.`;
  return [
    where,
    ...measured
      .filter(({ againstUnscaled }) => againstUnscaled !== null && againstUnscaled.verdict !== "unknown")
      .map(({ strategy, againstUnscaled }) => {
        const { verdict, mean } = againstUnscaled!;
        if (verdict === "tie") return `${strategy} ties with the unscaled model.`;
        return `${strategy} is ${nats(Math.abs(mean))} ${verdict === "lower" ? "better" : "worse"} than the unscaled model.`;
      }),
  ];
}

function passkeys({ target }: CompareResult, measured: readonly StrategySummary[]): string[] {
  const at = measured.flatMap(({ strategy, passkey }) => passkey.map((one) => ({ strategy, ...one })));
  const long = at.filter(({ length }) => length === target);
  if (long.length === 0) return [];
  if (at.every(({ found }) => found.successes === 0)) {
    return ["No strategy finds a passkey at any length: this model does not answer such questions."];
  }
  const count = ({ found }: (typeof long)[number]): string => `${Math.round(found.successes)} of ${found.trials}`;
  return [`Passkeys found at ${tokens(target)}: ${long.map((one) => `${one.strategy} ${count(one)}`).join(", ")}.`];
}

function names(list: readonly StrategySummary[]): string {
  const all = list.map(({ strategy }) => strategy);
  return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
}

function tokens(count: number): string {
  return count.toLocaleString("en");
}

function nats(x: number): string {
  return `${x.toFixed(x < 0.0995 ? 3 : 2)} nats`;
}

function turned({ mean, low, high }: Difference): { mean: number; low: number | null; high: number | null } {
  return { mean: -mean, low: high === null ? null : -high, high: low === null ? null : -low };
}

function interval({ mean, low, high }: Pick<Difference, "mean" | "low" | "high">): string {
  if (low === null || high === null) return nats(mean);
  const digits = Math.abs(mean) < 0.0995 ? 3 : 2;
  return `${mean.toFixed(digits)} nats (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}
