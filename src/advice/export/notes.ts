// What an export has to say beside its numbers, and why an engine computes nothing: a code, its values, and one sentence
// in English; the same in Traditional Chinese, by the code. What the sources of engines say (encodings/rope/dialects) is
// told by its kind in Chinese; its English sentence stays beside it, as `values.detail`.

import type { DialectNote, DialectNoteCode } from "../../encodings/rope/dialects/index.ts";
import type { Language } from "../doctor/types.ts";

type OwnCode =
  /** The strategy changes with the length; what was written does not. */
  | "fixed-table"
  | "factor-too-small"
  | "short-texts-too"
  | "checkpoint-not-gguf"
  | "gguf-not-checkpoint"
  | "no-own-table"
  | "betas-by-flags"
  | "flags-fall-short"
  | "parameters-alone"
  | "modelfile-length"
  | "ollama-own-engine"
  | "for-transformers-4"
  | "for-transformers-5"
  | "class-of-version-5"
  | "no-local-scaling"
  /** The form that stands in, and what is off. */
  | "nearest"
  /** Why nothing is computed: the engine's own error is `values.detail`. */
  | "engine-refuses"
  | "no-words"
  | "nothing-written";

export type ExportNoteCode = OwnCode | DialectNoteCode;

export interface ExportNote {
  readonly code: ExportNoteCode;
  readonly values: NoteValues;
  /** The sentence in English. */
  readonly message: string;
}

type NoteValues = Readonly<Record<string, string | number>>;
type Sentences = { readonly [L in Language]: (values: NoteValues) => string };

const said = (en: (values: NoteValues) => string, chinese: (values: NoteValues) => string): Sentences => ({
  en,
  "zh-TW": chinese,
});
const fixed = (en: string, chinese: string): Sentences =>
  said(
    () => en,
    () => chinese,
  );

/** Of a form that is not what was asked for: by how much, where something is off. */
const off = (values: NoteValues, angles: string, scores: string): string[] => [
  ...(values.radians === undefined ? [] : [angles]),
  ...(values.scores === undefined ? [] : [scores]),
];

const own: { readonly [C in OwnCode]: Sentences } = {
  "fixed-table": said(
    ({ ropeType, length }) =>
      `${ropeType} changes its table with the length; this engine gets the one for ${length} tokens, at every length.`,
    ({ ropeType, length }) =>
      `${ropeType} 的頻率表會隨長度改變；這個引擎拿到的是 ${length} 個 token 的那一份，不論多長都用它。`,
  ),
  "factor-too-small": said(
    ({ factor, reach, length }) =>
      `Factor ${factor} reaches ${reach} tokens, not ${length}: angles beyond are new to the model.`,
    ({ factor, reach, length }) =>
      `倍率 ${factor} 只到 ${reach} 個 token，到不了 ${length}：更遠的角度，模型從沒見過。`,
  ),
  "short-texts-too": fixed(
    "The table is fixed: short texts are read with it too, which costs quality there (vllm-project/vllm#18728).",
    "這份表是固定的：短文也用它來讀，短文的品質會因此變差（vllm-project/vllm#18728）。",
  ),
  "checkpoint-not-gguf": said(
    ({ engine }) =>
      `The model given is a GGUF; ${engine} reads the Hugging Face checkpoint that it was made from: put that in the place of MODEL.`,
    ({ engine }) => `給的模型是 GGUF；${engine} 讀的是它當初轉檔前的 Hugging Face 模型：請把那一份放到 MODEL 的位置。`,
  ),
  "gguf-not-checkpoint": fixed(
    "The model is not a GGUF: put the file made from it in the place of MODEL.gguf.",
    "這個模型不是 GGUF：請把它轉出來的檔案放到 MODEL.gguf 的位置。",
  ),
  "no-own-table": said(
    ({ architecture }) =>
      `llama.cpp does not read rope_freqs.weight for ${architecture}, so no table of one's own can be written.`,
    ({ architecture }) => `llama.cpp 對 ${architecture} 不讀 rope_freqs.weight，所以無法寫入自訂的頻率表。`,
  ),
  "betas-by-flags": fixed(
    "llama.cpp reads YaRN's betas from its flags alone here: they are on the command line.",
    "這種架構的 YaRN beta 值，llama.cpp 只從旗標讀：已經寫在指令裡。",
  ),
  "flags-fall-short": fixed(
    "Flags cannot say every table: --to gguf writes one into a copy of the file where the architecture reads it.",
    "旗標表達不了所有的表：架構若會讀，選「gguf」會把表寫進檔案的複本。",
  ),
  "parameters-alone": fixed(
    "Written as rope_parameters alone: the class has no older settings.",
    "只寫成 rope_parameters：這個類別沒有舊式的設定。",
  ),
  "modelfile-length": fixed(
    "A Modelfile sets the length alone (num_ctx); the scaling stands in the GGUF. Without num_ctx Ollama reads fewer tokens, and cuts longer prompts.",
    "Modelfile 只設定長度（num_ctx），縮放寫在 GGUF 裡。沒有 num_ctx 的話，Ollama 讀的 token 比較少，較長的提示會被截斷。",
  ),
  "ollama-own-engine": said(
    ({ architecture }) =>
      `Ollama runs ${architecture} in its own engine, whose model.go may read rope.freq_base and not rope.scaling: verify there. Verified here is llama.cpp.`,
    ({ architecture }) =>
      `Ollama 用自己的引擎跑 ${architecture}，它的 model.go 可能只讀 rope.freq_base、不讀 rope.scaling：請在那裡驗證。這裡驗證過的是 llama.cpp。`,
  ),
  "for-transformers-4": fixed(
    "Written for SGLang on transformers 4; later versions read rope_parameters.",
    "寫給搭配 transformers 4 的 SGLang；之後的版本讀 rope_parameters。",
  ),
  "for-transformers-5": fixed(
    "Written for SGLang on transformers 5; with transformers 4 it reads rope_scaling: --engine-version 0.5.9 writes that.",
    "寫給搭配 transformers 5 的 SGLang；搭配 transformers 4 時它讀 rope_scaling：指令加上 --engine-version 0.5.9 就會寫成那樣。",
  ),
  "class-of-version-5": fixed(
    "the class came with version 5: version 4 has no settings for it",
    "這個類別是第 5 版才有的：第 4 版沒有它的設定。",
  ),
  "no-local-scaling": fixed("version 4 has no scaling for sliding layers", "第 4 版沒有滑動視窗層的縮放設定。"),
  nearest: said(
    (values) =>
      `${values.deaf === undefined ? "" : `flags do not reach the sliding layers of ${values.deaf}: `}${formName(values.form, "en")}: ${off(
        values,
        `angles are off by up to ${values.radians} rad (pair ${values.pair}) at position ${values.position}`,
        `scores are multiplied by ${values.scores} instead of ${values.asked}`,
      ).join(", ")}`,
    (values) =>
      `${values.deaf === undefined ? "" : `旗標影響不到 ${values.deaf} 的滑動視窗層：`}${formName(values.form, "zh-TW")}：${off(
        values,
        `在位置 ${values.position}，角度最多差 ${values.radians} 弧度（第 ${values.pair} 對）`,
        `分數乘上 ${values.scores}，要求的是 ${values.asked}`,
      ).join("；")}`,
  ),
  "engine-refuses": said(
    ({ detail }) => String(detail),
    () => "引擎自己不收這組設定。",
  ),
  "no-words": fixed("the engine has no words for it", "這個引擎沒有辦法表達它。"),
  "nothing-written": fixed("nothing is written", "什麼都沒有寫出來。"),
};

