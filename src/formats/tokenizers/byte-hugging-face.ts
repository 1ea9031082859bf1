// The tokenizer of bytes as Hugging Face's two files, so that transformers' AutoTokenizer gives the same ids: a BPE without
// merges over byte-level characters, whose vocabulary has each byte's character under the byte's own number.

import { type ByteTokenizerOptions, byteTokenizer } from "./byte.ts";
import { byteCharacter } from "./byte-level.ts";

/**
 * tokenizer.json and tokenizer_config.json of `byteTokenizer(options)`, as values for JSON.
 *
 * @throws as `byteTokenizer`
 * @example
 * ```ts
 * import { byteTokenizerFiles, huggingFaceTokenizer } from "longhand/formats";
 * const { tokenizer } = byteTokenizerFiles({ specialTokens: ["<eos>"] });
 * (await huggingFaceTokenizer(tokenizer)).encode("é!"); // => [195, 169, 33]
 * ```
 */
export function byteTokenizerFiles(options: ByteTokenizerOptions = {}): {
  readonly tokenizer: Record<string, unknown>;
  readonly config: Record<string, unknown>;
} {
  const bytes = byteTokenizer(options);
  const { vocabSize, bosToken, eosToken, padToken, addsBos, addsEos } = bytes;
  const tokenText = (id: number): string => bytes.tokenText(id);
  const special = Array.from({ length: vocabSize - 256 }, (_, i) => ({ id: 256 + i, content: tokenText(256 + i) }));
  const around = (id: number | null, added: boolean): readonly number[] => (added && id !== null ? [id] : []);
  const before = around(bosToken, addsBos);
  const after = around(eosToken, addsEos);
  const text = (id: number | null): string | null => (id === null ? null : tokenText(id));
  const vocab = Object.fromEntries([
    ...Array.from({ length: 256 }, (_, byte) => [byteCharacter(byte), byte]),
    ...special.map(({ id, content }) => [content, id]),
  ]);
  const sequence = (id: "A" | "B", type: number) => ({ Sequence: { id, type_id: type } });
  const piece = (id: number, type: number) => ({ SpecialToken: { id: text(id), type_id: type } });
  const template = (name: "A" | "B", type: number) => [
    ...before.map((id) => piece(id, type)),
    sequence(name, type),
    ...after.map((id) => piece(id, type)),
  ];
  const used = [...before, ...after];
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: special.map(({ id, content }) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
    post_processor:
      used.length === 0
        ? null
        : {
            type: "TemplateProcessing",
            single: template("A", 0),
            pair: [...template("A", 0), ...template("B", 1)],
            special_tokens: Object.fromEntries(
              used.map((id) => [text(id), { id: text(id), ids: [id], tokens: [text(id)] }]),
            ),
          },
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab,
      merges: [],
    },
  };
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    clean_up_tokenization_spaces: false,
    bos_token: text(bosToken),
    eos_token: text(eosToken),
    pad_token: text(padToken),
  };
  return { tokenizer, config };
}
