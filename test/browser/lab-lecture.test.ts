// The Lecture page in Chromium: what its figures say is what the library says, its answers are judged by computing, and
// its state is its address.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ideas, judgeAnswer, measuredLosses } from "../../src/advice/exercises.ts";
import { scalingByHand } from "../../src/advice/scaling-by-hand.ts";
import {
  alibi,
  learnedAbsolute,
  ntkBase,
  rope,
  rotaryTables,
  rowSimilarities,
  scoreByDistance,
  sinusoidal,
  sinusoidalHands,
  vectorScores,
} from "../../src/encodings/index.ts";
import { compareOrders } from "../../src/evaluation/order-blindness.ts";
import { builtInModel } from "../../src/formats/index.ts";
import { openCheckpoint } from "../../src/models/checkpoint.ts";
import { readLearnedPositions } from "../../src/models/learned-positions.ts";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { expectSound, type LabInChromium, labInChromium, looks, type OpenedPage } from "../support/lab-page.ts";

describe.skipIf(chromiumPath === null)(`the lecture (skipped: ${whyNoBrowser})`, () => {
  let lab: LabInChromium;
  const open = (query: string): Promise<OpenedPage> => lab.open(`page=lecture&${query}`);

  beforeAll(async () => {
    lab = await labInChromium();
  });
  afterAll(async () => {
    await lab?.[Symbol.asyncDispose]();
  });

  test.each(looks)("all twelve ideas under %s are sound, each with a figure that has words", async (look, options) => {
    await using opened = await lab.open(`page=lecture&${look}`, options);
    const { page } = opened;
    const next = page.getByRole("button", { name: look.includes("zh") ? "下一個" : "Next" });
    for (const [i, idea] of ideas.entries()) {
      if (i > 0) await next.click();
      await page.locator(`[data-figure="${idea}"] [data-number]`).first().waitFor();
      const figures = page.locator("[data-figure] canvas");
      for (let at = 0; at < (await figures.count()); at++) {
        expect(await figures.nth(at).getAttribute("aria-label"), idea).toMatch(/\d/);
      }
      // axe takes a second: each look takes every second idea, and both have every kind of part.
      if (i % 2 === (look.includes("light") ? 0 : 1)) await expectSound(opened, idea);
    }
    expect(await next.isDisabled()).toBe(true);
    await page.waitForURL(/idea=none/);
  });

  test("the numbers of the figures are the library's", async () => {
    await using opened = await open("lang=en&fig-distance=77&fig-factor=6");
    const { page, errors } = opened;
    const shown = async (mark: string): Promise<string | null> =>
      page.locator(`[data-figure] [data-number="${mark}"]`).first().textContent();
    const go = async (name: string): Promise<void> => {
      await page.getByRole("navigation", { name: "The twelve ideas" }).getByRole("link", { name, exact: true }).click();
    };

    await page.getByLabel("Causal mask").check();
    await page.getByLabel("Second layer").check();
    const orders = await compareOrders("你打我", "我打你", { encoding: "none", causal: true, numLayers: 2 });
    const largest = orders.largestDifference.toLocaleString("en-US", { maximumSignificantDigits: 6 });
    await page.getByText(`Different: by up to ${largest}.`).waitFor();

    const learned = async (name: string) => {
      const checkpoint = await openCheckpoint(await builtInModel(name));
      const found = await readLearnedPositions(checkpoint);
      await checkpoint.close();
      return found;
    };
    await go("Learned table");
    await page.locator('[data-number="similarity"]').waitFor();
    const { rows } = await learned("longhand-learned");
    const table = learnedAbsolute({ table: rows!, hiddenSize: 128 });
    expect(await shown("similarity")).toBe(String(rowSimilarities(table, 100, [101])[0]));
    await page.getByRole("spinbutton", { name: "Row of position" }).fill("256");
    await page.getByRole("spinbutton", { name: "Row of position" }).press("Enter");
    await page.getByText("There is no such row. Positions end at 255.").waitFor();

    await go("Sinusoidal clock");
    const row = sinusoidal({ hiddenSize: 128 }).rows([1000]);
    expect(await shown("wavelength")).toBe(String(sinusoidalHands(128)[32]!.wavelength));
    expect([await shown("sin"), await shown("cos")]).toEqual([String(row[64]), String(row[65])]);

    await go("Relative matrix");
    const omega = sinusoidalHands(128)[32]!.inverseFrequency;
    const turned = rotaryTables({ inverseFrequencies: [omega], attentionFactor: 1 }, [10, 1010]);
    expect([await shown("diagonal"), await shown("table")]).toEqual([String(turned.cos[0]), String(turned.cos[1])]);

    await go("T5 relative bias");
    await page.locator('[data-number="bias-4"]').waitFor();
    const bias = scoreByDistance((await learned("longhand-t5")).biases[0]!, [77]);
    expect(await shown("bias-4")).toBe(String(bias[3]));

    await go("ALiBi");
    expect(await shown("bias-8")).toBe(String(scoreByDistance(alibi({ numHeads: 8 }), [77])[7]));
    await page.locator('[data-number="longhand-alibi-2049"]').waitFor();
    const losses = await measuredLosses("longhand-alibi");
    expect(await shown("longhand-alibi-2049")).toBe(losses[4]!.mean.toFixed(3));

    await go("RoPE");
    const encoding = rope({
      headDim: 128,
      maxPositionEmbeddings: 4096,
      rope: { ropeType: "default", ropeTheta: 10000 },
    });
    const ones = new Array<number>(128).fill(1);
    const places = { queryPosition: 5000, keyPositions: [4923], scale: 1 / 128 };
    expect(await shown("score")).toBe(String(vectorScores(encoding, ones, ones, places)[0]));

    const of = { headDim: 128, trainedLength: 4096, targetLength: 6 * 4096 } as const;
    await go("Position Interpolation");
    const plain = scalingByHand({ ...of, rope: { ropeType: "default", ropeTheta: 10000 } });
    expect([await shown("unseen-plain"), await shown("unseen")]).toEqual([`${plain.unseen} of 64`, "0 of 64"]);

    await go("NTK-aware");
    expect(await shown("base")).toBe(String(ntkBase(10000, 6, 128)));

    await go("YaRN");
    const rule = { ropeTheta: 10000, factor: 6, originalMaxPositionEmbeddings: 4096 } as const;
    const yarn = scalingByHand({ ...of, rope: { ropeType: "yarn", ...rule } });
    expect(await shown("unchanged")).toBe(`${yarn.unchanged} of 64`);
    expect(await shown("score-factor")).toBe(String(yarn.scoreFactor));

    await go("Dynamic scaling");
    const dynamic = scalingByHand({
      ...of,
      targetLength: 8192,
      rope: { ropeType: "dynamic", ropeTheta: 10000, factor: 6 },
    });
    const times = dynamic.slowest.toLocaleString("en-US", { maximumSignificantDigits: 9 });
    expect(await shown("slowest")).toBe(`${times} times`);
    expect(errors).toEqual([]);
  });

  test("an answer is judged by computing, in words", async () => {
    await using opened = await open("lang=zh-TW&idea=yarn");
    const { page } = opened;
    const { answer } = await judgeAnswer("yarn", 0);
    const say = async (text: string): Promise<void> => {
      await page.getByLabel("你的答案").fill(text);
      await page.getByRole("button", { name: "檢查" }).click();
    };
    await say("許多");
    await page.getByText("請輸入一個數字。").waitFor();
    await say(String(answer - 1));
    await page.getByText("還不對，答案更大。").waitFor();
    await say(String(answer + 1));
    await page.getByText("還不對，答案更小。").waitFor();
    await say(String(answer));
    await page.getByText(`答對了。剛才算出來的答案：${answer}。`).waitFor();
  });

  test("arrow keys go from idea to idea and leave a slider its own; the address brings all of it back", async () => {
    await using opened = await open("lang=en&idea=ntk");
    const { page } = opened;
    await page.keyboard.press("ArrowRight");
    await page.getByRole("heading", { name: "To each hand by what it has seen" }).waitFor();
    await page.getByRole("slider", { name: "beta_fast" }).press("ArrowLeft");
    await page.waitForURL(/idea=yarn/);
    await page.waitForURL(/fig-fast=31/);
    await page.reload();
    await page.getByRole("heading", { name: "To each hand by what it has seen" }).waitFor();
    expect(await page.getByRole("spinbutton", { name: "beta_fast" }).inputValue()).toBe("31");

    // The clock opens with the very ramp.
    await page.getByRole("link", { name: "Go on in Clock" }).click();
    await page.getByRole("heading", { name: "Hands", exact: true }).waitFor();
    expect(await page.getByRole("combobox", { name: "Strategy laid over it" }).inputValue()).toContain(
      '"beta_fast":31',
    );
  });

  test("without the models' files the page says so", async () => {
    await using opened = await open("lang=en&idea=clock");
    const { page } = opened;
    await page.route("**/models/**", (route) => route.fulfill({ status: 404, body: "" }));
    await page.goto(`${lab.address}?page=lecture&lang=en&idea=t5`);
    await page.getByText(/The model could not be read: .*longhand-t5.*: expected a file, got HTTP 404/).waitFor();
  });
});
