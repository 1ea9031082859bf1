// Reports: what stands in the rows stands on the page, to the digit; nothing on it is a stranger's markup; it needs nothing
// from elsewhere.

import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { addReport } from "../../src/cli/report.ts";
import {
  compareResult,
  compareVerdict,
  defaultStrategies,
  openRun,
  type ReportRun,
  type RunRow,
  reportCsv,
  reportHtml,
  reportJsonLines,
  reportMarkdown,
  reportOf,
  reportParquet,
  reportSvg,
} from "../../src/evaluation/index.ts";
import { chartColours, doublingTicks, shortened, spread } from "../../src/evaluation/report/chart.ts";
import { reasonInChinese, verdictInChinese } from "../../src/evaluation/report/chinese.ts";
import { visibleText } from "../../src/evaluation/report/markup.ts";
import { describeHuggingFace } from "../../src/formats/index.ts";
import { random } from "../../src/tensor/index.ts";
import { hostileNames, type MadeCompare, madeCompare, madeRun } from "../support/report-runs.ts";

const usual: MadeCompare = {
  strategies: [
    { name: "none", within: 2, beyond: 4 },
    { name: "yarn:4", within: 2.1, beyond: 2.05 },
    { name: "dynamic:4", within: 2, beyond: 2.6, ownPasses: true },
    { name: "window", within: 2, beyond: 2.3 },
  ],
  needles: 2,
  more: { leftOut: [{ name: "longrope", why: "the checkpoint carries no long and short factors" }] },
};

let run: ReportRun;
let html: string;
beforeAll(async () => {
  run = await madeCompare(usual);
  html = reportHtml(reportOf([run]), { version: "1.2.3" });
});

/** The mean of the losses of some positions over all windows, by its own arithmetic. */
function meanOf({ rows }: ReportRun, strategy: string, from: number, to: number): number {
  const losses = rows.filter((row) => row.kind === "loss" && row.strategy === strategy);
  const all = losses.flatMap((row) => (row.losses as number[]).slice(from - 1, to - 1));
  return all.reduce((sum, x) => sum + x, 0) / all.length;
}

