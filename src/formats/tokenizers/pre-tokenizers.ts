// How byte-level tokenizers cut a text into words before they merge, by the name that GGUF files give it
// (`tokenizer.ggml.pre`). Names and their settings are llama.cpp's (src/llama-vocab.cpp); the expressions are those of
// the models' own tokenizer.json, which llama.cpp in part approximates because std::regex knows no Unicode classes.
// White space is Unicode's White_Space: JavaScript's \s has U+FEFF more and U+0085 less.

import { splitByPattern } from "./split.ts";

/** Cuts a piece into smaller ones; both what matches and what lies between stays. */
export type PreTokenizerStep = RegExp | ((piece: string) => readonly string[]);

export interface PreTokenizer {
  readonly steps: readonly PreTokenizerStep[];
  /** A word that is a token is not merged. */
  readonly ignoreMerges: boolean;
  /** What `tokenizer.ggml.add_bos_token` means when it is absent. */
  readonly addBos: boolean;
}

const space = "\\p{White_Space}";
const notSpace = "\\P{White_Space}";
/** Trailing white space but its last character, which goes with the word behind it; then the rest. */
const spaces = `${space}+(?!${notSpace})|${space}+`;
const newlines = `${space}*[\\r\\n]+`;
const contractions = "'(?:[sdmt]|ll|ve|re)";
/** Case folds as Unicode has it: U+017F is a small s. */
const anyContractions = "'(?:[sS\\u017f]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])";
const notLetterNumber = "[^\\r\\n\\p{L}\\p{N}]";
const letters = `${notLetterNumber}?\\p{L}+`;
const symbols = ` ?[^${space}\\p{L}\\p{N}]+`;

const alternatives = (...all: string[]): RegExp => new RegExp(all.join("|"), "gu");

const gpt2 = alternatives(contractions, " ?\\p{L}+", " ?\\p{N}+", symbols, spaces);
/** GPT-4's shape: `digits` says how many digits a word has. */
const gpt4 = (digits: string): RegExp =>
  alternatives(anyContractions, letters, digits, `${symbols}[\\r\\n]*`, newlines, spaces);
/** GPT-4o's shape: words begin anew at a capital letter. */
const byCase = (contraction: string, digits: string, symbolTail: string, exclude = ""): RegExp => {
  const upper = `(?:${exclude}[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}])`;
  const lower = `(?:${exclude}[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}])`;
  const before = `${notLetterNumber}?`;
  return alternatives(
    ...(exclude === "" ? [] : ["\\p{Script=Han}+"]),
    `${before}${upper}*${lower}+${contraction}`,
    `${before}${upper}+${lower}*${contraction}`,
    digits,
    `${symbols}${symbolTail}`,
    newlines,
    spaces,
  );
};
const gpt4o = byCase(`(?:${anyContractions})?`, "\\p{N}{1,3}", "[\\r\\n/]*");

const numbers = /\p{N}+/gu;
const digit = /\p{N}/gu;
const threeAsciiDigits = /[0-9][0-9][0-9]/gu;
const upToThreeDigits = /\p{N}{1,3}/gu;
const newline = /[\r\n]/gu;
const lines = /[^\n]+|\n+/gu;

const kana = "\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff";
/** DeepSeek V3 and after: ASCII punctuation takes the letters behind it along. */
const deepSeekWords = (tail: string): RegExp =>
  alternatives(
    "[!-\\/:-@\\[-`{-~][A-Za-z]+",
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
    ` ?[\\p{P}\\p{S}]+${tail}`,
    spaces,
  );
const deepSeekChinese = /[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+/gu;
/** Cased letters, without the scripts that DeepSeek's list leaves out. */
const deepSeekLetters = new RegExp(
  `${space}?(?:(?![\\u0560-\\u0588\\u10c7-\\u10ff\\u1c80-\\u1c8f\\u2d00-\\u2d2f\\ua790-\\ua7ff\\uab30-\\uab6f` +
    "\\u{10570}-\\u{105bf}\\u{10d50}-\\u{10d8f}\\u{16e40}-\\u{16eff}\\u{1d400}-\\u{1d7cb}\\u{1df00}-\\u{1dfff}])" +
    "[\\p{Lu}\\p{Ll}\\p{Lt}])+",
  "gu",
);

/** Runs of digits in threes, counted from the right: 12345 is 12 345. With `wholeWord`, only runs that end a word. */
function digitsFromRight(run: RegExp, wholeWord: boolean): (piece: string) => readonly string[] {
  const inWord = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]/u;
  return (piece) => {
    const out: string[] = [];
    let done = 0;
    for (const match of piece.matchAll(run)) {
      const end = match.index + match[0].length;
      if (wholeWord && inWord.test(piece.slice(end, end + 2))) continue;
      const digits = [...match[0]];
      if (match.index > done) out.push(piece.slice(done, match.index));
      for (let at = 0; at < digits.length; ) {
        const next = at + ((digits.length - at) % 3 || 3);
        out.push(digits.slice(at, next).join(""));
        at = next;
      }
      done = end;
    }
    if (done < piece.length) out.push(piece.slice(done));
    return out;
  };
}

