// An evolutionary search over stretches of the rotary hands (Ding et al. 2024, LongRoPE, 2402.13753, section 3.2): pair i
// turns λ_i times more slowly, no pair less than the one before it. A generation keeps its best, changes some of them,
// mixes others, and tries what came of it. What differs from the paper: the stretch may go as far as any rule's does, a
// change is a step in ln λ and not a new draw, order is restored by sorting, and the attention factor is searched too.
// The paper's first tokens without stretch are in no engine and not here.

import { type Random, random } from "../../tensor/index.ts";

export interface Candidate {
  /** λ of each pair, at least 1, never falling; what a search makes is in multiples of 0.01. */
  readonly stretch: readonly number[];
  /** Multiplies cos and sin; a multiple of 0.01 likewise. */
  readonly attentionFactor: number;
}

export interface EvolutionOptions {
  /** Tried first, all of them. */
  readonly starts: readonly Candidate[];
  /** The greatest λ. */
  readonly mostStretch: number;
  /** Candidates that a generation begins from: the best so far; 8 when absent. */
  readonly parents?: number;
  /** New ones of each generation, half of them changed, half of them mixed; 16 when absent. */
  readonly children?: number;
  /** 12 when absent. */
  readonly generations?: number;
  /** The chance of each λ to be changed; 0.3 when absent, as in the paper. */
  readonly probability?: number;
  /** 1 when absent. */
  readonly seed?: number;
}

export interface Tried {
  readonly candidate: Candidate;
  readonly loss: number;
}

export interface Generation {
  /** 0: the starts. */
  readonly generation: number;
  /** Candidates tried so far. */
  readonly tried: number;
  readonly best: Tried;
}

/** Steps of a change, as standard deviations: of ln λ, and of the attention factor. */
const stretchStep = 0.15;
const attentionStep = 0.02;
const attentionLimits = [0.9, 1.6] as const;

/**
 * Searches for the candidate of the lowest loss. The same options and losses give the same candidates in the same order.
 *
 * @param evaluate the loss of a candidate; one at a time, none twice
 * @returns the best of all; those of equal loss in the order in which they were tried
 * @throws RangeError for no starts, starts of unlike lengths or outside the limits; whatever `evaluate` throws
 * @example
 * ```ts
 * import { evolve } from "longhand/evaluation";
 * const starts = [{ stretch: [1, 1, 4], attentionFactor: 1 }];
 * // The best would be 1, 2, 4.
 * const loss = async ({ stretch }) => Math.abs(stretch[1] - 2);
 * const { best } = await evolve({ starts, mostStretch: 5, generations: 20 }, loss);
 * best.loss < 0.02; // => true
 * ```
 */
export async function evolve(
  options: EvolutionOptions,
  evaluate: (candidate: Candidate) => Promise<number>,
  onGeneration: (generation: Generation) => void = () => undefined,
): Promise<Generation> {
  const { starts, mostStretch, parents = 8, children = 16, generations = 12, probability = 0.3, seed = 1 } = options;
  checkStarts(starts, mostStretch);
  for (const [name, value] of Object.entries({ parents, children, generations })) {
    if (!Number.isInteger(value) || value < 1) {
      throw new RangeError(`evolve: expected ${name} that is an integer of at least 1, got ${value}`);
    }
  }
  const stream = random(seed);
  const known = new Set<string>();
  let best: Tried[] = [];
  const tryOut = async (candidates: readonly Candidate[]): Promise<void> => {
    for (const candidate of candidates) {
      const key = keyOf(candidate);
      if (known.has(key)) continue;
      known.add(key);
      best.push({ candidate, loss: await evaluate(candidate) });
    }
    // Array.prototype.sort is stable: of equals the first that was tried stays first.
    best = best.sort((a, b) => a.loss - b.loss).slice(0, parents);
  };
  const state = (generation: number): Generation => ({ generation, tried: known.size, best: best[0]! });
  const limits = { most: mostStretch, probability };
  await tryOut(starts);
  onGeneration(state(0));
  for (let generation = 1; generation <= generations; generation++) {
    const from = best.map(({ candidate }) => candidate);
    const next: Candidate[] = [];
    for (let i = 0; i < children; i++) {
      const a = from[stream.integer(from.length)]!;
      // A mix of one with itself is a change too.
      const b = from[stream.integer(from.length)]!;
      next.push(i % 2 === 0 || a === b ? changed(a, limits, stream) : mixed(a, b, stream));
    }
    await tryOut(next);
    onGeneration(state(generation));
  }
  return state(generations);
}

/** What tells candidates apart. */
export function keyOf({ stretch, attentionFactor }: Candidate): string {
  return `${stretch.join()};${attentionFactor}`;
}

function changed(
  { stretch, attentionFactor }: Candidate,
  { most, probability }: { readonly most: number; readonly probability: number },
  stream: Random,
): Candidate {
  const moved = stretch.map((x) =>
    stream.uniform() < probability ? Math.min(most, Math.max(1, x * Math.exp(stretchStep * stream.normal()))) : x,
  );
  const factor =
    stream.uniform() < probability
      ? Math.min(attentionLimits[1], Math.max(attentionLimits[0], attentionFactor + attentionStep * stream.normal()))
      : attentionFactor;
  return rounded({ stretch: moved.sort((a, b) => a - b), attentionFactor: factor });
}

function mixed(a: Candidate, b: Candidate, stream: Random): Candidate {
  const stretch = a.stretch.map((x, i) => (stream.uniform() < 0.5 ? x : b.stretch[i]!));
  const attentionFactor = stream.uniform() < 0.5 ? a.attentionFactor : b.attentionFactor;
  return rounded({ stretch: stretch.sort((x, y) => x - y), attentionFactor });
}

const hundredths = (x: number): number => Math.round(100 * x) / 100;

function rounded({ stretch, attentionFactor }: Candidate): Candidate {
  return { stretch: stretch.map(hundredths), attentionFactor: hundredths(attentionFactor) };
}

function checkStarts(starts: readonly Candidate[], most: number): void {
  const pairs = starts[0]?.stretch.length ?? 0;
  if (pairs === 0) throw new RangeError("evolve: expected at least one start of at least one pair, got none");
  for (const [i, { stretch }] of starts.entries()) {
    if (stretch.length !== pairs) {
      throw new RangeError(`evolve: expected starts of ${pairs} pairs, got ${stretch.length} in start ${i}`);
    }
    for (const [pair, x] of stretch.entries()) {
      const least = Math.max(1, stretch[pair - 1] ?? 1) - 1e-9;
      if (!(x >= least && x <= most + 1e-9)) {
        throw new RangeError(
          `evolve: expected stretches from 1 to ${most} that never fall, got ${x} at pair ${pair} of start ${i}`,
        );
      }
    }
  }
}
