// The built command with --endpoint, against servers in the test's process.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LanguageModel, loadLanguageModel } from "../../src/engine/index.ts";
import { byteTokenizer } from "../../src/formats/index.ts";
import { cli } from "../support/cli.ts";
import {
  llamaServerServer,
  ollamaServer,
  type Served,
  sglangServer,
  type TestServer,
  vllmServer,
} from "../support/inference-servers.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

const folder = mkdtempSync(join(tmpdir(), "longhand-cli-endpoints-"));
const path = writeTinyModel(join(folder, "model"));
/** What a machine that does not have the weights knows of the model. */
const described = writeTinyModel(join(folder, "described"));
const text = join(folder, "text.txt");
const tokenizer = byteTokenizer();
let model: LanguageModel;
let served: Served;

beforeAll(async () => {
  rmSync(join(described, "model.safetensors"));
  writeFileSync(text, "The ship sailed at noon, and nobody on the quay looked up. ".repeat(40));
  model = await loadLanguageModel(path, { threads: 1 });
  served = { model, tokenizer };
  // A busy machine loads the runtime in tens of seconds.
}, 240_000);
afterAll(async () => {
  await model?.dispose();
  rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Not the synchronous one: the servers are in this process. */
function longhand(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, ...args], {
      env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "", ...env },
      cwd: folder,
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (data) => {
      stdout += data;
    });
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, stdout, stderr }));
  });
}

