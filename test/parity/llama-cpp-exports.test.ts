// Patched GGUFs in llama.cpp itself: mean losses past the trained length, and before it, equal ours under linear, yarn and
// a table of one's own. Needs node-llama-cpp (LLAMA_CPP names a node_modules folder that has it) and stories260K.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exportConfiguration, parseStrategy } from "../../src/advice/index.ts";
import { hasLlamaCpp, llamaCppLosses } from "../../src/cli/llama-cpp.ts";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import { openFile, openModel, patchGguf } from "../../src/formats/index.ts";
import { storyTokens } from "../support/stories.ts";

const path = resolve(import.meta.dirname, "../../../shared/models/stories260K/tinyllamas-stories-260k-f32.gguf");
const reason = !existsSync(path)
  ? "stories260K is not beside the repository"
  : (await hasLlamaCpp())
    ? null
    : "node-llama-cpp is not installed: npm install node-llama-cpp";

const table = JSON.stringify({
  rope_type: "table",
  inverse_frequencies: [1, 0.06, 0.004, 0.0003],
  attention_factor: 1.08,
});

describe.skipIf(reason !== null)(`in llama.cpp${reason === null ? "" : `: ${reason}`}`, () => {
  let model: LanguageModel;
  const folder = mkdtempSync(join(tmpdir(), "longhand-"));
  beforeAll(async () => {
    model = await loadLanguageModel(path, { threads: 1 });
  }, 60_000);
  afterAll(async () => {
    await model?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(["linear:2", "yarn:4", table])(
    "%s: losses within 0.02 nats of ours, and not those of the unchanged file",
    async (scaling) => {
      const strategy = parseStrategy(scaling);
      const made = exportConfiguration(await openModel(path), {
        to: "gguf",
        scaling: strategy,
        length: 1024,
        model: path,
      });
      expect(made.exact).toBe(true);
      const file = join(folder, "patched.gguf");
      const source = await openFile(path);
      const parts: Uint8Array[] = [];
      for await (const chunk of (await patchGguf(source, made.patch!)).chunks()) parts.push(chunk);
      await source.close();
      writeFileSync(file, Buffer.concat(parts));

      const tokens = storyTokens.slice(0, 640);
      expect(tokens.length).toBe(640);
      const at = [...Array(48).keys()].flatMap((i) => [32 + i, 580 + i]);
      const { losses } = await llamaCppLosses(file, { tokens, at, threads: 1 });
      const ours = (await model.score(tokens, { scaling: strategy })).negativeLogLikelihood;
      const unchanged = (await model.score(tokens)).negativeLogLikelihood;
      let moved = 0;
      at.forEach((position, k) => {
        expect(Math.abs(losses[k]! - ours[position]!), `position ${position}`).toBeLessThanOrEqual(0.02);
        moved += Math.abs(losses[k]! - unchanged[position]!) / at.length;
      });
      expect(moved).toBeGreaterThan(0.1);
    },
    120_000,
  );
});
