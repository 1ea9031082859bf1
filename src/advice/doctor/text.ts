// A diagnosis for people, in the manner of inspect: one paragraph a finding, in English or Traditional Chinese.

import { type Palette, plain, wrap } from "../chart/text.ts";
import type { Diagnosis, DoctorFinding, Language } from "./types.ts";

interface TextOptions {
  readonly palette?: Palette;
  /** Columns. */
  readonly width?: number;
  readonly language?: Language;
  /** What the diagnosis is called; the model's name when absent. */
  readonly name?: string;
  /** Notes too; true when absent. */
  readonly notes?: boolean;
}

const indent = 9;

/** The diagnosis as lines of at most `width` columns. */
export function doctorText(diagnosis: Diagnosis, options: TextOptions = {}): string {
  const { palette = plain, width = 80, language = "en", notes = true } = options;
  const columns = Math.max(40, Math.min(width, 120));
  const say = (en: string, chinese: string) => (language === "en" ? en : chinese);
  const { model, engine, engineVersion, target, findings } = diagnosis;
  const title = [
    model === null ? say("no model that can be read", "讀不出模型") : model.modelType,
    ...(engine === null ? [] : [`${engine} ${engineVersion ?? ""}`.trim()]),
    ...(target === null
      ? []
      : [say(`for ${target.toLocaleString("en-US")} tokens`, `要讀 ${target.toLocaleString("en-US")} 個 token`)]),
  ];
  const lines = [
    `${palette.bold(options.name ?? model?.name ?? "config.json")}  ${palette.dim(title.join(" · "))}`,
    "",
  ];
  const shown = findings.filter(({ severity }) => notes || severity !== "note");
  for (const finding of shown) lines.push(...findingLines(finding, palette, columns, language), "");
  lines.push(summary(findings, language));
  return `${lines.join("\n")}\n`;
}

function findingLines(finding: DoctorFinding, palette: Palette, columns: number, language: Language): string[] {
  const { severity, code, where, references } = finding;
  const words = { error: ["error", "錯誤"], warning: ["warning", "警告"], note: ["note", "注意"] } as const;
  const word = words[severity][language === "en" ? 0 : 1];
  const mark = { error: palette.bad, warning: palette.warn, note: palette.dim }[severity];
  const padded = word + " ".repeat(indent - displayWidth(word));
  const text = paragraph(finding, language);
  const fold = (one: string) => (language === "en" ? wrap(one, columns - indent) : wrapWide(one, columns - indent));
  return [
    `${mark(padded)}${palette.bold(code)}  ${where}`,
    ...fold(text).map((line) => " ".repeat(indent) + line),
    ...references.slice(0, 2).map((reference) => " ".repeat(indent) + palette.dim(reference)),
  ];
}

function paragraph({ code, got, expected, why, fix, chinese }: DoctorFinding, language: Language): string {
  // Where a reader had to assume something, it is no expectation of the file.
  const isAssumed = /(^assumed-|-assumed$|^class-default$|^class-preset$|^head-dim-computed$)/.test(code);
  const stands = got === null || got === undefined ? "" : shown(got);
  if (language === "en") {
    const word = isAssumed ? "assumed" : "expected";
    const first = stands === "" ? `${word} ${expected}` : `${stands}; ${word} ${expected}`;
    return [first, why, fix].filter(Boolean).map(sentence).join(" ");
  }
  // What a reader says is English; of it only a value stands in a Chinese sentence.
  const value = /^(?:"[^"]*"(?:: \S+)?|-?\d[\d.e+-]*(?![\w.]))/.exec(expected)?.[0] ?? "";
  const wanted = chinese.expected === "" ? value : chinese.expected;
  const parts = [
    stands === "" ? "" : `目前是 ${stands}`,
    wanted === "" ? "" : `${isAssumed ? "假設為" : "應為"} ${wanted}`,
  ].filter(Boolean);
  const first = parts.length === 0 ? "" : `${parts.join("，")}。`;
  return `${first.replace(/。。$/, "。")}${chinese.why}${chinese.fix}`;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 72 ? `${text.slice(0, 69)}...` : text;
}

/** With a capital and a full stop; a key or a type keeps its spelling. */
function sentence(text: string): string {
  const capital = /^[a-z]+[ ,]/.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}

function summary(findings: readonly DoctorFinding[], language: Language): string {
  const count = (severity: string) => findings.filter((one) => one.severity === severity).length;
  const [errors, warnings, notes] = [count("error"), count("warning"), count("note")];
  const fixable = findings.filter(({ operations }) => operations.length > 0).length;
  if (language !== "en") {
    if (errors + warnings === 0) return notes === 0 ? "沒有問題。" : `沒有錯誤也沒有警告；${notes} 則注意事項。`;
    return `${errors} 個錯誤、${warnings} 個警告、${notes} 則注意事項。${fixable > 0 ? `--fix 可以修正其中 ${fixable} 個。` : ""}`;
  }
  const many = (n: number, word: string) => `${n} ${word}${n === 1 ? "" : "s"}`;
  if (errors + warnings === 0)
    return notes === 0 ? "Nothing wrong." : `No error and no warning; ${many(notes, "note")}.`;
  const fix = fixable > 0 ? ` --fix repairs ${fixable} of them.` : "";
  return `${many(errors, "error")}, ${many(warnings, "warning")}, ${many(notes, "note")}.${fix}`;
}

const isWide = (c: string): boolean =>
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/.test(c);

/** Columns on a terminal: a Chinese character takes two. */
export function displayWidth(text: string): number {
  return [...text].reduce((sum, c) => sum + (isWide(c) ? 2 : 1), 0);
}

/** Lines of at most `width` columns; Chinese breaks anywhere but before a full stop or a comma, and after an opening mark. */
export function wrapWide(text: string, width: number): string[] {
  const parts =
    text.match(
      /[（「]*(?:[^\s\u2e80-\ua4cf\uff00-\uff60\u3000-\u303f]+|[\u2e80-\ua4cf\uff00-\uff60])[，。；：、）」]*|\s+/g,
    ) ?? [];
  const lines: string[] = [];
  let line = "";
  for (const part of parts) {
    if (line !== "" && displayWidth(line) + displayWidth(part.trimEnd()) > width) {
      lines.push(line.trimEnd());
      line = part.trimStart();
    } else line += part;
  }
  if (line.trim() !== "") lines.push(line.trimEnd());
  return lines;
}
