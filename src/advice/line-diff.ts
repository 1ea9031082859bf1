// What changed between two texts, line by line, as `diff -u` and `patch` write it. For texts of a page or two, such as a
// configuration before and after its fixes.

interface Step {
  readonly kind: " " | "-" | "+";
  readonly text: string;
}

/** A longest common subsequence of lines, told as what is kept, removed and added. */
function steps(before: readonly string[], after: readonly string[]): Step[] {
  const width = after.length + 1;
  // common[i, j]: lines that the ends from i and from j have in common.
  const common = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] =
        before[i] === after[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const out: Step[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      out.push({ kind: " ", text: before[i]! });
      i++;
      j++;
    } else if (j >= after.length || (i < before.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      out.push({ kind: "-", text: before[i++]! });
    } else {
      out.push({ kind: "+", text: after[j++]! });
    }
  }
  return out;
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));
const end = "\\ No newline at end of file";

/**
 * The change as a unified diff with three lines of context; empty where nothing changed.
 *
 * @param name of the file, in the diff's two first lines
 */
export function unifiedDiff(name: string, before: string, after: string): string {
  if (before === after) return "";
  // A last line without its newline is another line than with it.
  const marked = (text: string): string[] => {
    const lines = linesOf(text);
    if (lines.length > 0 && !text.endsWith("\n")) lines[lines.length - 1] += `\n${end}`;
    return lines;
  };
  const all = steps(marked(before), marked(after));
  const context = 3;
  const near = all.map((_, at) =>
    all.slice(Math.max(0, at - context), at + context + 1).some(({ kind }) => kind !== " "),
  );
  const out = [`--- a/${name}`, `+++ b/${name}`];
  let [line, newLine] = [1, 1];
  for (let at = 0; at < all.length; ) {
    if (!near[at]) {
      at++;
      line++;
      newLine++;
      continue;
    }
    let to = at;
    while (to < all.length && near[to]) to++;
    const hunk = all.slice(at, to);
    const old = hunk.filter(({ kind }) => kind !== "+").length;
    const fresh = hunk.filter(({ kind }) => kind !== "-").length;
    // A side without lines names the line before it.
    out.push(`@@ -${old === 0 ? line - 1 : line},${old} +${fresh === 0 ? newLine - 1 : newLine},${fresh} @@`);
    out.push(...hunk.map(({ kind, text }) => kind + text));
    line += old;
    newLine += fresh;
    at = to;
  }
  return `${out.join("\n")}\n`;
}
