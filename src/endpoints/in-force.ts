// Is the scaling that a server was started with really in force? Half of this field's bug reports are a scaling that is
// declared and not applied, or applied twice, which nobody sees at short length. Losses tell: the server's, token by token,
// against those that the same weights give under each strategy that may be meant.

export interface InForceCandidate {
  /** As "none" or "yarn:4". */
  readonly name: string;
  /** Nats: index i is the loss of token i + 1. */
  readonly losses: ArrayLike<number>;
}

/**
 * in-force: the server's losses are those of what was asked for.
 * not-in-force: they are those of the model without it.
 * another: they are those of another candidate, `nearest`.
 * cannot-tell: what was asked for and the model without it differ too little on this text, at this length.
 * none-of-these: they are nobody's: other weights, another quantisation, or a setting that is not among the candidates.
 */
export type InForceVerdict = "in-force" | "not-in-force" | "another" | "cannot-tell" | "none-of-these";

export interface InForce {
  readonly verdict: InForceVerdict;
  readonly asked: string;
  /** The candidate whose losses are closest. */
  readonly nearest: string;
  /** Root mean square difference between what was asked for and what it is told from, nats. */
  readonly separation: number;
  /** Root mean square differences from the server's losses, nats, closest first; null for a part without tokens. */
  readonly candidates: readonly {
    readonly name: string;
    readonly all: number;
    /** Within the trained length. */
    readonly short: number | null;
    /** Beyond it. */
    readonly long: number | null;
  }[];
}

export interface InForceOptions {
  /** The candidate that the server was started with. */
  readonly asked: string;
  /** The candidate without it; another than `asked`. */
  readonly unscaled: string;
  readonly trainedLength: number | null;
}

/** Below this a difference is that of kernels and roundings. */
const noise = 0.02;

/**
 * Tells which candidate a server runs.
 *
 * A candidate is what the server runs when the server's losses are three times closer to it than the two that are to be
 * told apart are to each other.
 *
 * @param server its losses of the same tokens
 * @throws RangeError for candidates that are missing, or lists of different lengths
 * @example
 * ```ts
 * import { inForce } from "longhand/endpoints";
 * const candidates = [
 *   { name: "none", losses: [2, 2, 6, 7] },
 *   { name: "yarn:2", losses: [2.1, 2.1, 2.2, 2.1] },
 * ];
 * const { verdict } = inForce([2, 2, 6.01, 6.99], candidates, { asked: "yarn:2", unscaled: "none", trainedLength: 3 });
 * verdict; // => "not-in-force"
 * ```
 */
export function inForce(
  server: ArrayLike<number>,
  candidates: readonly InForceCandidate[],
  { asked, unscaled, trainedLength }: InForceOptions,
): InForce {
  const find = (name: string): InForceCandidate => {
    const found = candidates.find((one) => one.name === name);
    if (found !== undefined) return found;
    throw new RangeError(
      `inForce: expected ${name} among the candidates, got ${candidates.map((one) => one.name).join(", ") || "none"}`,
    );
  };
  const [wanted, other] = [find(asked), find(unscaled)];
  if (asked === unscaled) throw new RangeError(`inForce: expected two different candidates, got ${asked} twice`);
  for (const { name, losses } of candidates) {
    if (losses.length === server.length && server.length > 0) continue;
    throw new RangeError(
      `inForce: expected ${server.length} losses of ${name}, as many as the server's and at least one, got ${losses.length}`,
    );
  }
  const end = server.length;
  // Index i is position i + 1: the first trainedLength − 1 of them are within.
  const split = trainedLength === null ? end : Math.min(trainedLength - 1, end);
  const table = candidates
    .map(({ name, losses }) => ({
      name,
      all: distance(server, losses, 0, end)!,
      short: distance(server, losses, 0, split),
      long: distance(server, losses, split, end),
    }))
    .sort((a, b) => a.all - b.all);
  const separation = distance(wanted.losses, other.losses, 0, end)!;
  const nearest = table[0]!.name;
  const from = (name: string): number => table.find((one) => one.name === name)!.all;
  const isAt = (name: string): boolean => {
    const apart = name === asked ? separation : distance(find(name).losses, wanted.losses, 0, end)!;
    return apart >= noise && from(name) < apart / 3;
  };
  const verdict: InForceVerdict =
    separation < noise
      ? "cannot-tell"
      : isAt(asked)
        ? "in-force"
        : isAt(unscaled) && from(unscaled) <= 2 * table[0]!.all
          ? "not-in-force"
          : isAt(nearest)
            ? "another"
            : "none-of-these";
  return { verdict, asked, nearest, separation, candidates: table };
}

/** Root mean square difference over indices from … to − 1; null for none. */
function distance(a: ArrayLike<number>, b: ArrayLike<number>, from: number, to: number): number | null {
  if (to <= from) return null;
  let sum = 0;
  for (let i = from; i < to; i++) sum += (a[i]! - b[i]!) ** 2;
  return Math.sqrt(sum / (to - from));
}
