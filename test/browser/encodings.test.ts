// The same source runs in a browser, and gives the same bits as in Node.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { chromiumPath, openPage, whyNoBrowser } from "../support/browser.ts";

// Runs in Node and in the page: every float64 of tables of many kinds, as hexadecimal.
const compute = `async (encodings) => {
  const { computeRopeFrequencies, rotaryTables, sinusoidalTable, alibiSlopes, power, naturalLogarithm } = encodings;
  const original = { originalMaxPositionEmbeddings: 4096 };
  const ropes = [
    { ropeType: "default", ropeTheta: 10000 },
    { ropeType: "yarn", ropeTheta: 150000, factor: 32, truncate: false, ...original },
    { ropeType: "llama3", ropeTheta: 500000, factor: 8, lowFreqFactor: 1, highFreqFactor: 4, ...original },
    { ropeType: "dynamic", ropeTheta: 1000000, factor: 4 },
    { ropeType: "gradient", ropeTheta: 10000, factor: 4, ...original },
  ];
  const positions = [0, 1, 2, 255, 4095, 4096, 65537, 131071, 1048575, 1048576, 16777216];
  const values = ropes.flatMap((rope) => {
    const frequencies = computeRopeFrequencies({ headDim: 96, maxPositionEmbeddings: 8192, rope }, 131072);
    const { cos, sin } = rotaryTables(frequencies, positions);
    return [...frequencies.inverseFrequencies, frequencies.attentionFactor, ...cos, ...sin];
  });
  values.push(...sinusoidalTable(positions, { hiddenSize: 128 }), ...alibiSlopes({ numHeads: 12 }));
  for (let i = 1; i <= 200; i++) values.push(power(i * 1.7, i / 77), naturalLogarithm(i * 0.37));
  return Array.from(new BigUint64Array(Float64Array.from(values).buffer), (bits) => bits.toString(16)).join(" ");
}`;

describe.skipIf(chromiumPath === null)(`in Chromium (skipped: ${whyNoBrowser})`, () => {
  test("every table has the same bits as in Node", async () => {
    const encodings = await import("../../src/encodings/index.ts");
    const here: string = await new Function(`return ${compute}`)()(encodings);
    await using opened = await openPage();
    const there = await opened.page.evaluate<string>(`(async () => (${compute})(await import("/encodings.js")))()`);
    const hash = (text: string) => createHash("sha256").update(text).digest("hex");
    expect(here.length).toBeGreaterThan(100_000);
    expect(hash(there)).toBe(hash(here));
  });

  test("a configuration is read and inspected without Node", async () => {
    const config = readFileSync(new URL("../../examples/configs/gemma-3-27b.json", import.meta.url), "utf8");
    await using opened = await openPage({ "config.json": new TextEncoder().encode(config) });
    const summary = await opened.page.evaluate(`(async () => {
      const { describeHuggingFace } = await import("/formats.js");
      const { inspectModel, inspectionSvg } = await import("/advice.js");
      const model = describeHuggingFace(await (await fetch("/config.json")).json());
      const inspection = inspectModel(model, { target: 262144 });
      document.body.innerHTML = inspectionSvg(inspection);
      return {
        circles: document.querySelectorAll("circle").length,
        unseen: inspection.groups.map((group) => group.summary.unseen),
      };
    })()`);
    // 64 hands in each of two rows, and the two of the legend; the windowed layers see nothing new.
    expect(summary).toEqual({ circles: 64 + 64 + 2, unseen: [0, 27] });
  });
});