describe("the page of a compare", () => {
  test("holds every bin's mean loss and paired difference to a millionth", () => {
    for (const strategy of ["none", "yarn:4", "dynamic:4", "window"]) {
      for (const [from, to] of [
        [16, 23],
        [45, 64],
        [64, 91],
        [181, 256],
      ] as const) {
        const mean = meanOf(run, strategy, from, to);
        expect(html).toContain(`<td class="number">${from}–${to - 1}</td><td class="number">${mean.toFixed(6)}</td>`);
        if (strategy === "none") continue;
        const difference = mean - meanOf(run, "none", from, to);
        const text = `${difference < 0 ? "−" : ""}${Math.abs(difference).toFixed(6)}`;
        expect(html).toContain(`<td class="number">${text}</td>`);
      }
    }
  });

  test("says the verdict first, in both languages", () => {
    const [first] = compareVerdict(compareResult(run.manifest.identity as never, run.rows));
    expect(first).toMatch(/^yarn:4 reads to 256 tokens; it costs 0\.\d+ nats \(.*\) within 64\.$/);
    const lead = /<p class="lead">(.*)<\/p>/.exec(html)![1]!;
    expect(lead).toContain(`<span class="en" lang="en">${first}</span>`);
    expect(lead).toMatch(
      /<span class="zh" lang="zh-Hant-TW">yarn:4 可讀到 256 個 token；在 64 以內的代價是 0\.\d+ nats/,
    );
    expect(html.indexOf('class="lead"')).toBeLessThan(html.indexOf("<figure>"));
  });

  test("draws a curve with a band for every strategy, its name at the end, its numbers where a pointer rests", () => {
    const figures = html.match(/<figure>.*?<\/figure>/gs)!;
    expect(figures.length).toBe(3);
    expect(figures[0]!.match(/<polyline/g)!.length).toBe(4);
    expect(figures[0]!.match(/<polygon class="band/g)!.length).toBe(4);
    // The baseline is not drawn against itself.
    expect(figures[1]!.match(/<polyline/g)!.length).toBe(3);
    expect(figures[0]).toContain("trained 64");
    expect(figures[0]).toContain(`<title>yarn:4 · 181–255: ${meanOf(run, "yarn:4", 181, 256).toFixed(4)} [`);
    for (const { name } of usual.strategies) expect(figures[0]).toMatch(new RegExp(`class="name c\\d"[^>]*>${name}<`));
    const dashes = new Set(
      figures[0]!.match(/<polyline points="[^"]*"( stroke-dasharray="[^"]*")?/g)!.map((line) => line.split('" ')[1]),
    );
    expect(dashes.size, "curves differ without colour").toBe(4);
  });

  test("of a target near the trained length leaves room for what lies beyond it, and the table has the rest", async () => {
    const near = reportHtml(reportOf([await madeCompare({ ...usual, target: 96, needles: 0 })]));
    const [figure] = near.match(/<figure>.*?<\/figure>/s)!;
    expect(figure).toContain("<title>none · 16–22: ");
    expect(figure).not.toContain("<title>none · 1–15: ");
    expect(near).toContain('<td class="number">1–15</td>');
    const x = (name: string) => Number(new RegExp(`class="${name}" x1="([\\d.]+)"`).exec(figure!)![1]);
    const ends = Array.from(figure!.matchAll(/<polyline points="([^"]*)"/g), ([, points]) =>
      Number(points!.trim().split(" ").at(-1)!.split(",")[0]),
    );
    // The mark of the trained length stands at four fifths of the way at most.
    expect(x("mark") - 50).toBeLessThan(0.8 * (Math.max(...ends) - 50) + 20);
  });

  test("has the passkeys found by length and depth, and what was not run", () => {
    const map = /<caption><bdi>none<\/bdi><\/caption>.*?<\/table>/s.exec(html)![0];
    expect(map).toContain(
      '<th scope="row">25 %</th><td class="h10">1/1<small>1.0 / 10</small></td><td class="h0">0/1<small>9.0 / 10</small></td>',
    );
    expect(html).toContain("the checkpoint carries no long and short factors");
    expect(html).toContain("模型檔沒有 long 與 short 係數");
  });

  test("has all of where the numbers come from", () => {
    for (const fact of [
      run.manifest.identityHash,
      "0f".repeat(32),
      "ab".repeat(32),
      "longhand compare model.gguf --text &#39;my book.txt&#39;",
      "BOS (token 1) at the head of every window",
      "Student&#39;s t over windows",
      "Longhand 1.2.3",
    ]) {
      expect(html).toContain(fact);
    }
    expect(html).toMatch(/<th scope="row">.*Seed.*<td><code>7<\/code>/);
  });

  test("says a tie where an interval holds 0", async () => {
    const tied = await madeCompare({
      strategies: [
        { name: "none", within: 2, beyond: 2 },
        { name: "ntk:4", within: 2, beyond: 2 },
        { name: "window", within: 2, beyond: 2 },
      ],
    });
    const row = /<tr><th scope="row"><svg[^\n]*ntk:4.*?<\/tr>/s.exec(reportHtml(reportOf([tied])))![0];
    expect(row.match(/>tie</g)!.length).toBeGreaterThanOrEqual(3);
    expect(row).not.toMatch(/>(better|worse)</);
  });

  test("of an unfinished run, and of a part of one, says so", async () => {
    const part = await madeCompare({ ...usual, done: 2 });
    const page = reportHtml(reportOf([part]));
    expect(page).toContain("Not complete.");
    expect(page).toContain("2 of 3 windows have been read under every strategy");
    expect(html).not.toContain("Not complete.");
    const shard = { ...run, manifest: { ...run.manifest, shard: { index: 2, count: 8 } } };
    expect(reportHtml(reportOf([shard]))).toContain("This folder is part 2 of 8");
    const empty = await madeCompare({ ...usual, done: 0, needles: 0 });
    expect(reportHtml(reportOf([empty]))).toContain("Nothing was measured yet.");
  });

  test("of one window claims nothing", async () => {
    const page = reportHtml(reportOf([await madeCompare({ ...usual, windows: 1 })]));
    expect(page).toContain("One window gives no interval");
    expect(page).not.toMatch(/>(better|worse|tie)</);
    expect(page).not.toMatch(/NaN|Infinity|undefined|\[object/);
  });

  test("within the trained length, and without one, is a page too", async () => {
    for (const trainedLength of [512, null]) {
      const page = reportHtml(reportOf([await madeCompare({ ...usual, trainedLength })]));
      expect(page).toContain(trainedLength === null ? "The file does not say" : "there is nothing to extend");
      expect(page).not.toMatch(/NaN|Infinity|undefined|\[object/);
    }
  });
});

describe("the page", () => {
  test("loads nothing: no address but the icon's data, one script, allowed by its hash", async () => {
    const pages = [html, reportHtml(reportOf([run, await madeCompare({ ...usual, model: "other" })]))];
    for (const page of pages) {
      const text = page.replaceAll('xmlns="http://www.w3.org/2000/svg"', "");
      expect(text).not.toMatch(/https?:|\bsrc=|url\(|@import|<(iframe|object|embed|form|base)\b/);
      for (const [, address] of text.matchAll(/\bhref="([^"]*)"/g)) expect(address).toMatch(/^(data:,|#run-\d+)$/);
      const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)];
      expect(page.match(/<script/g)!.length).toBe(1);
      const hash = createHash("sha256").update(scripts[0]![1]!).digest("base64");
      const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!;
      expect(policy).toContain("default-src 'none'; style-src 'unsafe-inline'; img-src data:;");
      expect(policy).toContain(`script-src 'sha256-${hash}'`);
      expect(page).not.toMatch(/\son[a-z]+="/);
    }
  });

  test("has headings in order, scopes on all header cells, names on all figures, ids once, tags in pairs", async () => {
    const train = await trained();
    for (const page of [html, reportHtml(reportOf([run, train, await needles()]))]) {
      const levels = Array.from(page.matchAll(/<h([1-6])[ >]/g), (m) => Number(m[1]));
      expect(levels[0]).toBe(1);
      for (const [i, level] of levels.entries()) if (i > 0) expect(level - levels[i - 1]!).toBeLessThanOrEqual(1);
      expect(levels.filter((level) => level === 1).length).toBe(1);
      expect(page.match(/<th(?! scope="(row|col)")[ >]/g)).toBeNull();
      const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), (m) => m[1]!);
      expect(new Set(ids).size).toBe(ids.length);
      for (const [, id] of page.matchAll(/aria-labelledby="([^"]+)"/g)) expect(ids).toContain(id);
      for (const [svg] of page.matchAll(/<svg class="[^>]*>/g))
        expect(svg).toMatch(/aria-labelledby=|aria-hidden="true"/);
      expectBalanced(page);
    }
  });

  test("says everything in both languages", () => {
    const en = html.match(/class="en" lang="en"/g)!.length;
    expect(html.match(/class="zh" lang="zh-Hant-TW"/g)!.length).toBe(en);
    expect(en).toBeGreaterThan(60);
    expect(reportHtml(reportOf([run]), { language: "zh-TW" })).toContain('<html lang="zh-Hant-TW">');
  });

  test("has curves of at least 4.5 to 1 against the paper, light and dark (WCAG 2, 1.4.3)", () => {
    for (const [theme, paper] of [
      ["light", "#ffffff"],
      ["dark", "#14181d"],
    ] as const) {
      for (const colour of chartColours[theme])
        expect(contrast(colour, paper), `${theme} ${colour}`).toBeGreaterThan(4.5);
    }
  });

  test("of several runs has a line for each, and their parts", async () => {
    const other = await madeCompare({ ...usual, model: "other", path: "runs/other", seed: 5, done: 1 });
    const page = reportHtml(reportOf([run, other]));
    expect(page).toContain("How far do they read? 2 runs");
    expect(page).toContain('<a href="#run-2"><bdi>other</bdi></a>');
    expect(page).toContain('<h2 id="run-2"><bdi>other</bdi> <small>runs/other</small></h2>');
    expect(page.match(/class="lead"/g)!.length).toBe(2);
    expect(page).toContain(`${meanOf(other, "yarn:4", 181, 256).toFixed(6)}`);
  });

  test("is the same bytes from the same rows", () => {
    expect(reportHtml(reportOf([run]), { version: "1.2.3" })).toBe(html);
  });
});

describe("a stranger's run", () => {
  test("puts no markup, no formula and no hidden direction anywhere", async () => {
    const hostile = await madeCompare({
      strategies: [
        ...hostileNames.map((name, i) => ({ name, within: 2, beyond: 2 + i / 10 })),
        { name: "window", within: 2, beyond: 2 },
      ],
      model: hostileNames[0]!,
      path: hostileNames[1]!,
      needles: 2,
      command: ["longhand", ...hostileNames],
      more: {
        leftOut: [{ name: hostileNames[2], why: hostileNames[3] }],
        texts: [{ name: hostileNames[1], sha256: hostileNames[0], tokens: 1 }],
        [hostileNames[0]!]: hostileNames[2],
      },
    });
    const report = reportOf([hostile]);
    const page = reportHtml(report);
    expect(page.match(/<script/g)!.length).toBe(1);
    expect(page).not.toMatch(/<img|<svg onload|\son(error|load|mouseover)=["']/);
    expectBalanced(page);
    const svg = reportSvg(report);
    expect(svg).not.toMatch(/<script|<img|<svg onload/);
    expectBalanced(svg);
    for (const text of [page, svg, reportMarkdown(report)]) {
      for (const hidden of ["\u0000", "\u202e", "\ud800"]) expect(text).not.toContain(hidden);
    }
    expect(page).toContain("a[U+202E]gnp.exe[U+0000][U+D800]");
    expect(reportMarkdown(report)).not.toMatch(/(?<!\\)<|(?<!\\)\[x\]/);
    const cells = parseCsv(reportCsv(report)).flat();
    expect(cells).toContain('\'=HYPERLINK("http://x.test")');
    expect(cells.filter((cell) => /^[=@]/.test(cell))).toEqual([]);
  });

  test("that is damaged is an error that names the place", async () => {
    const damaged = async (more: Record<string, unknown>): Promise<ReportRun> => madeCompare({ ...usual, more });
    const withRow = (row: Record<string, unknown>): ReportRun => ({
      ...run,
      rows: run.rows.map((one, i) => (i === 0 ? ({ ...one, ...row } as RunRow) : one)),
    });
    for (const [broken, message] of [
      [await damaged({ target: "far" }), /identity: expected a number as target, got "far"/],
      [await damaged({ target: 2 ** 40 }), /expected an integer from 2 to 134217728 as target/],
      [await damaged({ strategies: {} }), /expected a list as strategies/],
      [await damaged({ strategies: [{ name: 3 }] }), /strategies\[0\]: expected a text as name, got 3/],
      [await damaged({ protocol: 2 }), /expected 1, the protocol/],
      [withRow({ losses: [1, 2] }), /row "loss\/none\/0": expected 255 losses as losses/],
      [withRow({ losses: new Array(255).fill("1") }), /expected numbers \(the one at 0 is none\)/],
      [withRow({ strategy: "who" }), /expected a strategy of the manifest/],
      [withRow({ kind: "odd" }), /expected "loss", "short" or "passkey" as kind, got "odd"/],
    ] as const) {
      expect(() => reportOf([broken])).toThrow(message);
      expect(() => reportOf([broken])).toThrow(RangeError);
    }
  });

  test("of another kind is an error that lists the kinds", async () => {
    const squares = await madeRun("squares", { upTo: 9 }, []);
    expect(() => reportOf([squares])).toThrow(
      'runs/x: expected a run of longhand compare, needle, perplexity, train or drop, got one of kind "squares"',
    );
    expect(() => reportOf([])).toThrow("expected at least one run, got none");
  });
});

describe("tables", () => {
  test("CSV parses back to the rows, digit for digit", () => {
    const { rows } = compareResult(run.manifest.identity as never, run.rows);
    const [head, ...lines] = parseCsv(reportCsv(reportOf([run])));
    expect(lines.length).toBe(rows.length);
    const number = (text: string | undefined): number | null => (text === "" ? null : Number(text));
    for (const [i, row] of rows.entries()) {
      const cells = Object.fromEntries(head!.map((name, j) => [name, lines[i]![j]]));
      expect(cells.run).toBe("runs/tiny");
      expect(cells.strategy).toBe(row.strategy);
      expect([Number(cells.from), Number(cells.to)]).toEqual(row.position);
      for (const key of ["meanNegativeLogLikelihood", "low", "high", "tokens", "windows"] as const) {
        expect(number(cells[key])).toBe(row[key]);
      }
      expect(number(cells.againstUnscaled)).toBe(row.againstUnscaled?.mean ?? null);
      expect(cells.againstForgettingVerdict).toBe(row.againstForgetting?.verdict ?? "");
    }
  });

  test("Parquet reads back as the rows, with nulls and doubles", async () => {
    const tiny = await madeCompare({ ...usual, windows: 1 });
    const { rows } = compareResult(tiny.manifest.identity as never, tiny.rows);
    const file = (await reportParquet(reportOf([tiny]))).buffer;
    const read = await parquetReadObjects({ file });
    expect(read.length).toBe(rows.length);
    for (const [i, row] of rows.entries()) {
      expect(read[i]).toMatchObject({
        run: "runs/tiny",
        strategy: row.strategy,
        from: row.position[0],
        to: row.position[1],
        meanNegativeLogLikelihood: row.meanNegativeLogLikelihood,
        low: null,
        againstUnscaled: row.againstUnscaled?.mean ?? null,
        againstForgettingVerdict: row.againstForgetting?.verdict ?? null,
      });
    }
    const { schema } = parquetMetadata(file);
    const types = Object.fromEntries(schema.map(({ name, type }) => [name, type]));
    expect(types).toMatchObject({ run: "BYTE_ARRAY", from: "DOUBLE", low: "DOUBLE", tokens: "DOUBLE" });
  });

  test("JSON lines hold the verdict, the strategies, the positions and the passkeys", () => {
    const lines = reportJsonLines(reportOf([run]))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const of = (kind: string) => lines.filter((line) => line.kind === kind);
    const result = compareResult(run.manifest.identity as never, run.rows);
    expect(of("verdict")[0].verdict).toEqual(compareVerdict(result));
    expect(of("strategy").map(({ strategy }) => strategy)).toEqual(["none", "yarn:4", "dynamic:4", "window"]);
    expect(of("position").length).toBe(result.rows.length);
    expect(of("passkey").length).toBe(16);
    expect(lines.every((line) => line.identityHash === run.manifest.identityHash)).toBe(true);
  });

  test("runs of several kinds make no CSV", async () => {
    expect(() => reportCsv(reportOf([reportable(), reportableTrain]))).toThrow(/of one kind.*compare and train/);
  });

  test("Markdown has the verdict and the losses, in one language", () => {
    const text = reportMarkdown(reportOf([run]));
    expect(text).toContain("| 181–255 |");
    expect(text).toContain(meanOf(run, "window", 181, 256).toFixed(4));
    expect(reportMarkdown(reportOf([run]), "zh-TW")).toContain("可讀到 256 個 token");
  });

  test("SVG stands alone", () => {
    const svg = reportSvg(reportOf([run]));
    expect(svg).toMatch(/^<svg xmlns/);
    expect(svg).toContain("<style>");
    expect(svg.match(/<polyline/g)!.length).toBe(4 + 3 + 3);
    expectBalanced(svg);
    expect(reportSvg(reportOf([run]), "zh-TW")).toContain("各位置的損失");
  });

  let reportableTrain: ReportRun;
  beforeAll(async () => {
    reportableTrain = await trained();
  });
  const reportable = (): ReportRun => run;
});

describe("other kinds of run", () => {
  test("a training: its losses, where it reads to, whether it is done", async () => {
    const train = await trained();
    const page = reportHtml(reportOf([train]));
    expect(page).toContain("A training: alibi, none");
    expect(page).toContain("<polyline");
    expect(page).toContain("2.511000");
    expect(page).toContain("Step 20 of 30 was reached.");
    expect(page).toContain('<th scope="row">64–255</th><td class="number">2.750000</td>');
    expect(page).toContain('<th scope="row">40</th><td class="number">75 %</td>');
    expect(page).not.toMatch(/NaN|Infinity|undefined|\[object/);
  });

  test("perplexity: a line for each strategy and length, a curve over lengths, and the protocol by its name", async () => {
    const made = await perplexities();
    const page = reportHtml(reportOf([made]));
    expect(page).toContain("The perplexity of tiny");
    expect(page).toMatch(
      /class="lead">.*Perplexity 9.468 in windows of 64 tokens under <bdi>none<.bdi>, the lowest here\./,
    );
    // Losses of 2 and 2.5 nats over 60 and 59 tokens of 70 and 80 bytes: by hand.
    const mean = (60 * 2 + 59 * 2.5) / 119;
    expect(page).toMatch(
      new RegExp(
        `<bdi>yarn:4</bdi></th><td class="number">64</td><td>.*non-overlapping.*</td><td class="number">${Math.exp(mean).toFixed(4)}</td>`,
      ),
    );
    expect(page).toContain(`<td class="number">${mean.toFixed(6)}</td>`);
    expect(page).toContain(`<td class="number">${((mean * 119) / Math.LN2 / 150).toFixed(4)}</td>`);
    expect(page.match(/<polyline/g)!.length).toBe(2);
    expect(page).toContain("Not complete.");
    expect(page).not.toMatch(/NaN|Infinity|undefined|\[object/);
    expect(reportMarkdown(reportOf([made]), "zh-TW")).toContain(
      `| yarn:4 | 64 | 不重疊 | ${Math.exp(mean).toFixed(4)} |`,
    );
    const broken = await perplexities({ tokens: 0 });
    expect(() => reportOf([broken])).toThrow(/row "none\/64\/0".*expected a number of at least 1 as tokens, got 0/);
  });

  test("needles: a heat map for each strategy, and effective lengths", async () => {
    const page = reportHtml(reportOf([await needles()]));
    expect(page.match(/class="scroll heat"/g)!.length).toBe(2);
    expect(page).toContain('<td class="h5">1/2<small>4.0 / 10</small></td>');
    expect(page).toMatch(/<bdi>yarn:4<\/bdi><\/th><td class="number">≥ 128<\/td><td class="number">≥ 128</);
    expect(page).not.toContain("Not complete.");
  });
});

describe("in Chinese", () => {
  test("every sentence of a verdict has a translation with the same numbers and names", async () => {
    const stream = random(11);
    const kinds = new Set<string>();
    let sentences = 0;
    for (let i = 0; i < 50; i++) {
      const level = (): number => 2 + [0, 0, 0.002, 0.3, -0.3, 1.4][stream.integer(6)]!;
      const names = ["none", "linear:4", "yarn:4", "window"].filter(() => stream.uniform() < 0.8);
      const made = await madeCompare({
        strategies: names.map((name) => ({ name, within: level(), beyond: level() })),
        target: 128,
        trainedLength: [32, 32, 32, 32, 256, null][stream.integer(6)]!,
        windows: 1 + stream.integer(4),
        noise: [0.02, 0.5][stream.integer(2)]!,
        needles: stream.integer(2),
        seed: i,
      });
      for (const sentence of compareVerdict(compareResult(made.manifest.identity as never, made.rows))) {
        const chinese = verdictInChinese(sentence);
        expect(chinese, sentence).not.toBeNull();
        expect(chinese).toMatch(/[\u4e00-\u9fff]/);
        const numbers = (text: string): string[] => text.match(/[\d][\d.,]*\d|\d/g) ?? [];
        const own = numbers(chinese!);
        expect(
          numbers(sentence).filter((number) => !own.includes(number)),
          `${sentence}\n${chinese}`,
        ).toEqual([]);
        for (const name of ["linear:4", "yarn:4"]) {
          if (sentence.includes(name)) expect(chinese).toContain(name);
        }
        kinds.add(sentence.replace(/[\d.,]+|linear:4|yarn:4|none|window|and/g, ""));
        sentences++;
      }
    }
    expect(sentences).toBeGreaterThan(100);
    expect(kinds.size).toBeGreaterThan(12);
  });

  test("every reason for leaving a strategy out has a translation", () => {
    const llama = { model_type: "llama", hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4 };
    const models = [
      describeHuggingFace({ ...llama, max_position_embeddings: 512 }),
      describeHuggingFace({ model_type: "gpt2", n_embd: 64, n_layer: 2, n_head: 4, n_positions: 512 }),
      describeHuggingFace({ model_type: "bloom", hidden_size: 64, n_layer: 2, n_head: 4 }),
    ];
    const reasons = models.flatMap((model) =>
      [128, 2048].flatMap((target) =>
        [model.trainedLength, null].flatMap(
          (trainedLength) => defaultStrategies(model, { trainedLength, target }).leftOut,
        ),
      ),
    );
    expect(reasons.length).toBeGreaterThan(20);
    for (const { why } of reasons) expect(reasonInChinese(why), why).toMatch(/[\u4e00-\u9fff]/);
  });

  test("what has no translation is no translation", () => {
    expect(verdictInChinese("A new sentence; of two halves.")).toBeNull();
    expect(verdictInChinese("x".repeat(3000))).toBeNull();
  });
});

describe("drawing", () => {
  test("labels are moved apart and stay between the ends", () => {
    const places = spread([10, 11, 12, 99], 14, 10, 100);
    expect(places).toEqual([10, 24, 38, 99]);
    expect(spread([98, 99, 100], 14, 10, 100)).toEqual([72, 86, 100]);
  });

  test("ticks are doublings through the trained length, seven at most and one or two more", () => {
    expect(doublingTicks(4, 2048, 512)).toEqual([8, 32, 128, 512, 2048]);
    expect(doublingTicks(4, 131072, 8192)).toContain(8192);
    for (const target of [256, 4096, 131072, 1048576]) {
      expect(doublingTicks(4, target, target / 4).length).toBeLessThanOrEqual(9);
    }
  });

  test("long names are cut beside the chart, hidden characters are shown", () => {
    expect(shortened('{"rope_type":"yarn","factor":4}')).toBe('{"rope_type":"…');
    expect(visibleText("a\u202eb\u200bc\td")).toBe("a[U+202E]b[U+200B]c\td");
  });
});

describe("longhand report", () => {
  let root: string;
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "longhand-report-"));
    const folder = await openRun(join(root, "run"), { kind: "compare", identity: run.manifest.identity });
    for (const row of run.rows) await folder.append(row);
    await folder.close();
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  async function longhand(...args: string[]): Promise<string> {
    const program = new Command().exitOverride();
    addReport(program);
    const out: string[] = [];
    const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      out.push(String(text));
      return true;
    });
    try {
      await program.parseAsync(["node", "longhand", "report", ...args]);
    } finally {
      write.mockRestore();
    }
    return out.join("");
  }

  test("writes report.html into the run folder, which stays a run", async () => {
    const folder = join(root, "run");
    const text = await longhand(folder);
    expect(text).toContain(`${join(folder, "report.html")}  `);
    expect(readFileSync(join(folder, "report.html"), "utf8")).toMatch(/^<!doctype html>/);
    expect(readdirSync(folder).filter((name) => name.endsWith(".new"))).toEqual([]);
    await (await openRun(folder, { kind: "compare", identity: run.manifest.identity })).close();
  });

  test("-o, again and again, writes each format; --json is one document", async () => {
    const names = ["a.html", "a.csv", "a.jsonl", "a.md", "a.svg", "a.parquet"].map((name) => join(root, name));
    const text = await longhand(join(root, "run"), ...names.flatMap((name) => ["-o", name]), "--json");
    const { files, runs } = JSON.parse(text);
    expect(files.map(({ path }: { path: string }) => path)).toEqual(names);
    for (const { path, bytes } of files) expect(readFileSync(path).length).toBe(bytes);
    expect(runs[0]).toMatchObject({ kind: "compare", model: "tiny", complete: true });
    expect(runs[0].verdict[0]).toContain("yarn:4 reads to");
  });

  test("refuses other formats, with the list, and what is no run", async () => {
    await expect(longhand(join(root, "run"), "-o", "a.xlsx")).rejects.toThrow(
      /-o: expected a file that ends in \.html, \.md, \.csv, \.jsonl, \.svg, \.parquet, got "a\.xlsx"/,
    );
    await expect(longhand(join(root, "run"), "-o", "a")).rejects.toThrow(RangeError);
    expect(existsSync(join(root, "a.xlsx"))).toBe(false);
    await expect(longhand(root)).rejects.toThrow(/expected a run folder with manifest\.json, got none/);
  });
});

async function perplexities(more: object = {}): Promise<ReportRun> {
  const rows = ["none", "yarn:4"].flatMap((strategy) =>
    [64, 128].flatMap((length) => [
      { key: `${strategy}/${length}/0`, strategy, length, text: 0, begin: 0, end: 60, tokens: 60, sum: 120, bytes: 70 },
      {
        key: `${strategy}/${length}/1`,
        strategy,
        length,
        text: 0,
        begin: 60,
        end: 119,
        tokens: 59,
        sum: 147.5,
        bytes: 80,
      },
    ]),
  );
  const identity = { model: "tiny", bos: 1, stride: null, lengths: [64, 128], trainedLength: 64, numWindows: 9 };
  return madeRun(
    "perplexity",
    identity,
    rows.map((row) => ({ ...row, ...more })),
  );
}

async function trained(): Promise<ReportRun> {
  const recipe = { encoding: ["alibi", "none"], steps: 30, length: 64, batchSize: 2 };
  return madeRun("train", { recipe, text: "cd".repeat(32) }, [
    { key: "validation:0", kind: "validation", step: 0, tokens: 0, loss: 5.5 },
    { key: "train:10", kind: "train", step: 10, tokens: 1280, loss: 3.25, learningRate: 0.003, gradientNorm: 1 },
    { key: "train:20", kind: "train", step: 20, tokens: 2560, loss: 2.5, learningRate: 0.003, gradientNorm: 1 },
    { key: "validation:20", kind: "validation", step: 20, tokens: 2560, loss: 2.511 },
    { key: "position:0", kind: "position", step: 20, position: [0, 64], loss: 2.5, low: 2.4, high: 2.6, windows: 4 },
    {
      key: "position:64",
      kind: "position",
      step: 20,
      position: [64, 256],
      loss: 2.75,
      low: null,
      high: null,
      windows: 1,
    },
    { key: "task:40", kind: "task", step: 20, size: 40, accuracy: 0.75, meanLoss: 0.4 },
  ]);
}

async function needles(): Promise<ReportRun> {
  const rows: RunRow[] = [];
  for (const strategy of ["none", "yarn:4"]) {
    for (const length of [64, 128]) {
      for (const depth of [0, 0.5]) {
        for (const sample of [0, 1]) {
          const exact = strategy === "none" && length === 128 && sample === 1 ? 0 : 1;
          const key = `passkey/${strategy}/${length}/${depth}/${sample}`;
          rows.push({
            key,
            strategy,
            task: "passkey",
            length,
            depth,
            sample,
            exact,
            rank: exact ? 1 : 7,
            candidates: 10,
          });
        }
      }
    }
  }
  const identity = {
    model: "tiny",
    lengths: [64, 128],
    depths: [0, 0.5],
    tasks: ["passkey"],
    samples: 2,
    strategies: ["none", "yarn:4"],
  };
  return madeRun("needle", identity, rows);
}

/** RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, bare, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)!.push(quoted === undefined ? bare! : quoted.replaceAll('""', '"'));
    if (end === "\r\n") rows.push([]);
  }
  rows.pop();
  return rows;
}

/** Every tag is closed in the order in which they were opened. */
function expectBalanced(page: string): void {
  const empty = new Set(["meta", "link", "input", "br", "!doctype"]);
  const open: string[] = [];
  const body = page.replace(/<(style|script)>.*?<\/\1>/gs, "");
  for (const [, close, name, rest] of body.matchAll(/<(\/?)([!a-zA-Z][\w-]*)((?:"[^"]*"|[^">])*)>/g)) {
    if (close === "/") expect(open.pop(), `</${name}>`).toBe(name);
    else if (!rest!.endsWith("/") && !empty.has(name!)) open.push(name!);
  }
  expect(open).toEqual([]);
}

/** WCAG 2's ratio of luminances. */
function contrast(a: string, b: string): number {
  const luminance = (hex: string): number => {
    const [r, g, blue] = [1, 3, 5].map((i) => {
      const c = Number.parseInt(hex.slice(i, i + 2), 16) / 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * blue!;
  };
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x! + 0.05) / (y! + 0.05);
}
