// A model's files to its tokenizer, whatever the format: a folder with tokenizer.json or a SentencePiece model, a .gguf, a
// llama2.c model with its tokenizer beside it, or such a file itself.

import { FormatError } from "../bytes/format-error.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../bytes/json.ts";
import { readGguf } from "../gguf/index.ts";
import { readLlama2cHeader } from "../llama2c/index.ts";
import { extensionOf, type ModelFiles, type ModelSource, modelFilesOf, opened } from "../model-files.ts";
import { type AddedToken, addedToken } from "./added-tokens.ts";
import { byteTokenizer, byteTokenizerClass } from "./byte.ts";
import { ggufTokenizer } from "./gguf.ts";
import { huggingFaceTokenizer } from "./hugging-face/index.ts";
import { llama2cTokenizer } from "./llama2c.ts";
import { type SentencePieceOptions, sentencePieceTokenizer } from "./sentencepiece/index.ts";
import type { Tokenizer } from "./tokenizer.ts";

const expected =
  "a folder with tokenizer.json, tokenizer.model or spiece.model, such a file, a .gguf, or a llama2.c .bin";
const configName = "tokenizer_config.json";
const sentencePieceNames = ["tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"];
/** Gemma's tokenizer.json has 33 MB. */
const maxJsonBytes = 256 * 2 ** 20;
const maxModelBytes = 256 * 2 ** 20;

/**
 * Opens the tokenizer of a model.
 *
 * @param model a model's folder, `tokenizer.json`, a SentencePiece `.model`, a `.gguf`, a llama2.c model (with
 *   `tokN.bin`, N its vocabulary, or `tokenizer.bin` beside it), or a llama2.c tokenizer; or the files of such a model
 * @throws FormatError when there is none, naming what was looked for, and as the formats do
 */
export async function openTokenizer(model: ModelSource): Promise<Tokenizer> {
  const files = await modelFilesOf(model, expected);
  const { file } = files;
  if (file === null) return fromFolder(files);
  switch (extensionOf(file)) {
    case "gguf":
      return opened(files, file, async (given) => {
        const header = await readGguf(given, files.open);
        // Metadata stand in the first part, whichever was named.
        return opened(files, header.parts[0]!.file, (source) => ggufTokenizer(source, header));
      });
    case "json":
      return file === "config.json" ? fromFolder(files) : fromJson(files, file, await configOf(files));
    case "model":
      return fromSentencePiece(files, file, await configOf(files));
    case "safetensors":
      return fromFolder(files);
    case "bin":
      return /^tok/.test(file) ? opened(files, file, (source) => llama2cTokenizer(source)) : besideLlama2c(files, file);
    default:
      throw new FormatError(files.path, `expected ${expected}, got another kind of file`);
  }
}

async function fromFolder(files: ModelFiles): Promise<Tokenizer> {
  const names = await files.list();
  const config = await configOf(files);
  if (names.includes("tokenizer.json")) return fromJson(files, "tokenizer.json", config);
  const model = sentencePieceNames.find((name) => names.includes(name));
  if (model !== undefined) return fromSentencePiece(files, model, config);
  if (config?.tokenizer_class === byteTokenizerClass) return fromByteConfig(configName, config);
  const near = names.filter((name) => /\.(gguf|model|bin)$/.test(name) || /^(vocab|merges|tekken)\./.test(name));
  throw new FormatError(
    files.path,
    `expected ${["tokenizer.json", ...sentencePieceNames].join(", ")} in the folder, got ` +
      (near.length === 0 ? "no tokenizer" : `only ${near.slice(0, 5).join(", ")}`),
  );
}

async function configOf(files: ModelFiles): Promise<JsonObject | undefined> {
  if (!(await files.list()).includes(configName)) return undefined;
  const config = await readJson(files, configName);
  if (!isJsonObject(config)) throw new FormatError(configName, "expected an object, got another value");
  return config;
}

async function besideLlama2c(files: ModelFiles, model: string): Promise<Tokenizer> {
  const { vocabSize } = await opened(files, model, (source) => readLlama2cHeader(source));
  const wanted = [`tok${vocabSize}.bin`, "tokenizer.bin"];
  const names = await files.list();
  const found = wanted.find((name) => names.includes(name));
  if (found === undefined) {
    throw new FormatError(files.path, `expected ${wanted.join(" or ")} beside the model, got neither`);
  }
  return opened(files, found, (source) => llama2cTokenizer(source, vocabSize));
}

