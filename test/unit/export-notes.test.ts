// What an export says beside its numbers: every sentence in both languages, with the same values in each.

import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type ExportNote,
  exportConfiguration,
  exportNoteText,
  exportTargets,
  exportText,
  parseStrategy,
} from "../../src/advice/index.ts";
import { describeHuggingFace, openModel } from "../../src/formats/index.ts";

const folder = resolve(import.meta.dirname, "../../examples/configs");
const gguf = resolve(import.meta.dirname, "../fixtures/checkpoints/gguf/llama/q4_1.gguf");
const proportional = '{"rope_type":"proportional","rope_theta":10000,"partial_rotary_factor":0.25}';
const scalings = ["yarn:4", "linear:2", "dynamic:4", "drop", proportional];

/** Versions with other words. */
const older: Readonly<Record<string, string>> = { transformers: "4.57.6", vllm: "0.11.1", sglang: "0.5.9" };

/** Every note that some export of an example says, and every reason why nothing is computed. */
async function everything(): Promise<{ notes: ExportNote[]; reasons: ExportNote[] }> {
  const notes: ExportNote[] = [];
  const reasons: ExportNote[] = [];
  const take = (made: ReturnType<typeof exportConfiguration>): void => {
    notes.push(...made.notes, ...made.groups.flatMap((group) => group.notes));
    if (made.nearest !== null) notes.push(made.nearest);
    reasons.push(...made.groups.flatMap(({ unsupported }) => unsupported ?? []));
  };
  const models = [
    ...readdirSync(folder).map((name) => {
      const config = JSON.parse(readFileSync(resolve(folder, name), "utf8")) as Record<string, unknown>;
      return { model: describeHuggingFace(config, { name }), config };
    }),
    { model: await openModel(gguf), config: undefined },
  ];
  for (const { model, config } of models) {
    if (!model.groups.some(({ position }) => position.site === "query-key")) continue;
    for (const to of exportTargets) {
      for (const scaling of scalings) {
        for (const engineVersion of [undefined, older[to]]) {
          try {
            take(
              exportConfiguration(model, {
                to,
                scaling: parseStrategy(scaling),
                // Further than the factor reaches.
                length: 20 * (model.trainedLength ?? 4096),
                ...(config === undefined ? {} : { config }),
                ...(engineVersion === undefined ? {} : { engineVersion }),
              }),
            );
          } catch (error) {
            // A strategy that does not fit the model.
            if (!(error instanceof RangeError)) throw error;
          }
        }
      }
    }
  }
  return { notes, reasons };
}

describe("what an export says", async () => {
  const { notes, reasons } = await everything();

  test("the examples reach nearly every code", () => {
    const own = ["checkpoint-not-gguf", "class-of-version-5", "factor-too-small", "fixed-table", "flags-fall-short"];
    own.push("for-transformers-4", "for-transformers-5", "gguf-not-checkpoint", "modelfile-length", "nearest");
    own.push("no-local-scaling", "no-own-table", "ollama-own-engine", "parameters-alone", "short-texts-too");
    const engines = ["assumed", "fixed-at-start", "formula-differs", "history", "key-ignored", "reached-by"];
    engines.push("table-too-short", "type-ignored");
    expect([...new Set(notes.map(({ code }) => code as string))].sort()).toEqual([...own, ...engines].sort());
  });

  test("each sentence is Chinese in Chinese, and carries every value of the English one", () => {
    for (const note of notes) {
      const chinese = exportNoteText(note, "zh-TW");
      expect(exportNoteText(note, "en")).toBe(note.message);
      expect(chinese, note.message).toMatch(/[\u4e00-\u9fff].*$/);
      expect(chinese, note.message).not.toMatch(/undefined|null|NaN/);
      for (const [name, value] of Object.entries(note.values)) {
        // What only the engine's source says stays in English beside it; a form's name may be a sentence.
        if (
          name === "detail" ||
          name === "form" ||
          (name === "key" && !/key-ignored|reached-by|assumed/.test(note.code))
        )
          continue;
        expect(chinese, `${note.code} ${name}`).toContain(String(value));
        expect(note.message, `${note.code} ${name}`).toContain(String(value));
      }
    }
  });

  test("why nothing is computed is a code too: an engine's own error stands beside it in its words", () => {
    expect([...new Set(reasons.map(({ code }) => code))].sort()).toEqual([
      "class-of-version-5",
      "engine-refuses",
      "no-local-scaling",
      "no-words",
    ]);
    for (const reason of reasons) {
      expect(exportNoteText(reason, "en")).toBe(reason.message);
      expect(exportNoteText(reason, "zh-TW")).toMatch(/^[^a-z]*[\u4e00-\u9fff][^a-z]*。$/);
      expect(reason.values).toEqual(reason.code === "engine-refuses" ? { detail: reason.message } : {});
    }
    const errors = reasons.filter(({ code }) => code === "engine-refuses").map(({ message }) => message);
    for (const error of errors) expect(error).toMatch(/^ValueError: Unknown RoPE scaling type proportional \(vllm/);
  });

  test("the words of a terminal are Chinese in Chinese, with the same numbers, commands and files", () => {
    const config = JSON.parse(readFileSync(resolve(folder, "llama-3.1-8b.json"), "utf8")) as Record<string, unknown>;
    const model = describeHuggingFace(config, { name: "llama-3.1-8b" });
    for (const to of exportTargets) {
      for (const scaling of ["yarn:4", "drop", "dynamic:4"]) {
        const made = exportConfiguration(model, { to, scaling: parseStrategy(scaling), config, model: "M" });
        const english = exportText(made, undefined, 120);
        const chinese = exportText(made, undefined, 120, "zh-TW");
        for (const command of made.commands) expect(chinese.split("\n")).toContain(command);
        const prose = chinese.split("\n").filter((line) => line !== "" && !made.commands.includes(line));
        // What remains in English: titles with names and numbers, keys, an engine's own sentence.
        const untold = prose.filter((line) => !/[\u4e00-\u9fff]/.test(line) && !/^ {2}[\w.]+ = /.test(line));
        expect(untold, `${to} ${scaling}`).toEqual([]);
        const numbers = (text: string) =>
          (
            text.replace(/\d{4}\.\d+|[A-Za-z][\w.-]*|\d+ layers|第 \d+ 層|\d+ 層/g, "").match(/\d[\d,.e+-]*\d/g) ?? []
          ).sort();
        expect(numbers(chinese), `${to} ${scaling}`).toEqual(numbers(english));
        expect(chinese).not.toMatch(/undefined|null|NaN/);
        // An opening mark stands with what it opens.
        for (const width of [40, 61, 80]) {
          expect(exportText(made, undefined, width, "zh-TW")).not.toMatch(/[（「]$|^\s*[，。；：、）」]/m);
        }
      }
    }
  });
});
