// What real llama.cpp servers answered, word for word (reference/llama_servers.py), read as models to score: the two agree
// with each other, and with our own engine on the same weights where they are at hand.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { openEndpoint } from "../../src/endpoints/index.ts";
import { loadLanguageModel } from "../../src/engine/index.ts";
import { openTokenizer } from "../../src/formats/index.ts";
import { sharedFile } from "../support/real-files.ts";

interface Exchange {
  readonly server: "llama-cpp-python" | "llama-server";
  readonly path: string;
  readonly body: unknown;
  readonly status: number;
  readonly answer?: unknown;
  readonly text?: string;
}

const recorded: { text: string; tokens: number[]; exchanges: Exchange[] } = JSON.parse(
  readFileSync(new URL("../fixtures/endpoints.json", import.meta.url), "utf8"),
);
const sample = { text: recorded.text, tokens: recorded.tokens.slice(1), bos: recorded.tokens[0]! };

/** Answers as it was answered, and nothing that was not asked. */
async function replay(server: Exchange["server"]) {
  const key = (path: string, body: unknown): string =>
    JSON.stringify([path, body], (_, value) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
    );
  const answers = new Map(
    recorded.exchanges.filter((one) => one.server === server).map((one) => [key(one.path, one.body), one]),
  );
  const unknown: string[] = [];
  const http = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    const found = answers.get(key(request.url!, text === "" ? null : JSON.parse(text)));
    if (found === undefined) unknown.push(`${request.url} ${text.slice(0, 200)}`);
    response.writeHead(found?.status ?? 404);
    response.end(found?.text ?? JSON.stringify(found?.answer ?? { detail: "Not Found" }));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    unknown,
    [Symbol.asyncDispose]: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

async function losses(server: Exchange["server"]): Promise<Float64Array> {
  await using real = await replay(server);
  const model = await openEndpoint(real.address, { sample, tokenByToken: true, backoffMs: 1 });
  const { negativeLogLikelihood } = await model.score(recorded.tokens);
  expect(real.unknown).toEqual([]);
  expect(model.facts).toMatchObject({ engine: server, model: "stories260K.gguf", tokenizer: "the same" });
  return negativeLogLikelihood;
}

const furthest = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a, (loss, i) => Math.abs(loss - b[i]!)).reduce((most, x) => Math.max(most, x), 0);

describe("recorded llama.cpp servers", () => {
  test("llama-cpp-python's echo and llama-server's forced tokens are the same losses", async () => {
    const [echo, forced] = [await losses("llama-cpp-python"), await losses("llama-server")];
    expect(echo).toHaveLength(recorded.tokens.length - 1);
    expect(furthest(echo, forced)).toBeLessThan(0.02);
  });

  test("ours on the same weights are too", async () => {
    const file = sharedFile("models/stories260K/tinyllamas-stories-260k-f32.gguf");
    if (file === null) return;
    const tokenizer = await openTokenizer(file);
    expect(tokenizer.encode(recorded.text)).toEqual(recorded.tokens);
    await using model = await loadLanguageModel(file);
    const { negativeLogLikelihood } = await model.score(recorded.tokens);
    for (const server of ["llama-cpp-python", "llama-server"] as const) {
      expect(furthest(negativeLogLikelihood, await losses(server))).toBeLessThan(0.02);
    }
  });

  test("without --token-by-token llama-server answers questions alone, and what it generates is ours", async () => {
    await using real = await replay("llama-server");
    const model = await openEndpoint(real.address, { sample, backoffMs: 1 });
    expect(model.facts).toMatchObject({ losses: "none", contextLength: 512, repeatDifference: 0 });
    const generated: number[] = [];
    for await (const { token } of model.generate(recorded.tokens, { maxTokens: 8 })) generated.push(token);
    expect(generated).toHaveLength(8);
    const { logLikelihood, isGreedy } = await model.loglikelihood(
      recorded.tokens.slice(0, -3),
      recorded.tokens.slice(-3),
    );
    expect(logLikelihood).toBeLessThan(0);
    expect(typeof isGreedy).toBe("boolean");
  });
});