const ideographs =
  "[\\u4e00-\\u9fff\\u3400-\\u4dbf\\uf900-\\ufaff\\u3040-\\u309f\\u30a0-\\u30ff\\uff65-\\uff9f\\u2f00-\\u2fdf" +
  "\\u0e00-\\u0e7f\\u0e80-\\u0eff\\u1780-\\u17ff\\u1000-\\u109f\\uaa60-\\uaa7f\\ua9e0-\\ua9ff\\uac00-\\ud7af\\u1100-\\u11ff]+";
const bloom = new RegExp(` ?[^()|${space}.,!?…。，、।۔،]+`, "gu");

const expressions = {
  default: [/[\p{P}$+<=>^~|]+/gu, gpt2, numbers, threeAsciiDigits],
  gpt2: [gpt2],
  falcon: [/[\p{P}$+<=>^~|`]+/gu, gpt2, threeAsciiDigits],
  digits: [digit, gpt2],
  llama3: [gpt4("\\p{N}{1,3}")],
  qwen2: [gpt4("\\p{N}")],
  qwen35: [
    alternatives(
      anyContractions,
      `${notLetterNumber}?[\\p{L}\\p{M}]+`,
      "\\p{N}",
      ` ?[^${space}\\p{L}\\p{M}\\p{N}]+[\\r\\n]*`,
      newlines,
      spaces,
    ),
  ],
  jais2: [
    alternatives(
      anyContractions,
      letters,
      "\\p{N}{1,3}",
      `${symbols}[\\r\\n]*`,
      newlines,
      ...[512, 256, 128, 64, 32, 16, 8, 4].map((count) => `${space}{${count}}(?!${notSpace})`),
      `${space}{1,2}(?!${notSpace})`,
      space,
    ),
  ],
  deepseekLlm: [
    newline,
    deepSeekLetters,
    // From ":" to "~" as the list has it, letters included.
    new RegExp(`${space}?[!-\\/:-~！-／：-～‘-‟　-。]+`, "gu"),
    new RegExp(`${space}+$`, "gu"),
    deepSeekChinese,
    numbers,
  ],
  deepseekCoder: [
    newline,
    new RegExp(`${space}?\\p{L}+`, "gu"),
    new RegExp(`${space}?\\p{P}+`, "gu"),
    deepSeekChinese,
    digit,
  ],
  deepseek3: [upToThreeDigits, new RegExp(`[${kana}]+`, "gu"), deepSeekWords(`[\\r\\n]*|${newlines}`)],
  spark: [upToThreeDigits, new RegExp(`[${kana}]+`, "gu"), deepSeekWords("|[\\r\\n]"), digit],
  youtu: [
    new RegExp(`[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，\\u3001-\\u303f\\ufe30-\\ufe4f]+|[ㄅ-ㄯ]+|[${kana}]+`, "gu"),
    byCase(`(?:${anyContractions})?`, "\\p{N}", "[\\r\\n/]*"),
  ],
  bloom: [bloom],
  viking: [bloom, digit],
  tekken: [byCase("", "\\p{N}", "[\\r\\n/]*")],
  gpt4o: [gpt4o],
  tinyAya: [digitsFromRight(/\p{Nd}+/gu, true), gpt4o],
  kimi: [byCase(`(?:${anyContractions})?`, "\\p{N}{1,3}", "[\\r\\n]*", "(?!\\p{Script=Han})")],
  chameleon: [/<sentinel:[0-9]+>/gu, /IMGIMG[A-I]{1,4}Z/gu, /[\t\n]| {4}| {2}/gu, digit, /[\p{P}!-/:-@[-`{-~]/gu, gpt2],
  superBpe: [numbers, digitsFromRight(/\p{Nd}+/gu, false)],
  bailing: [
    alternatives(
      "'(?:[sS\\u017fdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])",
      letters,
      "\\p{N}",
      `${symbols}[\\r\\n]*`,
      `${space}*[\\r\\n]`,
      spaces,
    ),
  ],
  seedCoder: [alternatives(anyContractions, letters, "\\p{N}", ` ?[^${space}\\p{L}\\p{N}\\r\\n]+`, newlines, spaces)],
  ufakzeka: [alternatives(letters, "\\p{N}", `${symbols}[\\r\\n]*`, newlines, spaces)],
  afmoe: [digitsFromRight(numbers, false), new RegExp(ideographs, "gu"), deepSeekWords(`[\\r\\n]*|${newlines}`)],
  laguna: [lines, gpt4("\\p{N}")],
  exaoneMoe: [
    alternatives(
      anyContractions,
      `${notLetterNumber}?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+`,
      "\\p{N}",
      `${symbols}[\\r\\n/]?`,
      `${space}*[\\r\\n]`,
      spaces,
    ),
  ],
  minicpm5: [upToThreeDigits, gpt4("\\p{N}+")],
  /** SentencePiece's way in a list of merges: no words but lines. */
  lines: [lines],
} as const satisfies Record<string, readonly PreTokenizerStep[]>;

type Expression = keyof typeof expressions;

const names: Readonly<Record<Expression, readonly string[]>> = {
  default: ["default"],
  gpt2: [
    ...["gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de", "jina-v2-code"],
    ...["roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "mpt", "olmo", "jais", "trillion"],
    ...["granite-docling", "exaone4"],
  ],
  falcon: ["falcon"],
  digits: ["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"],
  llama3: [
    ...["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"],
    ...["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"],
  ],
  qwen2: [
    ...["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "megrez", "solar-open", "grok-2"],
  ],
  qwen35: ["qwen35"],
  jais2: ["jais-2"],
  deepseekLlm: ["deepseek-llm"],
  deepseekCoder: ["deepseek-coder"],
  deepseek3: ["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
  spark: ["spark2_5"],
  youtu: ["youtu"],
  bloom: ["bloom", "poro-chat", "gpt3-finnish"],
  viking: ["viking"],
  tekken: ["tekken"],
  gpt4o: ["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2", "granite-embed-multi-97m"],
  tinyAya: ["tiny_aya", "cohere2moe"],
  kimi: ["kimi-k2"],
  chameleon: ["chameleon"],
  superBpe: ["superbpe"],
  bailing: ["bailingmoe", "bailingmoe2", "llada-moe"],
  seedCoder: ["seed-coder"],
  ufakzeka: ["ufakzeka"],
  afmoe: ["afmoe"],
  laguna: ["laguna"],
  exaoneMoe: ["exaone-moe"],
  minicpm5: ["minicpm5"],
  lines: ["gemma4", "granite-embed-multi-311m", "sarvam-moe"],
};

const wholeWords = new Set([
  ...names.llama3.filter((name) => !["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"].includes(name)),
  ...["minicpm5", "youtu", "tekken", "granite-embed-multi-97m"],
]);
const withBos = new Set([
  ...names.llama3.filter((name) => !["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"].includes(name)),
  ...["tekken", "chameleon", "gemma4", "granite-embed-multi-311m"],
]);

const byName: ReadonlyMap<string, PreTokenizer> = new Map(
  Object.entries(names).flatMap(([expression, aliases]) =>
    aliases.map((name): [string, PreTokenizer] => [
      name,
      {
        steps: expressions[expression as Expression],
        ignoreMerges: wholeWords.has(name),
        addBos: withBos.has(name),
      },
    ]),
  ),
);

/** Every name of a pre-tokenizer that is known. */
export const preTokenizerNames: readonly string[] = [...byName.keys()];

export function preTokenizerNamed(name: string): PreTokenizer | undefined {
  return byName.get(name);
}

/** The words of a text: each step cuts the pieces of the one before it. */
export function splitWords(text: string, steps: readonly PreTokenizerStep[], onWord: (word: string) => void): void {
  const step = steps[0];
  if (step === undefined) {
    onWord(text);
    return;
  }
  const rest = steps.slice(1);
  const next = rest.length === 0 ? onWord : (piece: string) => splitWords(piece, rest, onWord);
  if (step instanceof RegExp) splitByPattern(text, step, next);
  else for (const piece of step(text)) next(piece);
}
