import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkpoint } from "../support/checkpoints.ts";
import { longhand } from "../support/cli.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { plainWords } from "../support/words.ts";

const bin = resolve(import.meta.dirname, "../../dist/cli.js");
let root: string;
let model: string;
let text: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "longhand-compare-"));
  model = writeTinyModel(join(root, "tiny"));
  text = join(root, "text.txt");
  writeFileSync(text, plainWords(600));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// One thread: the same sums in the same order, whatever else the machine does.
const common = () => ["compare", model, "--text", text, "--target", "192", "--windows", "4", "--threads", "1"];
const rowsOf = (folder: string) =>
  readFileSync(join(folder, "rows.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { measured, ...row } = JSON.parse(line);
      expect(measured.seconds).toBeGreaterThanOrEqual(0);
      return row;
    });

/** Of every test below: the whole run, never stopped. */
let whole: { folder: string; document: ReturnType<typeof JSON.parse> };
beforeAll(() => {
  const folder = join(root, "whole");
  const { status, stdout, stderr } = longhand([...common(), "--needles", "0", "--out", folder, "--json"]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  whole = { folder, document: JSON.parse(stdout) };
}, 60_000);

describe("longhand compare", () => {
  test("--json prints one document with the contract's names", () => {
    const { run, rows, strategies, verdict } = whole.document;
    expect(run).toBe(whole.folder);
    expect(new Set(rows.map((row: { strategy: string }) => row.strategy))).toEqual(
      new Set(["none", "linear:3", "ntk:3", "dynamic:3", "yarn:3", "window"]),
    );
    for (const row of rows) {
      expect(row.meanNegativeLogLikelihood).toBeGreaterThan(row.low);
      expect(row.meanNegativeLogLikelihood).toBeLessThan(row.high);
      expect(row.tokens).toBe(4 * (row.position[1] - row.position[0]));
    }
    expect(rows.find((row: { strategy: string }) => row.strategy === "yarn:3").scaling).toBe("yarn:3");
    expect(rows.find((row: { strategy: string }) => row.strategy === "window").scaling).toBeNull();
    expect(strategies.length).toBe(6);
    expect(verdict.length).toBeGreaterThan(0);
    const { identity, sessions } = JSON.parse(readFileSync(join(whole.folder, "manifest.json"), "utf8"));
    expect(Object.keys(identity.files).sort()).toEqual(readdirSync(model).sort());
    expect(sessions[0].command.slice(0, 2)).toEqual(["longhand", "compare"]);
    expect(rowsOf(whole.folder).length).toBe(4 * 7);
  });

  test("the same command finds everything done, reads no weights, and says the same", () => {
    const before = readFileSync(join(whole.folder, "rows.jsonl"), "utf8");
    const again = longhand([...common(), "--needles", "0", "--out", whole.folder]);
    expect(again.status).toBe(0);
    expect(again.stdout).toMatch(/^tiny .*trained at 64 tokens · target 192\n6 strategies on 4 windows/);
    for (const sentence of whole.document.verdict) {
      expect(again.stdout.replace(/\s+/g, " ")).toContain(sentence);
    }
    expect(readFileSync(join(whole.folder, "rows.jsonl"), "utf8")).toBe(before);
    // Another command in the same folder is refused, with what differs.
    const other = longhand([...common(), "--needles", "0", "--windows", "3", "--out", whole.folder]);
    expect(other.status).toBe(2);
    expect(other.stderr).toMatch(
      /expected the run that the folder holds, got another one.*\n +windows\.length: 4 there, 3 here/,
    );
  });

  test("--dry-run prints the plan and writes nothing", () => {
    const out = join(root, "dry");
    const { status, stdout } = longhand([...common(), "--dry-run", "--json", "--strategies", "all", "--out", out]);
    expect(status).toBe(0);
    const { plan } = JSON.parse(stdout);
    expect(plan).toMatchObject({ windows: 4, bos: true });
    expect(plan.tokens).toBeGreaterThan(4 * 192 * 10);
    expect(plan.leftOut.map((one: { name: string }) => one.name)).toContain("longrope");
    // Groups of 4 reach (64 − 16) · 4 + 16 tokens.
    expect(plan.strategies).toContainEqual({ name: "self-extend:4:16", passes: 1 });
    expect(existsSync(out)).toBe(false);
  });

  test("lists of strategies and factors sweep; the baselines are always there; needles are asked where they fit", () => {
    const { status, stdout } = longhand([
      ...common(),
      ...["--strategies", 'yarn,{"rope_type":"linear","factor":2}', "--factor", "2,3"],
      ...["--windows", "1", "--needles", "1", "--out", join(root, "sweep"), "--json"],
    ]);
    expect(status).toBe(0);
    const { strategies, verdict, leftOut } = JSON.parse(stdout);
    expect(strategies.map((one: { strategy: string }) => one.strategy)).toEqual([
      "none",
      "yarn:2",
      "yarn:3",
      '{"rope_type":"linear","factor":2}',
      "window",
    ]);
    expect(verdict[0]).toMatch(/One window gives no interval/);
    // 64 tokens have no room for a needle of bytes; 192 have.
    expect(leftOut).toEqual([
      { name: "passkeys at 64", why: expect.stringMatching(/a length of at least \d+ tokens/) },
    ]);
    for (const { passkey } of strategies) {
      expect(passkey).toMatchObject([{ length: 192, found: { trials: 1 } }]);
    }
  });

  test("tokens in place of a text are read as they are", () => {
    const tokens = join(root, "tokens.json");
    writeFileSync(tokens, JSON.stringify({ tokens: [...readFileSync(text)] }));
    const args = common().flatMap((arg) => (arg === "--text" ? ["--tokens"] : arg === text ? [tokens] : [arg]));
    const { status, stdout } = longhand([
      ...args,
      "--strategies",
      "none",
      "--needles",
      "0",
      "--out",
      join(root, "ids"),
      "--json",
    ]);
    expect(status).toBe(0);
    const means = (rows: { strategy: string; meanNegativeLogLikelihood: number }[]) =>
      rows.filter((row) => row.strategy === "none").map((row) => row.meanNegativeLogLikelihood);
    // A byte is a token.
    expect(means(JSON.parse(stdout).rows)).toEqual(means(whole.document.rows));
  });

  test.each([
    ["a text that is too short", ["--target", "1M"], /expected a text of at least 1,048,575 tokens/],
    ["a text and tokens", ["--tokens", "ids.json"], /expected one of --text and --tokens, got both/],
    ["an unknown strategy", ["--strategies", "yarm:2"], /nearest: yarn/],
    [
      "a factor without a name",
      ["--strategies", "4,yarn:2"],
      /expected a name before a factor, as yarn:2,4,8, got "4"/,
    ],
    ["a factor that is none", ["--factor", "2,x"], /--factor: expected factors above 0/],
    ["a shard that is none", ["--shard", "3/2"], /--shard: expected INDEX\/COUNT/],
    ["another trained length than the file's", ["--trained-length", "32"], /the file says 64, got 32/],
  ])("%s is a usage error, exit 2", (_, args, message) => {
    const { status, stderr } = longhand([...common(), ...args]);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain("internal");
  });

  /** Starts the command; resolves once its folder holds more than `rows` rows, or it has ended. */
  async function untilRows(folder: string, rows: number) {
    const child = spawn(process.execPath, [bin, ...common(), "--needles", "0", "--out", folder], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let stderr = "";
    child.stderr.on("data", (part) => {
      stderr += part;
    });
    const exit = once(child, "exit");
    const path = join(folder, "rows.jsonl");
    while (child.exitCode === null && child.signalCode === null) {
      const there = existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
      if (there > rows) break;
      await new Promise((done) => setTimeout(done, 2));
    }
    return { child, exit, stderr: () => stderr };
  }

  test("killed with -9 again and again, it goes on, and ends with the same rows", async () => {
    const folder = join(root, "killed");
    for (const rows of [0, 9, 17]) {
      const { child, exit } = await untilRows(folder, rows);
      child.kill("SIGKILL");
      await exit;
    }
    const partial = rowsOf(folder).length;
    expect(partial).toBeGreaterThan(0);
    const { status } = longhand([...common(), "--needles", "0", "--out", folder]);
    expect(status).toBe(0);
    expect(rowsOf(folder)).toEqual(rowsOf(whole.folder));
  });

  test("Ctrl-C ends with 130, keeps what is done, and says how to go on", async () => {
    const folder = join(root, "interrupted");
    const { child, exit, stderr } = await untilRows(folder, 3);
    child.kill("SIGINT");
    const [code] = await exit;
    // It may have been done before the signal came.
    if (code !== 0) {
      expect(code).toBe(130);
      expect(stderr()).toMatch(
        /\d+ of 28 rows are in .*interrupted; to go on: longhand compare .* --out \S*interrupted\n/,
      );
    }
    expect(longhand([...common(), "--needles", "0", "--out", folder]).status).toBe(0);
    expect(rowsOf(folder)).toEqual(rowsOf(whole.folder));
  });

  test("parts are merged into what one run writes, row for row", () => {
    const folder = join(root, "parts");
    for (const part of ["1/2", "2/2"]) {
      const { status, stdout } = longhand([...common(), "--needles", "0", "--out", folder, "--shard", part]);
      expect(status).toBe(0);
      expect(stdout).toContain(`longhand merge ${folder}`);
    }
    expect(readdirSync(folder).sort()).toEqual(["shard-1-of-2", "shard-2-of-2"]);
    const merged = longhand(["merge", folder, "--json"]);
    expect(JSON.parse(merged.stdout)).toMatchObject({ run: folder, missing: [], rows: 28 });
    expect(rowsOf(folder)).toEqual(rowsOf(whole.folder));
    const half = longhand(["merge", join(folder, "shard-1-of-2"), "--out", join(root, "half")]);
    expect(half.stdout).toMatch(/missing: 2\/2/);

    const listed = JSON.parse(longhand(["runs", "list", root, "--json"]).stdout).runs;
    expect(listed.map((one: { path: string }) => one.path)).toContain(whole.folder);
    expect(longhand(["runs", "show", folder]).stdout).toMatch(/compare, 28 rows[\s\S]*loss in nats at/);
    expect(longhand(["runs", "diff", folder, whole.folder]).stdout).toMatch(/^The same settings\.\nnone/);
    const another = ["runs", "diff", folder, join(root, "sweep")];
    expect(longhand(another).stdout).toMatch(/^windows.*: .* in the first, .* in the second$/m);
    expect(longhand([...another, "--lang", "zh-TW"]).stdout).toMatch(
      /^視窗（文字：起始 token）（windows.*）：前者.*，後者/m,
    );
    expect(JSON.parse(longhand([...another, "--json"]).stdout).settings).toContainEqual(
      expect.objectContaining({
        code: "differs",
        values: expect.objectContaining({ place: expect.stringMatching(/^windows/) }),
      }),
    );
    expect(longhand(["runs", "show", root]).status).toBe(2);
    const shown = JSON.parse(longhand(["runs", "show", folder, "--json"]).stdout);
    expect(shown).toMatchObject({ run: folder, manifest: { kind: "compare" } });
    expect(shown.result.rows).toEqual(whole.document.rows);
    const difference = JSON.parse(longhand(["runs", "diff", folder, whole.folder, "--json"]).stdout);
    expect(difference).toMatchObject({ runs: [folder, whole.folder], settings: [] });
    expect(difference.results.length).toBe(6);
  });
});

describe("longhand perplexity", () => {
  const run = (...more: string[]) => longhand(["perplexity", model, "--text", text, "--max-tokens", "300", ...more]);

  test("names its protocol, counts tokens once, and gives bits per byte", () => {
    const { results } = JSON.parse(run("--json", "--length", "32,64").stdout);
    expect(results.length).toBe(2);
    for (const result of results) {
      expect(result).toMatchObject({ strategy: "as-is", protocol: "non-overlapping", tokens: 300, bytes: 300 });
      // A byte is a token here.
      expect(result.bitsPerByte).toBeCloseTo(Math.log2(result.perplexity), 9);
    }
    const sliding = run("--stride", "16");
    expect(sliding.stdout).toMatch(
      /as-is +64 +sliding-window, stride 16 +\d+\.\d{4} .* 300 +\d+\.\d{4}\nBOS at the head/,
    );
    expect(run("--stride", "64").stderr).toMatch(/stride from 1 to 63/);
    expect(run("--length", "192", "--strategies", "dynamic:2@growing:64,3@growing:64").stderr).toMatch(
      /--strategies: expected ones that read a window in one pass, got dynamic:2@growing:64; longhand compare runs it/,
    );
  });

  test("under several strategies, in a run folder that is read again", () => {
    const folder = join(root, "perplexity");
    const first = run("--strategies", "none,yarn:2", "--out", folder, "--json");
    const { results } = JSON.parse(first.stdout);
    expect(results.map((one: { strategy: string }) => one.strategy)).toEqual(["none", "yarn:2"]);
    expect(results[0].perplexity).not.toBeCloseTo(results[1].perplexity, 3);
    const again = JSON.parse(run("--strategies", "none,yarn:2", "--out", folder, "--json").stdout);
    expect(again.results).toEqual(results);
    const page = join(root, "perplexity.html");
    const report = JSON.parse(longhand(["report", folder, "-o", page, "--json"]).stdout);
    expect(report.runs).toEqual([{ run: folder, kind: "perplexity", model: "tiny", complete: true, verdict: [] }]);
    for (const { perplexity } of results) expect(readFileSync(page, "utf8")).toContain(`>${perplexity.toFixed(4)}<`);
  });
});

describe("longhand needle", () => {
  test("asks by length and depth, and gives effective lengths by name", () => {
    const { status, stdout } = longhand([
      "needle",
      model,
      "--lengths",
      "200,300",
      "--depths",
      "0,1",
      "--strategies",
      "none,window",
      "--greedy",
      "--json",
    ]);
    expect(status).toBe(0);
    const { results, rows, haystack } = JSON.parse(stdout);
    expect(haystack).toEqual({ kind: "generated" });
    expect(rows.length).toBe(2 * 2 * 2);
    for (const row of rows) {
      expect(row.fillRate).toBe(1);
      expect(row.rank).toBeGreaterThanOrEqual(1);
      expect(row.rank).toBeLessThanOrEqual(10);
      expect(typeof row.text).toBe("string");
    }
    expect(results.map((one: { strategy: string }) => one.strategy)).toEqual(["none", "window"]);
    expect(results[0].effectiveLengths.map((one: { definition: string }) => one.definition)).toEqual([
      "relative-score",
      "ruler",
    ]);
  });

  test("asks for associative recall where nothing else has room", () => {
    const args = ["needle", model, "--tasks", "associative-recall", "--lengths", "20,64", "--samples", "2", "--json"];
    const { rows } = JSON.parse(longhand(args).stdout);
    expect(rows.length).toBe(4);
    for (const row of rows) {
      expect(row).toMatchObject({ task: "associative-recall", depth: null, candidates: 10 });
      expect(row.fillRate).toBeGreaterThan(0.9);
    }
  });

  test("for people, in the user's text, several tasks", () => {
    const args = ["needle", model, "--text", text, "--lengths", "900", "--tasks", "single,multi-value"];
    const { status, stdout } = longhand(args);
    expect(status).toBe(0);
    expect(stdout).toMatch(/as-is\n +exact, by length +900\n +single +\d+ %\n +rank of 10 +\d+\.\d\n +multi-value/);
    expect(longhand([...args, "--tasks", "find"]).stderr).toMatch(/--tasks: expected passkey, single/);
  });
});

test.each(["compare", "needle", "perplexity"])(
  "%s refuses an encoder and a decoder with the reason, and says what takes them",
  (command) => {
    const { status, stderr } = longhand([
      command,
      checkpoint("t5").folder,
      ...(command === "needle" ? [] : ["--text", text]),
    ]);
    expect(status).toBe(2);
    expect(stderr).toMatch(
      /expected a decoder alone, .* got t5, whose encoder reads one text while its decoder writes another; longhand score/,
    );
  },
);
