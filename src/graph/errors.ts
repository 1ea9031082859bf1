// The errors of graphs that a caller may want to catch by class.

/** An op that a table has no rule for: a gradient, or a lowering on one kind of device. */
export class UnsupportedOpError extends Error {
  override readonly name = "UnsupportedOpError";
  readonly op: string;
  constructor(op: string, message: string) {
    super(message);
    this.op = op;
  }
}

/** A parameter that a graph declares and the given weights lack. */
export class MissingWeightError extends Error {
  override readonly name = "MissingWeightError";
  readonly parameter: string;
  constructor(parameter: string, message: string) {
    super(message);
    this.parameter = parameter;
  }
}

/** The name nearest to `name` by edit distance, for messages; undefined when none is near. */
export function nearestName(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of names) {
    let row = Array.from({ length: candidate.length + 1 }, (_, j) => j);
    for (let i = 1; i <= name.length; i++) {
      const next = [i];
      for (let j = 1; j <= candidate.length; j++) {
        const replaced = row[j - 1]! + (name[i - 1] === candidate[j - 1] ? 0 : 1);
        next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
      }
      row = next;
    }
    const distance = row[candidate.length]!;
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
