// The lab in Chromium, from its own server: what a page shows is what the library says, its state is its address, and it
// asks nothing of any other machine.

import { resolve } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inspectModel } from "../../src/advice/inspect.ts";
import { parseStrategy } from "../../src/advice/strategy.ts";
import {
  alibi,
  nope,
  type RopeParameters,
  rope,
  rotaryTables,
  scoreByDistance,
  sinusoidal,
  vectorScores,
} from "../../src/encodings/index.ts";
import { compareOrders, type OrderOptions } from "../../src/evaluation/order-blindness.ts";
import { builtInModel, describeHuggingFace, openModel } from "../../src/formats/index.ts";
import { openCheckpoint } from "../../src/models/checkpoint.ts";
import { readFirstLayer } from "../../src/models/first-layer.ts";
import { readLearnedPositions } from "../../src/models/learned-positions.ts";
import { chromiumPath, whyNoBrowser } from "../support/browser.ts";
import { desktop, expectSound, type LabInChromium, labInChromium, type OpenedPage } from "../support/lab-page.ts";

const root = resolve(import.meta.dirname, "../..");
const gguf = resolve(root, "test/fixtures/checkpoints/gguf/llama/q4_1.gguf");
const gemma = resolve(root, "examples/configs/gemma-3-27b.json");

