// The lab's server: what it serves, and what it refuses.

import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  compareResult,
  liveCompare,
  memoryRunFiles,
  openRun,
  type RunView,
  readRun,
} from "../../src/evaluation/index.ts";
import { builtInModelsIn } from "../../src/formats/built-in-models.ts";
import { tokenHeader } from "../../src/server/guard.ts";
import { type Lab, startLab } from "../../src/server/lab.ts";
import { hostileNames, madeCompare } from "../support/report-runs.ts";
import { writeTinyModel } from "../support/tiny-model.ts";

let folder: string;
let lab: Lab;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "longhand-lab-"));
  await mkdir(join(folder, "web", "assets"), { recursive: true });
  await mkdir(join(folder, "models", "tiny"), { recursive: true });
  await writeFile(join(folder, "secret.txt"), "secret");
  await writeFile(join(folder, "web", "index.html"), "<!doctype html>page");
  await writeFile(join(folder, "web", "assets", "page.js"), "export {};");
  await writeFile(join(folder, "web", ".hidden"), "secret");
  await symlink(join(folder, "secret.txt"), join(folder, "web", "link.txt"));
  await writeFile(join(folder, "models", "tiny", "config.json"), '{"model_type":"llama"}');
  await symlink(join(folder, "secret.txt"), join(folder, "models", "secret.txt"));
  writeTinyModel(join(folder, "elsewhere", "small"));
  await writeRun("older/good", { model: "good" });
  await writeRun("hostile", { model: hostileNames[1]!, strategies: ["none", ...hostileNames] });
  await mkdir(join(folder, "runs", "broken"));
  await writeFile(join(folder, "runs", "broken", "manifest.json"), '{"format":"longhand-run","secret');
  // Ways out: a folder, a manifest and rows that are links.
  await writeRun("../outside/run", { model: "outside" });
  await symlink(join(folder, "outside"), join(folder, "runs", "away"));
  await mkdir(join(folder, "runs", "link"));
  await symlink(join(folder, "outside", "run", "manifest.json"), join(folder, "runs", "link", "manifest.json"));
  await writeRun("rows", { model: "rows" });
  await rm(join(folder, "runs", "rows", "rows.jsonl"));
  await symlink(join(folder, "outside", "run", "rows.jsonl"), join(folder, "runs", "rows", "rows.jsonl"));
  lab = await start();
});

async function writeRun(id: string, options: { model: string; strategies?: readonly string[] }): Promise<void> {
  const { model, strategies = ["none", "yarn:4", "window"] } = options;
  const made = await madeCompare({
    model,
    strategies: strategies.map((name, i) => ({ name, within: 2, beyond: 3 - i / 10 })),
    needles: 2,
  });
  const { kind, identity } = made.manifest;
  await using run = await openRun(join(folder, "runs", id), { kind, identity });
  for (const row of made.rows) await run.append(row);
}

afterAll(async () => {
  await lab.close();
  await rm(folder, { recursive: true, force: true });
});

function start(port = 0): Promise<Lab> {
  const models = builtInModelsIn(join(folder, "models"));
  return startLab({ page: join(folder, "web"), port, models, runs: join(folder, "runs"), token: "secret-token" });
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request whose path is sent as it is written, which fetch would tidy up. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET", sentBody?: unknown): Promise<Answer> {
  return new Promise((done, fail) => {
    const sent = httpRequest({ host: "127.0.0.1", port: lab.port, path, method, headers }, (answer) => {
      let body = "";
      answer.setEncoding("utf8");
      answer.on("data", (part: string) => {
        body += part;
      });
      answer.on("end", () => done({ status: answer.statusCode!, headers: answer.headers, body }));
    });
    sent.on("error", fail);
    sent.end(sentBody === undefined ? undefined : JSON.stringify(sentBody));
  });
}

const withToken = { [tokenHeader]: "secret-token" };

