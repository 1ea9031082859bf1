// An export as a person reads it in a terminal, in English or Traditional Chinese: what the engine will compute, the
// memory of its cache, the command.

import { type Palette, plain, wrap } from "../chart/text.ts";
import { wrapWide } from "../doctor/text.ts";
import type { Language } from "../doctor/types.ts";
import { type ExportNote, exportNoteText } from "./notes.ts";
import type { EngineExport, ExportedGroup, ExportTarget, ExportVerification } from "./types.ts";
import { configJson } from "./words.ts";

const number = (x: number) => x.toLocaleString("en-US");

const engineNames: { readonly [T in ExportTarget]: string } = {
  transformers: "transformers",
  vllm: "vLLM",
  sglang: "SGLang",
  "llama.cpp": "llama.cpp",
  gguf: "GGUF",
  mlx: "mlx-lm",
  ollama: "Ollama",
};

/** How a language is said and folded. */
interface Speech {
  say(en: string, chinese: string): string;
  /** Lines that leave room for an indent. */
  fold(text: string, indent?: number): string[];
  note(note: ExportNote): string;
}

function speech(language: Language, width: number): Speech {
  const columns = Math.max(40, Math.min(width, 120));
  return {
    say: (en, chinese) => (language === "en" ? en : chinese),
    fold: (text, indent = 0) => (language === "en" ? wrap : wrapWide)(text, columns - indent),
    // What an engine's source says is told by its kind; the sentence itself is English.
    note: (note) =>
      language === "en" || note.values.detail === undefined
        ? exportNoteText(note, language)
        : `${exportNoteText(note, language)} ${note.values.detail}`,
  };
}

/** Lines of at most `width` columns; the commands stand whole, to be copied. */
export function exportText(
  made: EngineExport,
  palette: Palette = plain,
  width = 80,
  language: Language = "en",
): string {
  const spoken = speech(language, width);
  const { say, fold, note: said } = spoken;
  const lines: string[] = [];
  const { bold, dim } = palette;
  const length = number(made.length);
  const title = [scalingText(made, say), say(`${length} tokens`, `${length} 個 token`), versionText(made, say)];
  lines.push(`${bold(made.model)}  ${dim(title.join(" · "))}`);
  if (made.trainedLength !== null) {
    const trained = number(made.trainedLength);
    lines.push(say(`trained at ${trained} tokens`, `訓練長度是 ${trained} 個 token`));
  }
  lines.push("");
  for (const group of made.groups) lines.push(...groupLines(group, made, palette, spoken));
  if (made.nearest !== null) {
    const engine = engineNames[made.to];
    const nearest = said(made.nearest);
    lines.push(
      ...fold(
        say(
          `${made.to === "gguf" ? "a GGUF" : engine} has no words for this. Nearest: ${nearest}.`,
          `${engine} 無法表達這個設定。最接近的是 ${nearest}。`,
        ),
      ).map(palette.warn),
    );
  }
  const { memory } = made;
  const windowed = memory.groups.filter(({ tokens }) => tokens > 0 && tokens < made.length);
  const kept = windowed.map(({ layers, tokens }) =>
    say(
      `${layers.length} layers keep ${number(tokens)} tokens`,
      `${layers.length} 層只保留 ${number(tokens)} 個 token`,
    ),
  );
  const bytes = bytesText(memory.bytes);
  const each = memory.bytesPerNumber;
  lines.push(
    ...fold(
      say(
        `Key/value cache: ${bytes} a sequence of ${length} tokens, at ${each} bytes a number${["", ...kept].join("; ")}.`,
        `key 與 value 的快取：${length} 個 token 的序列要 ${bytes}，每個數 ${each} 個位元組${["", ...kept].join("；")}。`,
      ),
    ),
  );
  for (const note of made.notes) {
    const [first = "", ...rest] = fold(said(note), 2);
    lines.push(dim(`· ${first}`), ...rest.map((line) => dim(`  ${line}`)));
  }
  if (made.patch !== null && made.files.some(({ content }) => content === null)) {
    lines.push("", bold(say("Changes to the file", "檔案的變更")));
    for (const { key, value } of made.patch.metadata) {
      if (value !== null) lines.push(`  ${key} = ${typeof value === "string" ? JSON.stringify(value) : value}`);
    }
    for (const { name, values } of made.patch.tensors) {
      if (values !== null)
        lines.push(
          say(
            `  tensor ${name} = ${values.length} divisors from ${short(Math.min(...values))} to ${short(Math.max(...values))}`,
            `  張量 ${name} = ${values.length} 個除數，從 ${short(Math.min(...values))} 到 ${short(Math.max(...values))}`,
          ),
        );
    }
  }
  if (made.changes !== null) {
    lines.push("", bold(say("Changes to config.json", "config.json 的變更")), ...changeLines(made.changes, say));
  }
  if (made.commands.length > 0) {
    lines.push("", bold(say(made.commands.length === 1 ? "Command" : "Commands", "指令")), ...made.commands);
  } else {
    const none = say(
      `There is no command: ${made.to} computes nothing of this.`,
      `沒有指令可用：${made.to} 算不出這個設定。`,
    );
    lines.push("", palette.bad(none));
  }
  const { readFrom } = made.engine;
  const source = say(
    `What it computes is known from the source of ${readFrom}.`,
    `它會算出什麼，依據的是原始碼：${readFrom}。`,
  );
  lines.push("", ...fold(source).map(dim));
  return `${lines.join("\n")}\n`;
}

