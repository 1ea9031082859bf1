// Cutting text by a regular expression. Engines keep a stack while they match, and a run of millions of letters without
// a break overflows it (V8: about three million CJK characters); then the text is taken in windows, and only a word
// that fills a whole window is cut where no tokenizer would.

const windowUnits = 2 ** 20;
/** How far beyond a match its decision can look: contractions, a lookahead of one character. */
const lookahead = 16;
/** Longest match that may begin in what a window left over. */
const overlap = 256;

/**
 * Calls onPiece for what matches and for what lies between matches, in order; empty pieces are left out.
 *
 * @param pattern with the flags g and u
 * @param window units taken at once when the whole text is too much; at least 512
 */
export function splitByPattern(
  text: string,
  pattern: RegExp,
  onPiece: (piece: string, matched: boolean) => void,
  window: number = windowUnits,
): void {
  let done = 0;
  let search = 0;
  const emit = (index: number, end: number): void => {
    if (index > done) onPiece(text.slice(done, index), false);
    if (end > index) onPiece(index === 0 && end === text.length ? text : text.slice(index, end), true);
    done = end;
    // An empty match cuts without taking anything.
    search = end > index ? end : end + ((text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1);
  };
  while (search < text.length) {
    pattern.lastIndex = search;
    const match = execute(pattern, text);
    if (match === undefined) {
      splitWindows();
      break;
    }
    if (match === null) break;
    emit(match.index, match.index + match[0].length);
  }
  if (done < text.length) onPiece(done === 0 ? text : text.slice(done), false);

  function splitWindows(): void {
    while (search < text.length) {
      const start = search;
      let length = Math.min(window, text.length - start);
      const last = start + length === text.length;
      if (!last && isHighSurrogate(text.charCodeAt(start + length - 1))) length--;
      const part = text.slice(start, start + length);
      let restart = -1;
      pattern.lastIndex = 0;
      for (;;) {
        const match = pattern.exec(part);
        if (match === null) break;
        const end = match.index + match[0].length;
        // Undecided at the window's edge, unless the word is as long as the window.
        if (!last && match.index > 0 && end > length - lookahead) {
          restart = start + match.index;
          break;
        }
        emit(start + match.index, start + end);
        pattern.lastIndex = search - start;
      }
      if (restart !== -1) search = restart;
      else if (last) return;
      else search = Math.max(search, start + length - overlap);
    }
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

/** The next match; undefined when the engine's stack is exhausted. */
function execute(pattern: RegExp, text: string): RegExpExecArray | null | undefined {
  try {
    return pattern.exec(text);
  } catch {
    return undefined;
  }
}
