// Tokens that are found in the text before anything else is done with it: special ones and those that users added.
// Leftmost first, of those the longest, after huggingface/tokenizers' added_vocabulary.rs; white space and word
// boundaries are Unicode's.

export interface AddedToken {
  readonly id: number;
  readonly text: string;
  /** Found only while parseSpecial holds. */
  readonly special: boolean;
  /** Takes the white space before it, or behind it, along. */
  readonly stripLeft: boolean;
  readonly stripRight: boolean;
  /** Not inside a word. */
  readonly singleWord: boolean;
}

/** A plain added token. */
export function addedToken(id: number, text: string, special: boolean): AddedToken {
  return { id, text, special, stripLeft: false, stripRight: false, singleWord: false };
}

interface Node {
  readonly children: Map<number, Node>;
  token: AddedToken | null;
}

const wordCharacter = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;
const space = /\p{White_Space}/u;

export class AddedTokens {
  readonly #root: Node = { children: new Map(), token: null };
  readonly size: number;

  constructor(tokens: readonly AddedToken[]) {
    this.size = tokens.length;
    for (const token of tokens) {
      if (token.text === "") continue;
      let node = this.#root;
      for (let i = 0; i < token.text.length; i++) {
        const unit = token.text.charCodeAt(i);
        let next = node.children.get(unit);
        if (next === undefined) {
          next = { children: new Map(), token: null };
          node.children.set(unit, next);
        }
        node = next;
      }
      node.token ??= token;
    }
  }

  /** Calls `onText` for what lies between tokens (never empty; with its start) and `onToken` for each token, in order. */
  split(
    text: string,
    parseSpecial: boolean,
    onText: (part: string, start: number) => void,
    onToken: (token: AddedToken) => void,
  ): void {
    const { children } = this.#root;
    let start = 0;
    let at = 0;
    while (children.size > 0 && at < text.length) {
      let node = children.get(text.charCodeAt(at));
      if (node === undefined) {
        at++;
        continue;
      }
      let found: AddedToken | null = null;
      for (let i = at + 1; node !== undefined; i++) {
        if (node.token !== null && (parseSpecial || !node.token.special)) found = node.token;
        node = i < text.length ? node.children.get(text.charCodeAt(i)) : undefined;
      }
      const end = found === null ? at : at + found.text.length;
      if (found === null || (found.singleWord && insideWord(text, at, end))) {
        // A match that is refused is passed over as a whole, as the automaton it stands for does.
        at = found === null ? at + 1 : end;
        continue;
      }
      let left = at;
      let right = end;
      // White space is never a surrogate pair, so units are enough.
      if (found.stripLeft) while (left > start && space.test(text[left - 1]!)) left--;
      if (found.stripRight) while (right < text.length && space.test(text[right]!)) right++;
      if (left > start) onText(text.slice(start, left), start);
      onToken(found);
      start = right;
      at = right;
    }
    if (start < text.length) onText(start === 0 ? text : text.slice(start), start);
  }
}

function insideWord(text: string, start: number, end: number): boolean {
  const before = start === 0 ? "" : String.fromCodePoint(codePointBefore(text, start));
  const after = end >= text.length ? "" : String.fromCodePoint(text.codePointAt(end)!);
  return wordCharacter.test(before) || wordCharacter.test(after);
}

function codePointBefore(text: string, at: number): number {
  const low = text.charCodeAt(at - 1);
  return at > 1 && low >= 0xdc00 && low < 0xe000 ? text.codePointAt(at - 2)! : low;
}