type Say = Speech["say"];

function groupLines(group: ExportedGroup, made: EngineExport, palette: Palette, { say, fold, note }: Speech): string[] {
  const { layers } = group;
  const some = layers.length === 1 ? say(`layer ${layers[0]}`, `第 ${layers[0]} 層`) : null;
  const where = group.layerType ?? some ?? say(`${layers.length} layers`, `${layers.length} 層`);
  if (group.unsupported !== null) {
    const why = note(group.unsupported);
    return fold(
      say(`${where}: ${made.to} does not compute this: ${why}.`, `${where}：${made.to} 算不出來。${why}`),
    ).map(palette.bad);
  }
  const factor = short(group.scoreFactor ?? 1, 7);
  const score = group.scoreFactor === 1 ? "" : say(`, attention scores × ${factor}`, `，注意力分數 × ${factor}`);
  if (group.exact) {
    const asked = askedText(made, say);
    const [first = "", ...rest] = fold(say(`${where}: exactly ${asked}${score}`, `${where}：正是${asked}${score}`), 2);
    return [`${palette.good("✓")} ${first}`, ...rest.map((line) => `  ${line}`)];
  }
  const off = percent(group.frequencyDifference ?? 0);
  const pair = group.frequencyPair;
  return fold(
    say(
      `✗ ${where}: other frequencies, at most ${off} off (pair ${pair})${score}`,
      `✗ ${where}：頻率不同，最多差 ${off}（第 ${pair} 對）${score}`,
    ),
  ).map(palette.bad);
}

function versionText({ to, engine: { version } }: EngineExport, say: Say): string {
  if (version === "any") return say(`for ${engineNames[to]}`, `給 ${engineNames[to]}`);
  if (to === "gguf") return say(`for a GGUF, as llama.cpp ${version} reads it`, `給 llama.cpp ${version} 讀的 GGUF`);
  return say(`for ${engineNames[to]} ${version}`, `給 ${engineNames[to]} ${version}`);
}

/** The scaling in a line: a dictionary by its type. */
function scalingText({ scaling }: EngineExport, say: Say): string {
  if (scaling === "as-is") return say("the file's own scaling", "檔案自己的縮放");
  if (!scaling.startsWith("{")) return scaling;
  const { rope_type, type } = JSON.parse(scaling) as Record<string, unknown>;
  const named = rope_type ?? type;
  return typeof named === "string" ? named : say("the scaling given", "所給的縮放");
}

