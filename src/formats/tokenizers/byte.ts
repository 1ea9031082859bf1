// One token a byte: no vocabulary to train or to ship, the choice for the project's own small models. Ids 0 to 255 are
// the bytes of UTF-8; special tokens follow.

import { AddedTokens, addedToken } from "./added-tokens.ts";
import { assembleTokenizer } from "./assembled.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { Utf8Scratch, utf8Bytes } from "./utf8.ts";
import { byteTokenText, type TokenClass, Vocabulary } from "./vocabulary.ts";

export interface ByteTokenizerOptions {
  /** Special tokens behind the 256 bytes, in order. Default `["<bos>", "<eos>", "<pad>"]`. */
  readonly specialTokens?: readonly string[];
  /** Put BOS in front of a text; default true when `<bos>` is among the special tokens. */
  readonly addBos?: boolean;
  /** Put EOS behind it. Default false. */
  readonly addEos?: boolean;
}

/** tokenizer_class in the tokenizer_config.json of a model that uses bytes. */
export const byteTokenizerClass = "LonghandByteTokenizer";

/** What to write as tokenizer_config.json beside a model that was trained with `byteTokenizer(options)`. */
export function byteTokenizerConfig(options: ByteTokenizerOptions = {}): Record<string, unknown> {
  const { specialTokens = defaultSpecialTokens } = options;
  return {
    tokenizer_class: byteTokenizerClass,
    special_tokens: [...specialTokens],
    add_bos_token: options.addBos ?? specialTokens.includes("<bos>"),
    add_eos_token: options.addEos ?? false,
  };
}

const defaultSpecialTokens: readonly string[] = ["<bos>", "<eos>", "<pad>"];

/**
 * A tokenizer of bytes. `<bos>`, `<eos>` and `<pad>` among the special tokens take their roles.
 *
 * @throws RangeError for a special token that is empty or occurs twice, TypeError when BOS or EOS is asked for and is
 *   not among them
 * @example
 * ```ts
 * import { byteTokenizer } from "longhand/formats";
 * const tokenizer = byteTokenizer();
 * tokenizer.encode("é!"); // => [256, 195, 169, 33]
 * tokenizer.decode([256, 195, 169, 33], { skipSpecial: true }); // => "é!"
 * ```
 */
export function byteTokenizer(options: ByteTokenizerOptions = {}): Tokenizer {
  const { specialTokens = defaultSpecialTokens } = options;
  for (const [i, text] of specialTokens.entries()) {
    if (text === "" || specialTokens.indexOf(text) !== i) {
      throw new RangeError(`byteTokenizer: expected special tokens that differ, got ${JSON.stringify(specialTokens)}`);
    }
  }
  const bytes = Array.from({ length: 256 }, (_, byte) => byteTokenText(byte));
  const vocabulary = new Vocabulary(
    [...bytes, ...specialTokens],
    [...bytes.map((): TokenClass => "byte"), ...specialTokens.map((): TokenClass => "control")],
  );
  const role = (text: string): number | null => {
    const at = specialTokens.indexOf(text);
    return at < 0 ? null : 256 + at;
  };
  const bosToken = role("<bos>");
  const eosToken = role("<eos>");
  const around = (asked: boolean, id: number | null, text: string): number[] => {
    if (!asked) return [];
    if (id === null)
      throw new TypeError(`byteTokenizer: expected ${text} among the special tokens to add it, got none`);
    return [id];
  };
  const utf8 = new Utf8Scratch();
  return assembleTokenizer({
    kind: "byte",
    vocabulary,
    bosToken,
    eosToken,
    unknownToken: null,
    padToken: role("<pad>"),
    endTokens: eosToken === null ? [] : [eosToken],
    prefix: around(options.addBos ?? bosToken !== null, bosToken, "<bos>"),
    suffix: around(options.addEos ?? false, eosToken, "<eos>"),
    addedTokens: new AddedTokens(specialTokens.map((text, i) => addedToken(256 + i, text, true))),
    encodeText: (text, _start, out) => {
      const length = utf8.encode(text);
      for (let i = 0; i < length; i++) out.push(utf8.bytes[i]!);
    },
    isSpecial: (id) => id >= 256,
    tokenBytes: (id) => (id < 256 ? Uint8Array.of(id) : utf8Bytes(vocabulary.texts[id]!)),
    leadingSpace: "keep",
    restartsAfter: () => false,
    invalidBytes: "one-a-part",
  });
}