describe("the lab serves", () => {
  test("the page, its files with their types, and the models' files", async () => {
    expect(await ask("/?page=clock")).toMatchObject({ status: 200, body: "<!doctype html>page" });
    expect((await ask("/assets/page.js")).headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(JSON.parse((await ask("/models/index.json")).body)).toEqual(["tiny"]);
    expect(await ask("/models/tiny/config.json")).toMatchObject({ status: 200, body: '{"model_type":"llama"}' });
    expect(await ask("/", {}, "HEAD")).toMatchObject({ status: 200, body: "" });
  });

  test("under a policy that lets the page load nothing from elsewhere", async () => {
    for (const path of ["/", "/nothing", "/models/tiny/config.json"]) {
      const { headers } = await ask(path);
      const policy = headers["content-security-policy"]!;
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/'unsafe-inline'|'unsafe-eval'|https?:|\*/);
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  test("on 127.0.0.1 and on no other address of this machine", async () => {
    const others = Object.values(networkInterfaces())
      .flat()
      .filter((one) => one !== undefined && !one.internal && one.family === "IPv4");
    const reached = await Promise.all(
      ["127.0.0.2", ...others.map((one) => one!.address)].map((address) =>
        fetch(`http://${address}:${lab.port}/`, { signal: AbortSignal.timeout(2000) }).then(
          () => address,
          () => null,
        ),
      ),
    );
    expect(reached.filter((address) => address !== null)).toEqual([]);
  });

  test("on the next port when the one asked for is taken", async () => {
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const { port } = other.address() as { port: number };
    const next = await start(port);
    expect(next.port).toBeGreaterThan(port);
    await next.close();
    await next.close();
    await new Promise((done) => other.close(done));
  });
});

describe("the lab refuses", () => {
  test("a Host that is another name, as DNS rebinding sends it", async () => {
    for (const host of ["evil.example", `evil.example:${lab.port}`, "127.0.0.1", `127.0.0.1:${lab.port + 1}`]) {
      const { status, body } = await ask("/models/index.json", { host });
      expect(status, host).toBe(403);
      expect(body).not.toContain("tiny");
    }
    expect((await ask("/", { host: `localhost:${lab.port}` })).status).toBe(200);
  });

  test("an Origin that is another site", async () => {
    for (const origin of ["http://evil.example", "null", `https://127.0.0.1:${lab.port}`, "http://127.0.0.1:1"]) {
      expect((await ask("/models/index.json", { origin })).status, origin).toBe(403);
    }
    expect((await ask("/models/index.json", { origin: `http://127.0.0.1:${lab.port}` })).status).toBe(200);
  });

  test("what another site's page loads, but not a link that opens the lab", async () => {
    const load = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" };
    expect((await ask("/assets/page.js", load)).status).toBe(403);
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    expect((await ask("/", link)).status).toBe(200);
    expect((await ask("/", { ...link, "sec-fetch-dest": "iframe" })).status).toBe(403);
  });

  test("every way out of its folders", async () => {
    const paths = [
      "/../secret.txt",
      "/%2e%2e/secret.txt",
      "/..%2fsecret.txt",
      "/assets/..%2f..%2fsecret.txt",
      "/..%5csecret.txt",
      "/link.txt",
      "/.hidden",
      "/assets",
      "/%00",
      "/%ff",
      "/%252e%252e/secret.txt",
      "/models/../secret.txt",
      "/models/tiny/..%2f..%2fsecret.txt",
      "/models/tiny/%2e%2e%2f%2e%2e%2fsecret.txt",
      "/models/..%2ftiny/config.json",
      "/models/secret.txt/config.json",
      "/models/tiny",
      `/${"a".repeat(5000)}`,
    ];
    for (const path of paths) {
      const { status, body } = await ask(path);
      expect(status, path).toBe(404);
      expect(body, path).not.toContain("secret");
    }
  });

  test("whatever is not a reading", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      for (const path of ["/", "/models/index.json"]) expect((await ask(path, withToken, method)).status).toBe(405);
    }
    for (const method of ["PUT", "PATCH", "OPTIONS"]) {
      expect((await ask("/api/compare", withToken, method)).status).toBe(405);
    }
  });

  test("to start without a built page, naming the command that builds it", async () => {
    await expect(startLab({ page: join(folder, "models"), port: 0 })).rejects.toThrow(/npm run build/);
    await expect(startLab({ page: join(folder, "web"), port: 70_000 })).rejects.toThrow(/expected an integer/);
  });
});

describe("run folders", () => {
  const json = async (path: string) => JSON.parse((await ask(path)).body);

  test("are listed, broken ones with the reason, and shown as the library reports them", async () => {
    const { runs } = await json("/api/runs");
    expect(runs.map(({ id }: { id: string }) => id).sort()).toEqual(["broken", "hostile", "older/good", "rows"]);
    const of = (id: string) => runs.find((run: { id: string }) => run.id === id);
    expect(of("older/good")).toMatchObject({
      kind: "compare",
      model: "good",
      target: 256,
      rows: 9 + 12,
      wantedRows: 21,
    });
    expect(of("older/good").about).toEqual(["none", "yarn:4", "window"]);
    expect(of("broken").error).toMatch(/manifest\.json: expected JSON/);
    expect(of("rows").error).toMatch(/got links/);
    const { view } = (await json("/api/runs/show?id=older/good")) as { view: RunView };
    const { manifest, rows } = await readRun(join(folder, "runs", "older", "good"));
    expect(view.section).toMatchObject({
      result: JSON.parse(JSON.stringify(compareResult(manifest.identity as never, rows))),
    });
    expect(view.charts[0]!.curves.map(({ name }) => name)).toEqual(["none", "yarn:4", "window"]);
    expect((await json("/api/runs/diff?id=older/good&id=older/good")).differences).toEqual([]);
    expect((await json("/api/runs/diff?id=older/good&id=hostile")).differences[0]).toMatchObject({
      code: "differs",
      values: { place: "model", there: '"good"' },
      message: expect.stringMatching(/^model: "good" there, ".*" here$/),
    });
  });

  test("are not reached outside the folder, whatever the id", async () => {
    const ids = [
      "..",
      "../outside/run",
      "away/run",
      "link",
      "rows",
      "/etc",
      "older/../../outside/run",
      "older",
      "",
      ".",
    ];
    ids.push(
      join(folder, "outside", "run"),
      "..\\outside\\run",
      "nothing",
      "good\0",
      "a/b/c/d/e/f",
      "%2e%2e/outside/run",
    );
    for (const id of ids) {
      for (const path of [
        `/api/runs/show?id=${encodeURIComponent(id)}`,
        `/api/runs/report?id=${encodeURIComponent(id)}`,
      ]) {
        const { status, body } = await ask(path);
        expect(status, path).toBe(404);
        expect(body, path).not.toContain('outside"');
      }
    }
    expect((await ask("/api/runs/show")).status).toBe(400);
    expect((await ask("/api/runs/report?id=hostile&format=constructor")).status).toBe(400);
    expect((await ask("/api/runs/show?id=broken")).status).toBe(422);
  });

  test("of a stranger, with names that are markup, stay text; a report is saved and never shown", async () => {
    const { body } = await ask("/api/runs/show?id=hostile");
    // Characters that turn the direction of writing are shown by their numbers.
    expect(/[\u202a-\u202e\u2066-\u2069]/.test(body)).toBe(false);
    const { view } = JSON.parse(body) as { view: RunView };
    expect(view.section.title.length).toBeGreaterThan(3);
    const report = await ask("/api/runs/report?id=hostile&format=html");
    expect(report.headers["content-disposition"]).toBe('attachment; filename="hostile.html"');
    expect(/<script>window|<img/i.test(report.body)).toBe(false);
    expect(report.headers["content-security-policy"]).toContain("default-src 'none'");
    for (const format of ["csv", "jsonl", "md", "svg"]) {
      const answer = await ask(`/api/runs/report?id=older/good&id=hostile&format=${format}`);
      expect(answer.status, format).toBe(200);
      expect(answer.headers["content-disposition"], format).toBe(`attachment; filename="longhand-report.${format}"`);
      expect(answer.headers["x-content-type-options"], format).toBe("nosniff");
    }
  });
});

describe("compares on the server", () => {
  const text = Array.from({ length: 120 }, (_, i) => `The ${i % 7} millers hid lamp ${i}.`).join(" ");
  const question = {
    text: { name: "../../my lamps.txt", text },
    target: "2x",
    strategies: "none,linear,window",
    windows: 2,
    needles: 1,
    seed: 3,
  };
  const small = () => ({ kind: "path", path: join(folder, "elsewhere", "small") });
  const post = (path: string, body: unknown, headers = {}) =>
    ask(path, { ...withToken, "content-type": "application/json", ...headers }, "POST", body);
  const eventsOf = async (job: string) => {
    const { status, body } = await ask(`/api/compare/${job}/events`, withToken);
    expect(status).toBe(200);
    return body
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  };

  test("need the token: nothing is read elsewhere and nothing is written without it", async () => {
    const before = (await readdir(join(folder, "runs"))).sort();
    const body = { model: small(), ...question };
    for (const headers of [
      {},
      { [tokenHeader]: "" },
      { [tokenHeader]: "secret-tokem" },
      { authorization: "secret-token" },
    ]) {
      for (const path of ["", "/", "/plan", "/model", "/resume"]) {
        const answer = await ask(`/api/compare${path}`, headers, "POST", body);
        expect(answer.status, path).toBe(401);
        expect(answer.body).not.toContain("small");
      }
      expect((await ask("/api/compare/running", headers)).status).toBe(401);
      expect((await ask("/api/compare/x", headers, "DELETE")).status).toBe(401);
    }
    expect((await ask("/api/compare?token=secret-token", {}, "POST", body)).status).toBe(401);
    expect((await readdir(join(folder, "runs"))).sort()).toEqual(before);
    expect(JSON.parse((await ask("/api/lab")).body).hasToken).toBe(false);
    expect(JSON.parse((await ask("/api/lab", withToken)).body).hasToken).toBe(true);
    expect((await ask("/")).body).not.toContain("secret-token");
    expect(lab.link).toBe(`${lab.address}#token=secret-token`);
  });

  test("are refused to other sites and rebound names, also with the token", async () => {
    const body = { model: small(), ...question };
    for (const headers of [
      { host: `evil.example:${lab.port}` },
      { origin: "http://evil.example" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" },
    ]) {
      expect((await post("/api/compare", body, headers)).status).toBe(403);
      expect((await ask("/api/runs", { ...withToken, ...headers })).status).toBe(403);
    }
  });

  test("say what is wrong with a question", async () => {
    const bad = async (changes: object) => {
      const { status, body } = await post("/api/compare/plan", { model: small(), ...question, ...changes });
      expect(status).toBe(422);
      return body;
    };
    expect(await bad({ model: { kind: "built-in", name: "../elsewhere/small" } })).toMatch(
      /expected the name of a built-in/,
    );
    expect(await bad({ model: { kind: "path", path: join(folder, "nothing") } })).toMatch(/does not exist/);
    expect(await bad({ strategies: "yam:4" })).toMatch(/expected one of/);
    expect(await bad({ windows: 0 })).toMatch(/windows as an integer in 1/);
    expect(await bad({ target: "1e9" })).toMatch(/--target: expected/);
    expect(await bad({ text: { name: "short.txt", text: "short" } })).toMatch(/at least/);
    expect(await bad({ colour: 1 })).toMatch(/got "colour"/);
    expect((await ask("/api/compare", withToken, "POST")).status).toBe(422);
  });

  test("give the library's numbers, stream while they run, and go on after being cancelled", async () => {
    const { choices, target } = JSON.parse((await post("/api/compare/model", { model: small(), target: "2x" })).body);
    expect([target, choices[0]]).toEqual([128, { name: "none", usual: true }]);
    const plan = JSON.parse((await post("/api/compare/plan", { model: small(), ...question })).body);
    expect(plan).toMatchObject({ target: 128, windows: 2, strategies: ["none", "linear:2", "window"] });

    const start = async () => JSON.parse((await post("/api/compare", { model: small(), ...question })).body).job;
    const first = await start();
    expect((await post("/api/compare", { model: small(), ...question })).status).toBe(409);
    expect((await ask(`/api/compare/${first}`, withToken, "DELETE")).status).toBe(200);
    const cancelled = await eventsOf(first);
    expect(cancelled.at(-1).event).toBe("cancelled");

    const events = await eventsOf(await start());
    expect(events.at(-1).event).toBe("done");
    const { run } = events.find(({ event }) => event === "run");
    expect((await readdir(join(folder, "runs", run))).sort()).toEqual([
      "lab.json",
      "manifest.json",
      "my-lamps.txt",
      "rows.jsonl",
    ]);
    const resumed = await eventsOf(JSON.parse((await post("/api/compare/resume", { run })).body).job);
    expect(resumed.find(({ event }) => event === "started").rows).toBe(plan.rows);

    // The same question in memory, without a server.
    const files = memoryRunFiles();
    await liveCompare(small().path, question, { version: "0.1.0", place: () => files, onEvent: () => {} });
    const [there, here] = await Promise.all([readRun(join(folder, "runs", run)), readRun(files)]);
    const losses = ({ rows }: typeof here) => rows.map(({ measured, ...row }) => row);
    expect(losses(there)).toEqual(losses(here));
    expect(there.manifest.identityHash).toBe(here.manifest.identityHash);
    const { view } = events.findLast(({ event }) => event === "result");
    expect(view.section.result).toEqual(
      JSON.parse(JSON.stringify(compareResult(here.manifest.identity as never, here.rows))),
    );
    // The command that goes on with it, as the command line would be typed.
    expect(there.manifest.sessions.at(-1)!.command!.slice(0, 3)).toEqual(["longhand", "compare", small().path]);
    expect(await readFile(join(folder, "runs", run, "my-lamps.txt"), "utf8")).toBe(text);
    expect((await post("/api/compare/resume", { run: "older/good" })).body).toMatch(
      /expected a run that the lab began/,
    );
    expect((await post("/api/compare/resume", { run: "../outside/run" })).body).toMatch(
      /expected a run of this folder/,
    );
  });
});
