// The lab's server: what it serves, and what it refuses.

import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtInModelsIn } from "../../src/formats/built-in-models.ts";
import { type Lab, startLab } from "../../src/server/lab.ts";

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
  lab = await start();
});

afterAll(async () => {
  await lab.close();
  await rm(folder, { recursive: true, force: true });
});

function start(port = 0): Promise<Lab> {
  return startLab({ page: join(folder, "web"), port, models: builtInModelsIn(join(folder, "models")) });
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request whose path is sent as it is written, which fetch would tidy up. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
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
    sent.end();
  });
}

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
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) expect((await ask("/", {}, method)).status).toBe(405);
  });

  test("to start without a built page, naming the command that builds it", async () => {
    await expect(startLab({ page: join(folder, "models"), port: 0 })).rejects.toThrow(/npm run build/);
    await expect(startLab({ page: join(folder, "web"), port: 70_000 })).rejects.toThrow(/expected an integer/);
  });
});
