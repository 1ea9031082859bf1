// What an export says beside its numbers: every sentence in both languages, with the same values in each.

import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type ExportNote,
  exportConfiguration,
  exportNoteText,
  exportReasonText,
  exportTargets,
  parseStrategy,
} from "../../src/advice/index.ts";
import { describeHuggingFace, openModel } from "../../src/formats/index.ts";

const folder = resolve(import.meta.dirname, "../../examples/configs");
const gguf = resolve(import.meta.dirname, "../fixtures/checkpoints/gguf/llama/q4_1.gguf");
const scalings = ["yarn:4", "linear:2", "dynamic:4", "drop"];

/** Versions with other words. */
const older: Readonly<Record<string, string>> = { transformers: "4.57.6", vllm: "0.11.1", sglang: "0.5.9" };

/** Every note that some export of an example says, and every reason why there is none. */
async function everything(): Promise<{ notes: ExportNote[]; reasons: string[] }> {
  const notes: ExportNote[] = [];
  const reasons: string[] = [];
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

  test("a reason of ours is Chinese; an engine's own error is left to its words", () => {
    const own = reasons.filter((reason) => exportReasonText(reason, "zh-TW") !== null);
    expect([...new Set(own)].sort()).toEqual([
      "the class came with version 5: version 4 has no settings for it",
      "the engine has no words for it",
      "version 4 has no scaling for sliding layers",
    ]);
    for (const reason of own) expect(exportReasonText(reason, "zh-TW")).toMatch(/[\u4e00-\u9fff].*。$/);
    expect(exportReasonText("ValueError: Unknown rope_type", "zh-TW")).toBe(null);
    expect(exportReasonText("ValueError: Unknown rope_type", "en")).toBe("ValueError: Unknown rope_type");
  });
});