/** Forms whose name is a sentence; others are called what a configuration calls them, as yarn:4. */
const formNames: Readonly<Record<string, Readonly<Record<Language, string>>>> = {
  /** Where flags do not reach. */
  "as-in-the-file": { en: "they keep the file's settings", "zh-TW": "那些層沿用檔案的設定" },
  /** Can say any table. */
  "as-lists": { en: "the table as longrope's lists", "zh-TW": "以 longrope 的兩份清單寫成的表" },
};

function formName(form: string | number | undefined, language: Language): string {
  const name = String(form);
  return Object.hasOwn(formNames, name) ? formNames[name]![language] : name;
}

const ofDialects: { readonly [C in DialectNoteCode]: (key: string | null) => string } = {
  "key-ignored": (key) => `引擎不讀 ${key ?? "這項設定"}。`,
  "type-ignored": () => "引擎不認得這個類型，也不報錯，照沒有縮放來算。",
  "formula-differs": () => "引擎在這個名稱下用的是另一個公式。",
  "fixed-at-start": () => "用哪一份表，引擎啟動時就定了，不隨序列的長度改變。",
  history: () => "結果會受之前處理過的序列影響。",
  "table-too-short": () => "cos 與 sin 的表，比引擎肯收的位置還短。",
  "reached-by": (key) => `${key ?? "這項設定"}要換一種寫法，引擎才讀得到。`,
  assumed: (key) => `設定裡沒有寫${key === null ? "" : ` ${key}`}，這裡採用一個假設。`,
};

export function exportNote(code: OwnCode, values: NoteValues = {}): ExportNote {
  return { code, values, message: own[code].en(values) };
}

/** A note of a dialect; its source stays in the dialect. */
export function noteOfDialect({ code, key, message }: DialectNote): ExportNote {
  const values = { ...(key === null ? {} : { key }), detail: message };
  return { code, values, message: key === null ? message : `${key}: ${message}` };
}

/** The first of each sentence. */
export function distinctNotes(notes: readonly ExportNote[]): ExportNote[] {
  return [...new Map(notes.map((note) => [note.message, note])).values()];
}

/**
 * A note as a sentence of a language. In Chinese, what an engine's source says is told by its kind; `values.detail` is the
 * English sentence.
 *
 * @example
 * ```ts
 * import { exportConfiguration, exportNoteText, parseStrategy } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const config = { model_type: "llama", hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 1,
 *   max_position_embeddings: 4096, rope_theta: 10000 };
 * const options = { to: "vllm", scaling: parseStrategy("yarn:2"), length: 16384 };
 * const [note] = exportConfiguration(describeHuggingFace(config), options).notes;
 * note.code; // => "factor-too-small"
 * exportNoteText(note, "zh-TW"); // => "倍率 2 只到 8192 個 token，到不了 16384：更遠的角度，模型從沒見過。"
 * ```
 */
export function exportNoteText({ code, values, message }: ExportNote, language: Language): string {
  if (language === "en") return message;
  if (Object.hasOwn(own, code)) return own[code as OwnCode]["zh-TW"](values);
  return ofDialects[code as DialectNoteCode](values.key === undefined ? null : String(values.key));
}
