// Learning rates by step. Steps count from 0: step s is the update that turns weights s into weights s + 1.

/** The learning rate of a step. */
export type Schedule = (step: number) => number;

export interface ScheduleOptions {
  /** The highest rate. */
  readonly peak: number;
  /** Steps of the whole run. */
  readonly steps: number;
  /** Steps of linear warm-up: step s has peak · (s + 1) / warmup. 0 when absent. */
  readonly warmup?: number;
  /** Where the rate ends, as a share of the peak; 0 when absent. */
  readonly final?: number;
}

function expectOptions(who: string, { peak, steps, warmup = 0, final = 0 }: ScheduleOptions): void {
  if (!(peak > 0)) throw new RangeError(`${who}: expected a peak above 0, got ${peak}`);
  if (!Number.isInteger(steps) || steps < 1) throw new RangeError(`${who}: expected at least 1 step, got ${steps}`);
  if (!Number.isInteger(warmup) || warmup < 0 || warmup > steps) {
    throw new RangeError(`${who}: expected a warm-up of 0 .. ${steps} steps, got ${warmup}`);
  }
  if (!(final >= 0 && final <= 1)) throw new RangeError(`${who}: expected a final share of 0 .. 1, got ${final}`);
}

/** Always the same rate. */
export function constantRate(rate: number): Schedule {
  return () => rate;
}

/**
 * Warm-up, a plateau, and a decay to `final` (Hu et al. 2024, 2404.06395, "MiniCPM", section 4): a run can be prolonged
 * from its plateau, since nothing before the decay depends on the total.
 *
 * @param options `decay`: the last steps, in which the rate falls; a fifth of all steps when absent. `shape`: how it
 *   falls, "linear" when absent, or "sqrt": 1 − √(share done) (Hägele et al. 2024, 2405.18392)
 * @throws RangeError for rates, steps or shares out of range
 * @example
 * ```ts
 * import { warmupStableDecay } from "longhand/training";
 * const rate = warmupStableDecay({ peak: 1, steps: 10, warmup: 2, decay: 4 });
 * Array.from({ length: 10 }, (_, step) => rate(step)); // => [0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25]
 * ```
 */
export function warmupStableDecay(
  options: ScheduleOptions & { readonly decay?: number; readonly shape?: "linear" | "sqrt" },
): Schedule {
  const who = "warmupStableDecay";
  expectOptions(who, options);
  const { peak, steps, warmup = 0, final = 0, shape = "linear" } = options;
  const decay = options.decay ?? Math.min(Math.floor(steps / 5), steps - warmup);
  if (!Number.isInteger(decay) || decay < 0 || warmup + decay > steps) {
    throw new RangeError(`${who}: expected a decay of 0 .. ${steps - warmup} steps, got ${decay}`);
  }
  return (step) => {
    if (step < warmup) return (peak * (step + 1)) / warmup;
    const done = (step - (steps - decay)) / decay;
    if (!(done > 0)) return peak;
    const left = Math.max(0, shape === "sqrt" ? 1 - Math.sqrt(done) : 1 - done);
    return peak * (final + (1 - final) * left);
  };
}

/**
 * Warm-up, then half a cosine from the peak to `final` (Loshchilov and Hutter 2017, 1608.03983).
 *
 * @throws RangeError for rates, steps or shares out of range
 * @example
 * ```ts
 * import { warmupCosine } from "longhand/training";
 * const rate = warmupCosine({ peak: 1, steps: 6, warmup: 2 });
 * [rate(0), rate(1), rate(2), rate(4), rate(6)]; // => [0.5, 1, 1, 0.5, 0]
 * ```
 */
export function warmupCosine(options: ScheduleOptions): Schedule {
  expectOptions("warmupCosine", options);
  const { peak, steps, warmup = 0, final = 0 } = options;
  return (step) => {
    if (step < warmup) return (peak * (step + 1)) / warmup;
    const done = Math.min(1, (step - warmup) / Math.max(1, steps - warmup));
    // cos(π/2) is exactly 0 here, so that the middle is the middle.
    const cosine = done === 0.5 ? 0 : Math.cos(Math.PI * done);
    return peak * (final + ((1 - final) * (1 + cosine)) / 2);
  };
}