async function fromJson(files: ModelFiles, file: string, config: JsonObject | undefined): Promise<Tokenizer> {
  const json = await readJson(files, file);
  return huggingFaceTokenizer(json, { name: "tokenizer.json", ...(config === undefined ? {} : { config }) });
}

async function readJson(files: ModelFiles, file: string): Promise<JsonValue> {
  return opened(files, file, async (source) => {
    if (source.size > maxJsonBytes) {
      throw new FormatError(source.name, `expected at most ${maxJsonBytes} bytes, got ${source.size}`);
    }
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await source.read(0, source.size));
    } catch (error) {
      if (error instanceof FormatError) throw error;
      throw new FormatError(source.name, "expected valid UTF-8, got other bytes");
    }
    return parseJson(text, source.name);
  });
}

async function fromSentencePiece(files: ModelFiles, file: string, config: JsonObject | undefined): Promise<Tokenizer> {
  return opened(files, file, async (source) => {
    if (source.size > maxModelBytes) {
      throw new FormatError(source.name, `expected at most ${maxModelBytes} bytes, got ${source.size}`);
    }
    const bytes = await source.read(0, source.size);
    return sentencePieceTokenizer(bytes, { name: source.name, ...sentencePieceSettings(config, source.name) });
  });
}

/** What tokenizer_config.json adds to a .model: what stands around a text, and tokens beyond the pieces. */
function sentencePieceSettings(config: JsonObject | undefined, file: string): SentencePieceOptions {
  if (config === undefined) return {};
  const flag = (key: string): boolean | undefined => {
    const value = config[key];
    if (value === undefined || value === null || typeof value === "boolean") return value ?? undefined;
    throw new FormatError("tokenizer_config.json", `expected ${key} to be true or false, got ${JSON.stringify(value)}`);
  };
  const addBos = flag("add_bos_token");
  const addEos = flag("add_eos_token");
  const { extra_ids: sentinels = 0, added_tokens_decoder: listed = {} } = config;
  if (typeof sentinels !== "number" || !Number.isInteger(sentinels) || sentinels < 0 || sentinels > 65_536) {
    throw new FormatError(
      "tokenizer_config.json",
      `expected extra_ids from 0 to 65536 for ${file}, got ${JSON.stringify(sentinels)}`,
    );
  }
  if (!isJsonObject(listed)) {
    throw new FormatError("tokenizer_config.json", "expected added_tokens_decoder to be an object, got another value");
  }
  const addedTokens = Object.entries(listed).map(([id, token]): AddedToken => {
    if (!/^\d{1,7}$/.test(id) || !isJsonObject(token) || typeof token.content !== "string") {
      throw new FormatError(
        "tokenizer_config.json",
        `expected added_tokens_decoder[${JSON.stringify(id)}] to be a token with its content, got another value`,
      );
    }
    return {
      ...addedToken(Number(id), token.content, token.special === true),
      stripLeft: token.lstrip === true,
      stripRight: token.rstrip === true,
      singleWord: token.single_word === true,
    };
  });
  return {
    ...(addBos === undefined ? {} : { addBos }),
    ...(addEos === undefined ? {} : { addEos }),
    sentinels,
    addedTokens,
  };
}

function fromByteConfig(path: string, config: JsonObject): Tokenizer {
  const { special_tokens: specialTokens, add_bos_token: addBos, add_eos_token: addEos } = config;
  const isText = (value: JsonValue): value is string => typeof value === "string";
  if (!Array.isArray(specialTokens) || !specialTokens.every(isText)) {
    throw new FormatError(path, "expected special_tokens to be an array of strings, got another value");
  }
  if (typeof addBos !== "boolean" || typeof addEos !== "boolean") {
    throw new FormatError(path, "expected add_bos_token and add_eos_token to be true or false, got other values");
  }
  try {
    return byteTokenizer({ specialTokens, addBos, addEos });
  } catch (error) {
    throw new FormatError(path, (error as Error).message);
  }
}