function askedText(made: EngineExport, say: Say): string {
  if (made.scaling === "as-is") return say("the frequencies of the file", "檔案的頻率");
  // Of several groups, some may keep what the file says.
  return made.scaling.startsWith("{") || made.groups.length > 1
    ? say("the frequencies asked for", "所要求的頻率")
    : say(`the frequencies of ${made.scaling}`, ` ${made.scaling} 的頻率`);
}

/** One line a key; a part of the file, as text_config, by its path. */
function changeLines(changes: Readonly<Record<string, unknown>>, say: Say, path = ""): string[] {
  return Object.entries(changes).flatMap(([key, value]) => {
    const rotary = key === "rope_parameters" || key === "rope_scaling";
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !rotary) {
      return changeLines(value as Record<string, unknown>, say, `${path}${key}.`);
    }
    if (value === null) return [say(`  ${path}${key} is removed`, `  ${path}${key} 移除`)];
    // Lists of longrope are as long as a head has pairs.
    const text = configJson({ [key]: value }).slice(`{"${key}": `.length, -1);
    return [
      `  ${path}${key} = ${text.replace(/\[([^[\]]{80,})\]/g, (_, list: string) => say(`[${list.split(",").length} numbers]`, `[${list.split(",").length} 個數]`))}`,
    ];
  });
}

/** What `--verify` found. */
export function verificationText(
  verified: ExportVerification,
  palette: Palette = plain,
  width = 80,
  language: Language = "en",
): string {
  const { say, fold } = speech(language, width);
  const lines = [palette.bold(say(`Verified in ${verified.engine}`, `在 ${verified.engine} 驗證`))];
  lines.push(
    palette.dim(
      say(
        "  mean loss in nats at   ours     theirs   difference   unchanged file",
        "  平均損失（nats）       這裡     引擎     相差         未改的檔案",
      ),
    ),
  );
  for (const range of verified.ranges) {
    const difference = range.theirs - range.ours;
    const ok = Math.abs(difference) <= verified.tolerance;
    lines.push(
      `  ${`${number(range.from)}–${number(range.to)}`.padEnd(20)} ${range.ours.toFixed(4).padStart(8)} ${range.theirs.toFixed(4).padStart(8)}   ` +
        (ok ? palette.good : palette.bad)(`${difference < 0 ? "" : "+"}${difference.toFixed(4)}`) +
        `      ${range.unchanged.toFixed(4)}`,
    );
  }
  const { tolerance } = verified;
  lines.push(
    ...fold(
      verified.passed
        ? say(
            `The two agree to ${tolerance} nats: llama.cpp computes what was asked for.`,
            `兩者相差不到 ${tolerance} nats：llama.cpp 算的正是所要求的。`,
          )
        : say(
            `The two differ by more than ${tolerance} nats: do not use this export.`,
            `兩者相差超過 ${tolerance} nats：請不要使用這份匯出。`,
          ),
    ).map(verified.passed ? palette.good : palette.bad),
  );
  const last = verified.ranges.at(-1)!;
  if (Math.abs(last.unchanged - last.ours) < verified.tolerance) {
    lines.push(
      ...fold(
        say(
          "The unchanged file gives nearly the same losses here: this text does not tell the two apart.",
          "未改的檔案在這裡的損失幾乎一樣：這段文字分不出兩者。",
        ),
      ).map(palette.warn),
    );
  }
  return `${lines.join("\n")}\n`;
}

function bytesText(bytes: number): string {
  const [scale, unit] = bytes >= 2 ** 30 ? [2 ** 30, "GiB"] : bytes >= 2 ** 20 ? [2 ** 20, "MiB"] : [2 ** 10, "KiB"];
  return `${Number((bytes / scale).toPrecision(3))} ${unit}`;
}

function percent(share: number): string {
  return `${short(100 * share, 3)} %`;
}

function short(value: number, digits = 4): string {
  return String(Number(value.toPrecision(digits)));
}
