// What the browser tests of the engine share: the tiny models that a page loads, and calls of test/browser/pages/engine.ts.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type * as EnginePage from "../browser/pages/engine.ts";
import type { TestPage } from "./browser.ts";
import { checkpoint, type GoldenCase, ggufCheckpoints } from "./checkpoints.ts";

/** Served as "/checkpoints". */
export const fixturesFolder: string = new URL("../fixtures/checkpoints/", import.meta.url).pathname;

/** Nats, on every token's loss. */
export const tolerance = 2e-4;

export interface BrowserModel {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly golden: GoldenCase;
  readonly precision: "float32" | "quantized";
}

const fromFolder = (family: string): BrowserModel => ({
  name: family,
  addresses: ["config.json", "model.safetensors"].map((file) => `/checkpoints/${family}/${file}`),
  golden: checkpoint(family).cases[0]!,
  precision: "float32",
});

function fromGguf(family: string, kind: string): BrowserModel {
  const found = ggufCheckpoints(family).find((one) => one.kind === kind)!;
  return {
    name: `${family} in ${kind}`,
    addresses: [join("/checkpoints/gguf", family, `${kind}.gguf`)],
    golden: found.cases[0]!,
    precision: "quantized",
  };
}

/** Rotary; sliding windows and two thetas; ALiBi; quantised blocks, whose minimum is a product of its own in Q4_1. */
export const browserModels: readonly BrowserModel[] = [
  fromFolder("llama"),
  fromFolder("gemma3"),
  fromFolder("bloom"),
  fromGguf("llama", "q4_1"),
];

/** The tiny Llama under Self-Extend, beyond its trained length. */
export function selfExtendCase(): {
  readonly addresses: readonly string[];
  readonly tokens: readonly number[];
  readonly scaling: string;
  readonly losses: readonly number[];
} {
  const golden = JSON.parse(readFileSync(new URL("../fixtures/self-extend.json", import.meta.url), "utf8"));
  const { groupSize, neighborWindow, losses } = golden.families.llama[0];
  const { addresses } = fromFolder("llama");
  return { addresses, tokens: golden.tokens, scaling: `self-extend:${groupSize}:${neighborWindow}`, losses };
}

type Page = typeof EnginePage;
type Callable = "runOps" | "runModel" | "runTogether" | "loadCase";

/** Calls a function of the page that was bundled. */
export function callPage<F extends Callable>(
  { page }: TestPage,
  name: F,
  ...args: Parameters<Page[F]>
): Promise<Awaited<ReturnType<Page[F]>>> {
  return page.evaluate<Awaited<ReturnType<Page[F]>>>(
    `import("/page.js").then((page) => page[${JSON.stringify(name)}](...${JSON.stringify(args)}))`,
  );
}
