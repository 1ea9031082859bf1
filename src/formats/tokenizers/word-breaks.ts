// Where a text may be cut without changing its tokens, for tokenizers that have no words: SentencePiece's run over the
// whole sentence. When no piece holds a space behind another character, no token reaches over such a place, so the
// parts are independent, and a word that came before can be looked up.

/** True when no piece has `space` behind another character, so that a text may be cut there. */
export function breaksAtSpaces(pieces: Iterable<string>, space: string): boolean {
  for (const piece of pieces) {
    for (let at = piece.indexOf(space, 1); at > 0; at = piece.indexOf(space, at + 1)) {
      if (piece[at - 1] !== space) return false;
    }
  }
  return true;
}

/** Calls `onWord` for each part: spaces and what follows them up to the next space. */
export function cutAtSpaces(text: string, space: string, onWord: (word: string) => void): void {
  let start = 0;
  while (start < text.length) {
    let at = start;
    while (at < text.length && text[at] === space) at++;
    let end = text.indexOf(space, at);
    if (end < 0) end = text.length;
    onWord(start === 0 && end === text.length ? text : text.slice(start, end));
    start = end;
  }
}
