// "Did you mean": the known names closest to one that a file or a user got wrong.

/**
 * Edits (insert, delete, replace, swap of neighbours) between two strings: optimal string alignment.
 *
 * @param most where more are as good as none: infinity is returned as soon as more are certain
 */
export function editDistance(a: string, b: string, most: number = Number.POSITIVE_INFINITY): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  let leastBefore = 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) best = Math.min(best, before[j - 2]! + 1);
      row.push(best);
      if (best < least) least = best;
    }
    // A swap reaches over one row, for one edit.
    if (least > most && leastBefore + 1 > most) return Number.POSITIVE_INFINITY;
    leastBefore = least;
    before = previous;
    previous = row;
  }
  return previous[b.length]!;
}

/**
 * The known names nearest to `name`, best first, at most `most`: those within a third of its length in edits, or that
 * contain it or are contained in it. Case and the difference of "-", "_" and "." do not count.
 *
 * @example
 * ```ts
 * import { nearest } from "longhand/formats";
 * nearest("lama", ["llama", "gemma", "qwen2"]); // => ["llama"]
 * ```
 */
export function nearest(name: string, known: readonly string[], most = 3): string[] {
  const plain = (text: string): string => text.toLowerCase().replace(/[-_.\s]/g, "");
  // Names out of files can be long; a name of hundreds of characters resembles nothing.
  if (name.length > 100) return [];
  const wanted = plain(name);
  return known
    .map((candidate) => {
      const other = plain(candidate);
      const contains =
        wanted.length >= 3 && other.length >= 3 && (other.startsWith(wanted) || wanted.startsWith(other));
      return { candidate, contains, edits: editDistance(wanted, other) };
    })
    .filter(({ contains, edits }) => contains || edits <= Math.max(1, Math.floor(wanted.length / 3)))
    .sort((a, b) => a.edits - b.edits || a.candidate.localeCompare(b.candidate, "en"))
    .slice(0, most)
    .map(({ candidate }) => candidate);
}

/** `; did you mean "x", "y"?`, or nothing when no known name is near. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near.length === 0 ? "" : `; did you mean ${near.map((one) => JSON.stringify(one)).join(" or ")}?`;
}