async function json(args: readonly string[], env?: Record<string, string>) {
  const { status, stdout, stderr } = await longhand([...args, "--json"], env);
  if (status !== 0) throw new Error(`test: longhand ${args.join(" ")} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}

test("score gives a server's losses, of a model whose weights are elsewhere", async () => {
  await using server = await vllmServer(served);
  const [over, own] = await Promise.all([
    json(["score", described, "--text", text, "--length", "60", "--endpoint", server.address]),
    json(["score", path, "--text", text, "--length", "60"]),
  ]);
  expect(over.tokens).toEqual(own.tokens);
  expect(over.endpoint).toMatchObject({ engine: "vllm", version: "0.33.0", tokenizer: "the same" });
  expect(Math.abs(over.meanNegativeLogLikelihood - own.meanNegativeLogLikelihood)).toBeLessThan(1e-6);
  const { status, stderr } = await longhand([
    "score",
    described,
    "--text",
    text,
    "--scaling",
    "yarn:2",
    "--endpoint",
    server.address,
  ]);
  expect(status).toBe(2);
  expect(stderr).toMatch(/--scaling: expected none with --endpoint, since a server runs what it was started with/);
});

describe("compare", () => {
  const key = "sk-not-to-be-seen";
  const common = ["--text", text, "--target", "2x", "--windows", "2", "--needles", "1"];

  test("over a server a strategy equals the local one, and keeps no key", async () => {
    await using none = await vllmServer(served);
    await using yarn = await vllmServer({ ...served, encoding: { scaling: "yarn:2" } });
    const endpoint = `none=${none.address},yarn:2=${yarn.address}/v1`;
    const out = join(folder, "run");
    const over = await json(["compare", described, ...common, "--endpoint", endpoint, "--out", out], {
      LONGHAND_API_KEY: key,
    });
    const own = await json(["compare", path, ...common, "--strategies", "yarn:2"]);
    expect(over.strategies.map((one: { strategy: string }) => one.strategy)).toEqual(["none", "yarn:2", "window"]);
    for (const [i, row] of own.rows.entries()) {
      expect(over.rows[i]).toMatchObject({ strategy: row.strategy, position: row.position, tokens: row.tokens });
      expect(Math.abs(over.rows[i].meanNegativeLogLikelihood - row.meanNegativeLogLikelihood)).toBeLessThan(1e-6);
    }
    expect(none.requests.every(({ headers }) => headers.authorization === `Bearer ${key}`)).toBe(true);
    const manifest = readFileSync(join(out, "manifest.json"), "utf8");
    const kept = manifest + readFileSync(join(out, "rows.jsonl"), "utf8");
    expect(kept).not.toContain(key);
    expect(JSON.parse(manifest).identity.endpoints).toEqual([
      { strategy: "none", engine: "vllm", version: "0.33.0", model: "tiny", losses: "prompt" },
      { strategy: "yarn:2", engine: "vllm", version: "0.33.0", model: "tiny", losses: "prompt" },
    ]);
    // Again, elsewhere: the same run, and nothing left to ask.
    await using other = await vllmServer(served);
    const moved = `none=${other.address},yarn:2=${yarn.address}`;
    const again = await json(["compare", described, ...common, "--endpoint", moved, "--out", out]);
    expect(again.rows).toEqual(over.rows);
    expect(other.requests.filter(({ body }) => body.prompt?.length > 100)).toEqual([]);
  });

  test("goes on after its server was gone, and says how", async () => {
    let left = 3;
    await using server = await vllmServer(served, {
      before: (_, __, body) => (body.prompt?.length > 60 && left-- <= 0 ? { status: 400, body: "gone" } : undefined),
    });
    const out = join(folder, "stopped");
    const args = ["compare", described, ...common, "--endpoint", server.address, "--out", out, "--concurrency", "1"];
    const stopped = await longhand(args);
    expect(stopped.status).toBe(2);
    expect(stopped.stderr).toMatch(/rows are in .*stopped; to go on: .*compare/);
    expect(stopped.stderr).toMatch(/expected status 200, got 400: gone/);
    left = 1000;
    const { complete, strategies } = await json(args);
    expect(complete).toBe(true);
    expect(strategies.map((one: { strategy: string }) => one.strategy)).toEqual(["none", "window"]);
  });

  test("says what no server runs, and what is no address, without repeating it", async () => {
    await using server = await vllmServer(served);
    const asked = await longhand([
      "compare",
      described,
      ...common,
      "--endpoint",
      `none=${server.address}`,
      "--strategies",
      "none,linear:2",
    ]);
    expect(asked.stderr).toMatch(
      /expected ones that a server of --endpoint runs \(none\), got linear:2; add linear:2=http/,
    );
    const secret = await longhand(["compare", described, ...common, "--endpoint", "http://me:secret@host"]);
    expect(secret.status).toBe(2);
    expect(secret.stderr).toMatch(/without user, password, query and fragment/);
    expect(secret.stderr).not.toContain("secret");
    const alone = await longhand(["compare", path, ...common, "--engine", "vllm"]);
    expect(alone.stderr).toMatch(/--engine: expected --endpoint beside it/);
  });
});

test("perplexity and needle over servers equal the local ones", async () => {
  await using sglang = await sglangServer(served);
  await using llama = await llamaServerServer(served);
  const perplexity = ["--text", text, "--length", "64", "--max-tokens", "400"];
  const needle = ["--lengths", "130", "--depths", "0,1"];
  const results = await Promise.all([
    json(["perplexity", described, ...perplexity, "--endpoint", sglang.address]),
    json(["perplexity", path, ...perplexity]),
    json(["needle", described, ...needle, "--endpoint", llama.address, "--greedy"]),
    json(["needle", path, ...needle, "--greedy"]),
  ]);
  const [over, own, asked, ownAsked] = results;
  expect(over.results[0].perplexity).toBeCloseTo(own.results[0].perplexity, 4);
  expect(over.results[0].bitsPerByte).toBeCloseTo(own.results[0].bitsPerByte, 6);
  for (const [i, row] of ownAsked.rows.entries()) {
    const { exact, rank, text } = row;
    expect(asked.rows[i]).toMatchObject({ exact, rank, text });
    expect(asked.rows[i].logLikelihood).toBeCloseTo(row.logLikelihood, 3);
  }
  const refused = await longhand(["perplexity", described, ...perplexity, "--endpoint", llama.address]);
  expect(refused.status).toBe(2);
  expect(refused.stderr).toMatch(/ignores echo/);
  await using ollama = await ollamaServer();
  const other = await longhand(["needle", described, ...needle, "--endpoint", ollama.address]);
  expect(other.stderr).toMatch(/got Ollama 0\.21\.0/);
});

describe("verify", () => {
  const verify = (server: TestServer, ...more: string[]) =>
    longhand(["verify", path, "--text", text, "--length", "128", "--endpoint", server.address, ...more]);

  test("says whether a scaling is in force, and exits 1 when it is not", async () => {
    await using yarn = await vllmServer({ ...served, encoding: { scaling: "yarn:2" } });
    await using none = await vllmServer(served);
    const [held, missing] = await Promise.all([
      verify(yarn, "--scaling", "yarn:2"),
      verify(none, "--scaling", "yarn:2", "--json"),
    ]);
    expect(held).toMatchObject({ status: 0 });
    expect(held.stdout).toMatch(/^yarn:2: vllm 0\.33\.0 · 1 server · context 4,096\n/);
    expect(held.stdout).toMatch(/yarn:2 is in force\./);
    expect(missing.status).toBe(1);
    expect(JSON.parse(missing.stdout)).toMatchObject({ verdict: "not-in-force", asked: "yarn:2", nearest: "none" });
    const two = await longhand([
      "verify",
      described,
      "--text",
      text,
      "--length",
      "128",
      "--endpoint",
      `none=${none.address},yarn:2=${none.address}`,
    ]);
    expect(two.status).toBe(1);
    expect(two.stdout).toMatch(/The two servers' losses are the same: yarn:2 is NOT in force, or both run it\./);
  });
});