describe.skipIf(chromiumPath === null)(`the lab (skipped: ${whyNoBrowser})`, () => {
  let lab: LabInChromium;

  beforeAll(async () => {
    lab = await labInChromium();
  });
  afterAll(async () => {
    await lab?.[Symbol.asyncDispose]();
  });

  const open = (query: string, options?: BrowserContextOptions): Promise<OpenedPage> => lab.open(query, options);

  const number = (page: Page, of: string, name: string): Promise<string | null> =>
    page.textContent(`[data-of="${of}"] [data-number="${name}"]`);

  const pages = ["clock", "order", "distance"];
  const looks: readonly (readonly [string, BrowserContextOptions])[] = [
    ["lang=en&theme=light", desktop],
    ["lang=zh-TW&theme=dark", { viewport: { width: 390, height: 844 } }],
  ];
  test.each(pages.flatMap((page) => looks.map(([look, options]) => [page, look, options] as const)))(
    "%s under %s: no error, nothing from elsewhere, nothing wider than the screen, no fault that axe finds",
    async (name, look, options) => {
      await using opened = await open(`page=${name}&${look}`, options);
      await expectSound(opened, name);
    },
  );

  test("a link says everything: model, hand, place, strategy, language and theme", async () => {
    await using opened = await open(
      "page=clock&lang=zh-TW&theme=dark&theta=150000&dim=64&trained=4096&target=131072&scaling=yarn:32&hand=16&position=123456",
    );
    const { page } = opened;
    expect(await page.getAttribute("html", "lang")).toBe("zh-Hant-TW");
    expect(await page.getAttribute("html", "data-theme")).toBe("dark");
    const description = describeHuggingFace({
      model_type: "llama",
      hidden_size: 64,
      num_attention_heads: 1,
      num_hidden_layers: 1,
      rope_theta: 150000,
      max_position_embeddings: 4096,
    });
    for (const [mark, strategy] of [
      ["file", "none"],
      ["strategy", "yarn:32"],
    ] as const) {
      const [group] = inspectModel(description, { target: 131072, strategy: parseStrategy(strategy) }).groups;
      const omega = group!.inverseFrequencies[16]!;
      expect(await number(page, mark, "frequency")).toBe(String(omega));
      expect(await number(page, mark, "wavelength")).toBe(String(group!.hands[16]!.wavelength));
      const { cos } = rotaryTables({ inverseFrequencies: [omega], attentionFactor: 1 }, [123456]);
      expect(await number(page, mark, "cos")).toBe(String(cos[0]));
    }
    const { summary } = inspectModel(description, { target: 131072 }).groups[0]!;
    expect(await page.textContent(".summary")).toContain(`${summary!.unseen} 根`);
  });

  test("what is changed by keyboard stands in the address, and a reload shows it again", async () => {
    await using opened = await open("page=clock&lang=en&position=1000");
    const { page } = opened;
    await page.getByRole("slider", { name: "Position" }).press("ArrowRight");
    await page.getByRole("slider", { name: /^Hands/ }).press("ArrowRight");
    await page.getByRole("button", { name: "中文" }).click();
    await page.waitForURL(/lang=zh-TW/);
    expect(page.url()).toMatch(/hand=41/);
    expect(page.url()).toMatch(/position=1001/);
    await page.reload();
    await page.waitForSelector("h1");
    expect(await page.textContent("#hand-title")).toBe("第 41 根指針");
    const { groups } = inspectModel(
      describeHuggingFace({
        model_type: "llama",
        hidden_size: 128,
        num_attention_heads: 1,
        num_hidden_layers: 1,
        rope_theta: 10000,
        max_position_embeddings: 4096,
      }),
    );
    expect(await number(page, "file", "wavelength")).toBe(String(groups[0]!.hands[41]!.wavelength));
  });

  test("the headers of files are read in the page: a GGUF file, a configuration of two kinds of layers, and no model", async () => {
    await using opened = await open("page=clock&lang=en&hand=3");
    const { page, elsewhere, errors } = opened;
    const choose = (...files: string[]) => page.setInputFiles('input[type="file"]', files);
    await choose(gguf);
    await page.getByText("File: q4_1.gguf").waitFor({ state: "attached" });
    const [tiny] = inspectModel(await openModel(gguf)).groups;
    const wavelength = String(tiny!.hands[3]!.wavelength);
    await page.locator('[data-of="file"] [data-number="wavelength"]').getByText(wavelength).waitFor();

    await choose(gemma);
    await page.getByLabel("Layers").waitFor();
    const { groups } = inspectModel(await openModel(gemma));
    for (const index of [1, 0]) {
      await page.getByLabel("Layers").selectOption(String(index));
      expect(await number(page, "file", "wavelength")).toBe(String(groups[index]!.hands[3]!.wavelength));
    }

    await choose(axePath());
    const message = await page.getByRole("alert").first().textContent();
    expect(message).toMatch(/axe\.min\.js: expected .*, got another kind of file/);
    expect(elsewhere).toEqual([]);
    expect(errors).toEqual([]);
  });

  test("wrong words are said to be wrong beside their field", async () => {
    await using opened = await open("page=clock&lang=en&scaling=yam:4");
    expect(await opened.page.getByRole("alert").textContent()).toMatch(/^--scaling: expected one of none, drop/);
  });

  test("two orders: identical digits without encoding and mask, others with a second layer under the mask", async () => {
    await using opened = await open("page=order&lang=en");
    const { page, errors } = opened;
    const verdict = page.locator('[data-number="verdict"]');
    await verdict.getByText("Identical: all 16 numbers have the same bits.").waitFor();
    const shown = async (): Promise<string[][]> => {
      const rows = await page.locator('[data-number="outputs"] tr').allTextContents();
      expect(rows).toHaveLength(16);
      return page.evaluate(`Array.from(document.querySelectorAll('[data-number="outputs"] tr'),
        (row) => Array.from(row.querySelectorAll("td"), (cell) => cell.textContent))`);
    };
    const said = async (options: OrderOptions): Promise<string[][]> => {
      const { first, second } = await compareOrders("你打我", "我打你", options);
      return first.output.map((value, channel) => [value.toPrecision(9), second.output[channel]!.toPrecision(9)]);
    };
    const digits = (rows: string[][]) => rows.map((row) => row.slice(0, 2));
    expect(digits(await shown())).toEqual(await said({ encoding: "none", causal: false, numLayers: 1 }));
    expect((await shown()).every(([a, b]) => a === b)).toBe(true);

    await page.getByLabel("Causal mask").check();
    await page.getByLabel("Second layer").check();
    await verdict.getByText("Different: by up to").waitFor();
    expect(digits(await shown())).toEqual(await said({ encoding: "none", causal: true, numLayers: 2 }));
    await page.waitForURL(/mask=on.*depth=2/);
    // The overview says the same of the same switches.
    const { largestDifference } = await compareOrders("你打我", "我打你", {
      encoding: "none",
      causal: true,
      numLayers: 2,
    });
    const square = page.locator('.square[aria-pressed="true"]');
    await square.getByText(largestDifference.toLocaleString("en-US", { maximumSignificantDigits: 3 })).waitFor();
    expect(errors).toEqual([]);
  });

  test("scores at a distance are the library's, under every scaling and bias", async () => {
    const all = "rope,linear,ntk,dynamic,yarn,llama3,sinusoidal,alibi,kerple";
    await using opened = await open(`page=distance&lang=en&dim=64&reach=20000&read=777&curves=${all}`);
    const { page, errors } = opened;
    const value = (name: string) => page.textContent(`[data-curve="${name}"]`);
    const original = { originalMaxPositionEmbeddings: 4096 };
    const settings: Readonly<Record<string, RopeParameters>> = {
      rope: { ropeType: "default", ropeTheta: 10000 },
      linear: { ropeType: "linear", ropeTheta: 10000, factor: 4 },
      ntk: { ropeType: "ntk", ropeTheta: 10000, factor: 4 },
      dynamic: { ropeType: "dynamic", ropeTheta: 10000, factor: 4 },
      yarn: { ropeType: "yarn", ropeTheta: 10000, factor: 4, ...original },
      llama3: { ropeType: "llama3", ropeTheta: 10000, factor: 4, lowFreqFactor: 1, highFreqFactor: 4, ...original },
    };
    for (const [name, parameters] of Object.entries(settings)) {
      const encoding = rope({ headDim: 64, maxPositionEmbeddings: 4096, rope: parameters });
      expect(await value(name), name).toBe(String(scoreByDistance(encoding, [777], 20000)[0]));
    }
    const rows = scoreByDistance(sinusoidal({ hiddenSize: 64 }), [777]);
    expect(await value("sinusoidal")).toBe(String(rows[0]));
    const [steep, , , , , , , flat] = scoreByDistance(alibi({ numHeads: 8 }), [777]);
    expect([await value("alibi-1"), await value("alibi-8")]).toEqual([String(steep), String(flat)]);
    const bias = page.getByRole("group", { name: "Biases on the score" });
    await bias.getByLabel("T5").check();
    await page.locator('[data-curve="t5-4"]').waitFor();
    const checkpoint = await openCheckpoint(await builtInModel("longhand-t5"));
    const { biases } = await readLearnedPositions(checkpoint);
    await checkpoint.close();
    expect(await value("t5-4")).toBe(String(scoreByDistance(biases[0]!, [777])[3]));
    expect(await value("t5-bucket")).toBe("31");
    await bias.getByLabel("T5").uncheck();
    await page.getByLabel("KERPLE").uncheck();
    await page.waitForURL((address) => address.searchParams.get("curves") === all.replace(",kerple", ""));
    expect(await page.locator('[data-curve="kerple"]').count()).toBe(0);
    expect(errors).toEqual([]);
  });

  test("scores of a real layer's query and key are the library's, as trained and scaled", async () => {
    await using opened = await open(
      "page=distance&lang=en&read=40&factor=8&vector-query=q&vector-key=u&vector-head=3&vector-curves=own,yarn,drop",
    );
    const { page, errors } = opened;
    await page.locator('[data-vector="own"]').waitFor();
    const checkpoint = await openCheckpoint(await builtInModel("longhand-rope"));
    const layer = await readFirstLayer(checkpoint);
    await checkpoint.close();
    const [query, key] = [layer.query("q".charCodeAt(0), 2), layer.key("u".charCodeAt(0), 2)];
    const original = { originalMaxPositionEmbeddings: 256 };
    const of = (parameters: RopeParameters) => {
      const encoding = rope({ headDim: 32, maxPositionEmbeddings: 256, rope: parameters });
      const places = { queryPosition: 16384, keyPositions: [16384 - 40], scale: layer.scale };
      return String(vectorScores(encoding, query, key, places)[0]);
    };
    const shown = (id: string) => page.textContent(`[data-vector="${id}"]`);
    expect(await shown("own")).toBe(of({ ropeType: "default", ropeTheta: 10000 }));
    expect(await shown("yarn")).toBe(of({ ropeType: "yarn", ropeTheta: 10000, factor: 8, ...original }));
    expect(await shown("drop")).toBe(
      String(vectorScores(nope(), query, key, { queryPosition: 0, keyPositions: [0], scale: layer.scale })[0]),
    );
    expect(errors).toEqual([]);
  });

  const axePath = (): string => resolve(root, "node_modules/axe-core/axe.min.js");
});
