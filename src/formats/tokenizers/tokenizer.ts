// Text to token ids and back: the one interface of every tokenizer that a model may carry. Names follow Hugging Face;
// what a default does is what transformers does, so that ids agree with it.

export type TokenizerKind =
  /** One token a byte, for the project's own small models. */
  | "byte"
  /** tokenizer.json. */
  | "hugging-face"
  /** A SentencePiece .model: merges by score, or the best path under unigram log-probabilities. */
  | "sentencepiece-bpe"
  | "sentencepiece-unigram"
  /** What a GGUF file carries, by its `tokenizer.ggml.model`. */
  | "gguf-gpt2"
  | "gguf-llama"
  | "gguf-t5"
  | "gguf-gemma4"
  /** tokenizer.bin of llama2.c. */
  | "llama2.c";

export interface EncodeOptions {
  /** Put the tokens around the text that the model was trained with (BOS, EOS, a template's). Default true. */
  readonly addSpecial?: boolean;
  /**
   * Read the text of special tokens ("<|im_end|>", "</s>") as those tokens. Default true, as in transformers; false for
   * text that a stranger wrote. Added tokens that are not special are always recognised.
   */
  readonly parseSpecial?: boolean;
}

export interface DecodeOptions {
  /** Leave special tokens out. Default false: their text is written, as in transformers. */
  readonly skipSpecial?: boolean;
}

export interface StreamOptions extends DecodeOptions {
  /** Ids that stand before the first one that will be pushed; they are not written, but whether the next word keeps its
   *  space and whether a character is half done depends on them. */
  readonly after?: ArrayLike<number>;
}

/** Text of a growing sequence, piece by piece. What is written never ends inside a character. */
export interface TokenStream {
  /** The text that this token completes; may be empty. */
  push(id: number): string;
  /** What was held back: U+FFFD for the bytes of a character that never came whole. */
  end(): string;
}

export interface Tokenizer {
  readonly kind: TokenizerKind;
  /** Ids are 0 to vocabSize − 1. A model's embedding may have more rows, as padding. */
  readonly vocabSize: number;
  readonly bosToken: number | null;
  readonly eosToken: number | null;
  readonly unknownToken: number | null;
  readonly padToken: number | null;
  /** Tokens after which a model has nothing more to say: EOS, end of turn. */
  readonly endTokens: readonly number[];
  /** encode puts BOS before the text, EOS behind it, unless addSpecial is false. */
  readonly addsBos: boolean;
  readonly addsEos: boolean;
  /** Ids of a text. Lone surrogates are read as U+FFFD. */
  encode(text: string, options?: EncodeOptions): number[];
  /** Text of ids; bytes that are no UTF-8 become U+FFFD. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** decode, one token at a time. */
  stream(options?: StreamOptions): TokenStream;
  /** The token as the vocabulary writes it: "▁the", "Ġthe", "<0x0A>". */
  tokenText(id: number): string;
  /** The bytes that the token stands for inside a text: " the". */
  tokenBytes(id: number): Uint8Array;
  /** The id whose tokenText this is, or undefined. */
  tokenId(text: string): number | undefined;
  /** Control and unknown tokens: what decode leaves out with skipSpecial. */
  isSpecial(id: number): boolean;
}
