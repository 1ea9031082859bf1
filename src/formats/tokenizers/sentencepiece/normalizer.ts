// SentencePiece's normaliser: replacement rules, white space collapsed and trimmed, a dummy space in front, spaces as
// "▁" (sentencepiece normalizer.cc). User-defined symbols pass untouched.

import { Charsmap } from "../charsmap.ts";
import { ByteTrie } from "../pair-table.ts";
import { utf8At, utf8Bytes } from "../utf8.ts";

export interface NormalizerOptions {
  readonly file: string;
  readonly precompiledCharsmap: Uint8Array;
  readonly addDummyPrefix: boolean;
  readonly removeExtraWhitespaces: boolean;
  readonly escapeWhitespaces: boolean;
  readonly treatWhitespaceAsSuffix: boolean;
  readonly userDefined: readonly string[];
}

/** "▁", U+2581. */
export const spaceSymbol = "\u2581";
const spaceBytes = utf8Bytes(spaceSymbol);
const replacement = utf8Bytes("\ufffd");
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Returns the function that normalises a text. */
export function sentencePieceNormalizer(options: NormalizerOptions): (text: string) => string {
  const { addDummyPrefix, removeExtraWhitespaces, treatWhitespaceAsSuffix, escapeWhitespaces } = options;
  const rules =
    options.precompiledCharsmap.length === 0 ? null : new Charsmap(options.precompiledCharsmap, options.file);
  const symbols = options.userDefined.length === 0 ? null : new ByteTrie();
  for (const symbol of options.userDefined) symbols?.add(utf8Bytes(symbol), 0);
  const space = escapeWhitespaces ? spaceBytes : utf8Bytes(" ");

  return (text) => {
    const input = utf8Bytes(text);
    let output = new Uint8Array(Math.max(64, input.length + (input.length >> 1)));
    let length = 0;
    // Everything up to here may be trimmed no further: spaces that a rule or a symbol wrote count as spaces too.
    let previousIsSpace = removeExtraWhitespaces;
    if (addDummyPrefix && !treatWhitespaceAsSuffix) append(space, 0, space.length);
    const prefixLength = length;
    for (let at = 0; at < input.length; ) {
      let from = input;
      let start = at;
      let end = at;
      const symbolLength = symbols?.longestMatch(input, at, input.length) ?? 0;
      if (symbolLength > 0) {
        at += symbolLength;
        end = at;
      } else if (rules?.match(input, at, input.length)) {
        from = rules.replacement;
        start = 0;
        end = from.length;
        at += rules.consumed;
      } else {
        const size = utf8At(input, at, input.length);
        at += Math.max(1, size);
        end = at;
        if (size <= 0) [from, start, end] = [replacement, 0, replacement.length];
      }
      while (previousIsSpace && start < end && from[start] === 0x20) start++;
      if (start < end) {
        for (let i = start; i < end; i++) {
          if (from[i] === 0x20) append(space, 0, space.length);
          else append(from, i, i + 1);
        }
        previousIsSpace = removeExtraWhitespaces && from[end - 1] === 0x20;
      }
    }
    // Nothing but white space is an empty text, without even the dummy space.
    if (removeExtraWhitespaces && length === prefixLength) return "";
    if (removeExtraWhitespaces) while (endsWithSpace()) length -= space.length;
    if (addDummyPrefix && treatWhitespaceAsSuffix) append(space, 0, space.length);
    return decoder.decode(output.subarray(0, length));

    function append(bytes: Uint8Array, start: number, end: number): void {
      if (length + end - start > output.length) {
        const bigger = new Uint8Array(2 * output.length + end - start);
        bigger.set(output.subarray(0, length));
        output = bigger;
      }
      for (let i = start; i < end; i++) output[length++] = bytes[i]!;
    }

    function endsWithSpace(): boolean {
      if (length < space.length) return false;
      for (let i = 0; i < space.length; i++) if (output[length - space.length + i] !== space[i]) return false;
      return true;
    }
  };
}
