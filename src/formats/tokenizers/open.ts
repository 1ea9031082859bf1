// A path to its tokenizer, whatever the format: a folder with tokenizer.json or a SentencePiece model, a .gguf, a
// llama2.c model with its tokenizer beside it, or such a file itself. Node only.

import { FormatError } from "../bytes/format-error.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../bytes/json.ts";
import { openFile, withFile } from "../bytes/node-file.ts";
import { openGguf } from "../gguf/index.ts";
import { readLlama2cHeader } from "../llama2c/index.ts";
import { type AddedToken, addedToken } from "./added-tokens.ts";
import { byteTokenizer, byteTokenizerClass } from "./byte.ts";
import { ggufTokenizer } from "./gguf.ts";
import { huggingFaceTokenizer } from "./hugging-face/index.ts";
import { llama2cTokenizer } from "./llama2c.ts";
import { type SentencePieceOptions, sentencePieceTokenizer } from "./sentencepiece/index.ts";
import type { Tokenizer } from "./tokenizer.ts";

const expected =
  "a folder with tokenizer.json, tokenizer.model or spiece.model, such a file, a .gguf, or a llama2.c .bin";
const sentencePieceNames = ["tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"];
/** Gemma's tokenizer.json has 33 MB. */
const maxJsonBytes = 256 * 2 ** 20;
const maxModelBytes = 256 * 2 ** 20;

/**
 * Opens the tokenizer of a model.
 *
 * @param path a model's folder, `tokenizer.json`, a SentencePiece `.model`, a `.gguf`, a llama2.c model (with
 *   `tokN.bin`, N its vocabulary, or `tokenizer.bin` beside it), or a llama2.c tokenizer
 * @throws FormatError when there is none, naming what was looked for, and as the formats do
 */
export async function openTokenizer(path: string): Promise<Tokenizer> {
  const { stat, readdir } = await import("node:fs/promises");
  const { basename, dirname, join } = await import("node:path");
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new FormatError(path, `expected ${expected}, got ${error.code ?? error.message}`);
  });
  if (info.isDirectory()) return fromFolder(path);
  const file = basename(path);
  const folder = dirname(path);
  switch (file.slice(file.lastIndexOf(".") + 1).toLowerCase()) {
    case "gguf": {
      const header = await openGguf(path);
      // Metadata stand in the first part, whichever was named.
      return withFile(join(folder, header.parts[0]!.file), (source) => ggufTokenizer(source, header));
    }
    case "json":
      return file === "config.json" ? fromFolder(folder) : fromJson(path, await configIn(folder));
    case "model":
      return fromSentencePiece(path, await configIn(folder));
    case "safetensors":
      return fromFolder(folder);
    case "bin":
      return /^tok/.test(file) ? withFile(path, (source) => llama2cTokenizer(source)) : besideLlama2c(path);
    default:
      throw new FormatError(path, `expected ${expected}, got another kind of file`);
  }

  async function fromFolder(from: string): Promise<Tokenizer> {
    const files = await readdir(from);
    const config = await configIn(from);
    if (files.includes("tokenizer.json")) return fromJson(join(from, "tokenizer.json"), config);
    const model = sentencePieceNames.find((name) => files.includes(name));
    if (model !== undefined) return fromSentencePiece(join(from, model), config);
    if (config?.tokenizer_class === byteTokenizerClass)
      return fromByteConfig(join(from, "tokenizer_config.json"), config);
    const near = files.filter((name) => /\.(gguf|model|bin)$/.test(name) || /^(vocab|merges|tekken)\./.test(name));
    throw new FormatError(
      from,
      `expected ${["tokenizer.json", ...sentencePieceNames].join(", ")} in the folder, got ` +
        (near.length === 0 ? "no tokenizer" : `only ${near.slice(0, 5).join(", ")}`),
    );
  }

  async function configIn(from: string): Promise<JsonObject | undefined> {
    const at = join(from, "tokenizer_config.json");
    const present = await stat(at).then(
      (found) => found.isFile(),
      () => false,
    );
    if (!present) return undefined;
    const config = await readJson(at);
    if (!isJsonObject(config)) throw new FormatError(at, "expected an object, got another value");
    return config;
  }

  async function besideLlama2c(model: string): Promise<Tokenizer> {
    const { vocabSize } = await withFile(model, (source) => readLlama2cHeader(source));
    const wanted = [`tok${vocabSize}.bin`, "tokenizer.bin"];
    const files = await readdir(dirname(model));
    const found = wanted.find((name) => files.includes(name));
    if (found === undefined) {
      throw new FormatError(model, `expected ${wanted.join(" or ")} beside the model, got neither`);
    }
    return withFile(join(dirname(model), found), (source) => llama2cTokenizer(source, vocabSize));
  }
}

async function fromJson(path: string, config: JsonObject | undefined): Promise<Tokenizer> {
  const json = await readJson(path);
  return huggingFaceTokenizer(json, { name: "tokenizer.json", ...(config === undefined ? {} : { config }) });
}

async function readJson(path: string): Promise<JsonValue> {
  return withFile(path, async (source) => {
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

async function fromSentencePiece(path: string, config: JsonObject | undefined): Promise<Tokenizer> {
  const source = await openFile(path);
  try {
    if (source.size > maxModelBytes) {
      throw new FormatError(source.name, `expected at most ${maxModelBytes} bytes, got ${source.size}`);
    }
    const bytes = await source.read(0, source.size);
    return sentencePieceTokenizer(bytes, { name: source.name, ...sentencePieceSettings(config, source.name) });
  } finally {
    await source.close();
  }
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
