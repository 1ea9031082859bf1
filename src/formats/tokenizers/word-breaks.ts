// Where a text may be cut without changing its tokens, for tokenizers that have no words: SentencePiece's run over the
// whole sentence. Where no piece holds a space behind the character that stands there, no token reaches over the place,
// so the parts are independent, and a word that came before can be looked up.

/** The (UTF-16 units of) characters that stand before a space inside some piece: no cut behind these. */
export type SpaceBridges = ReadonlySet<number>;

export function spaceBridges(pieces: Iterable<string>, space: string): SpaceBridges {
  const bridges = new Set<number>();
  for (const piece of pieces) {
    for (let at = piece.indexOf(space, 1); at > 0; at = piece.indexOf(space, at + 1)) {
      if (piece[at - 1] !== space) bridges.add(piece.charCodeAt(at - 1));
    }
  }
  return bridges;
}

/** Calls `onWord` for each part: spaces and what follows them up to the next space where a cut is safe. */
export function cutAtSpaces(text: string, space: string, bridges: SpaceBridges, onWord: (word: string) => void): void {
  let start = 0;
  let at = 0;
  while (start < text.length) {
    while (at < text.length && text[at] === space) at++;
    let end = text.indexOf(space, at);
    if (end < 0) end = text.length;
    if (end < text.length && bridges.has(text.charCodeAt(end - 1))) {
      at = end;
      continue;
    }
    onWord(start === 0 && end === text.length ? text : text.slice(start, end));
    start = end;
    at = end;
  }
}
