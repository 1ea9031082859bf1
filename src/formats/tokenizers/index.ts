// Text to token ids and back, for every format that a model's tokenizer comes in.

export { type ByteTokenizerOptions, byteTokenizer, byteTokenizerConfig } from "./byte.ts";
export { byteTokenizerFiles } from "./byte-hugging-face.ts";
export { ggufTokenizer } from "./gguf.ts";
export { type HuggingFaceTokenizerOptions, huggingFaceTokenizer } from "./hugging-face/index.ts";
export { llama2cTokenizer } from "./llama2c.ts";
export { openTokenizer } from "./open.ts";
export { preTokenizerNames } from "./pre-tokenizers.ts";
export { type SentencePieceOptions, sentencePieceTokenizer } from "./sentencepiece/index.ts";
export type {
  DecodeOptions,
  EncodeOptions,
  StreamOptions,
  Tokenizer,
  TokenizerKind,
  TokenStream,
} from "./tokenizer.ts";
