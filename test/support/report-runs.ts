// Runs as longhand compare writes them, made of seeded losses: for tests of reports, which read manifests and rows alone.

import { memoryRunFiles, openRun, type ReportRun, type RunRow, readRun } from "../../src/evaluation/index.ts";
import { random } from "../../src/tensor/index.ts";

export interface MadeStrategy {
  readonly name: string;
  /** Mean loss within the trained length and beyond it. */
  readonly within: number;
  readonly beyond: number;
  readonly ownPasses?: boolean;
}

export interface MadeCompare {
  readonly path?: string;
  readonly model?: string;
  readonly strategies: readonly MadeStrategy[];
  readonly target?: number;
  readonly trainedLength?: number | null;
  readonly windows?: number;
  /** Windows whose rows are there; all when absent. */
  readonly done?: number;
  readonly needles?: number;
  /** Spread of losses. */
  readonly noise?: number;
  readonly seed?: number;
  readonly more?: Record<string, unknown>;
  readonly command?: readonly string[];
}

export async function madeCompare(options: MadeCompare): Promise<ReportRun> {
  const { strategies, target = 256, trainedLength = 64, windows = 3, done = windows, needles = 0 } = options;
  const needleLengths = needles === 0 ? [] : [trainedLength ?? target, target];
  const stream = random(options.seed ?? 1);
  const identity = {
    longhand: "0.1.0",
    files: { "model.gguf": "0f".repeat(32) },
    precision: "auto",
    protocol: 1,
    model: options.model ?? "tiny",
    trainedLength,
    target,
    bos: 1,
    texts: [{ name: "book.txt", sha256: "ab".repeat(32), tokens: 4096 }],
    windows: Array.from({ length: windows }, (_, i) => ({ text: 0, start: i * target })),
    strategies: strategies.map(({ name, ownPasses }) => ({
      name,
      encoding: { scaling: { kind: "none" } },
      reading: /^window/.test(name) ? { kind: "windowed", window: 64, stride: 32 } : { kind: "whole" },
      short: ownPasses ? "own-passes" : "same-passes",
    })),
    needles,
    needleLengths,
    haystack: "text",
    seed: 7,
    ...options.more,
  };
  const files = memoryRunFiles(options.path ?? "runs/tiny");
  const command = options.command ?? ["longhand", "compare", "model.gguf", "--text", "my book.txt"];
  const run = await openRun(files, { kind: "compare", identity: identity as never, session: { command } });
  const rounded = (x: number): number => Math.round(x * 1e6) / 1e6;
  for (let window = 0; window < done; window++) {
    // Common to all strategies, so that pairing has something to cancel.
    const chapter = Array.from({ length: target - 1 }, () => 0.3 * stream.normal());
    for (const { name, within, beyond, ownPasses } of strategies) {
      const edge = trainedLength ?? target;
      const losses = chapter.map((x, i) =>
        rounded(Math.abs((i + 1 < edge ? within : beyond) + x + (options.noise ?? 0.05) * stream.normal())),
      );
      await run.append({ key: `loss/${name}/${window}`, kind: "loss", strategy: name, window, length: target, losses });
      if (!ownPasses) continue;
      const short = losses.slice(0, edge - 1);
      await run.append({
        key: `short/${name}/${window}`,
        kind: "short",
        strategy: name,
        window,
        length: edge,
        losses: short,
      });
    }
  }
  for (let needle = 0; needle < needles; needle++) {
    for (const length of needleLengths) {
      for (const { name } of strategies) {
        const exact = length === target && name === "none" ? 0 : 1;
        const row: RunRow = {
          key: `passkey/${name}/${length}/${needle}`,
          kind: "passkey",
          strategy: name,
          needle,
          length,
          depth: (needle + 0.5) / needles,
          exact,
          logLikelihood: -1.5,
          rank: exact === 1 ? 1 : 9,
          candidates: 10,
        };
        await run.append(row);
      }
    }
  }
  await run.close();
  return readRun(files);
}

export async function madeRun(
  kind: string,
  identity: object,
  rows: readonly RunRow[],
  path = "runs/x",
): Promise<ReportRun> {
  const files = memoryRunFiles(path);
  const run = await openRun(files, { kind, identity: identity as never });
  for (const row of rows) await run.append(row);
  await run.close();
  return readRun(files);
}

/** Names that would do harm where they are not escaped. */
export const hostileNames: readonly string[] = [
  "<script>window.harmed=1</script>",
  '"><img src=x onerror="window.harmed=1">',
  "</title></style></svg><svg onload=window.harmed=1>",
  "' onmouseover='window.harmed=1",
  '=HYPERLINK("http://x.test")',
  "a\u202egnp.exe\u0000\ud800",
  "&lt;b&gt; | [x](javascript:1) `c`",
];
