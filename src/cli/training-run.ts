// A training in a run folder: manifest and rows, a checkpoint now and then, the model at its end. What train and drop
// share. The same command again goes on where the last checkpoint is; a killed process loses the steps behind it.

import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { LogitTemperature } from "../encodings/index.ts";
import { onnxRuntimeBackend } from "../engine/index.ts";
import { type JsonRecord, openRun, type Run, type RunRow } from "../evaluation/index.ts";
import type { Tensor } from "../tensor/index.ts";
import {
  type BatchSource,
  decodeRunCheckpoint,
  type ExportDtype,
  encodeRunCheckpoint,
  exportModel,
  exportOptionsOf,
  type RunCheckpoint,
  type RunOptions,
  runRecipe,
  type TrainingRecipe,
  type TrainingRow,
} from "../training/index.ts";
import { resumeCommand } from "./command-line.ts";
import { Interrupted } from "./interrupt.ts";
import { progressLine } from "./progress.ts";
import { palette } from "./terminal.ts";

export interface TrainingJob {
  readonly folder: string;
  readonly recipe: TrainingRecipe;
  readonly data: BatchSource;
  readonly validation?: RunOptions["validation"];
  /** What the data and the first weights are, for the manifest. */
  readonly identity: JsonRecord;
  readonly weights?: ReadonlyMap<string, Tensor>;
  readonly threads?: number;
  /** Prints a row of the table; false for --json. */
  readonly prints: boolean;
  /** Seconds between checkpoints; 60 when absent. */
  readonly checkpointSeconds?: number;
}

export interface TrainingOutcome {
  readonly run: Run;
  readonly checkpoint: RunCheckpoint;
  /** Of this process; 0 tokens when the run was finished before. */
  readonly seconds: number;
  readonly tokens: number;
}

const checkpointName = "checkpoint.safetensors";

/**
 * Trains to the end of the recipe.
 *
 * @throws Interrupted after the signal, with everything saved and the command that goes on said on stderr
 */
export async function trainInFolder(job: TrainingJob, signal: AbortSignal): Promise<TrainingOutcome> {
  const { folder, recipe, prints } = job;
  const run = await openRun(folder, {
    kind: "train",
    identity: { recipe: recipe as unknown as JsonRecord, ...job.identity },
    session: {
      command: ["longhand", ...process.argv.slice(2)],
      versions: { longhand: packageJson.version, node: process.version },
      hardware: { cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length },
    },
  });
  const line = progressLine();
  try {
    const path = join(folder, checkpointName);
    const from = await readCheckpoint(path);
    // Rows behind the checkpoint are written again, equal ones.
    await run.cutFrom((row) => typeof row.step !== "number" || row.step > (from?.step ?? -1));
    const perStep = recipe.batchSize * recipe.length;
    const began = performance.now();
    let saved = began;
    let before = { time: began, step: from?.step ?? 0 };
    let loss = Number.NaN;
    if (prints && from?.step !== recipe.steps) {
      if (from !== null) process.stdout.write(`goes on from step ${from.step.toLocaleString("en")}\n`);
      process.stdout.write(palette.dim(`${header}\n`));
    }
    const result = await runRecipe({
      recipe,
      backend: onnxRuntimeBackend({ provider: "node", flushDenormals: true }),
      data: job.data,
      signal,
      ...(job.validation === undefined ? {} : { validation: job.validation }),
      ...(job.threads === undefined ? {} : { threads: job.threads }),
      ...(from !== null ? { checkpoint: from } : job.weights === undefined ? {} : { weights: job.weights }),
      onRow: async (row) => {
        const now = performance.now();
        const speed = ((row.step - before.step) * perStep) / ((now - before.time) / 1000);
        const measured = row.kind === "train" ? { measured: { tokensPerSecond: Math.round(speed) } } : {};
        await run.append({ key: `${row.kind}:${row.step}`, ...row, ...measured } as unknown as RunRow);
        if (row.kind === "train") {
          loss = row.loss;
          before = { time: now, step: row.step };
          return;
        }
        line.end();
        if (prints)
          process.stdout.write(`${tableRow(row, loss, row.step === (from?.step ?? 0) ? null : perSecond())}\n`);
        before = { time: performance.now(), step: row.step };
      },
      onStep: async ({ step, loss: last }, capture) => {
        line.show("training tokens", step * perStep, recipe.steps * perStep, `loss ${last.toFixed(3)}`);
        if (performance.now() - saved < (job.checkpointSeconds ?? 60) * 1000) return;
        await replaceFile(path, encodeRunCheckpoint(recipe, await capture()));
        saved = performance.now();
      },
    });
    function perSecond(): number {
      return ((before.step - (from?.step ?? 0)) * perStep) / ((before.time - began) / 1000);
    }
    if (from?.step !== result.checkpoint.step) await replaceFile(path, encodeRunCheckpoint(recipe, result.checkpoint));
    if (!result.finished) {
      line.end();
      const { step } = result.checkpoint;
      process.stderr.write(`saved at step ${step} of ${recipe.steps}; to go on: ${resumeCommand(folder)}\n`);
      throw new Interrupted("interrupted");
    }
    const done = result.checkpoint.step - (from?.step ?? 0);
    return {
      run,
      checkpoint: result.checkpoint,
      seconds: (performance.now() - began) / 1000,
      tokens: done * perStep,
    };
  } catch (error) {
    await run.close();
    throw error;
  } finally {
    line.end();
  }
}

const columns = [
  ["step", 9],
  ["tokens", 13],
  ["loss", 9],
  ["validation", 12],
  ["accuracy", 10],
  ["tokens/s", 10],
] as const;
const header = columns.map(([name, width]) => name.padStart(width)).join("");

function tableRow(row: Extract<TrainingRow, { kind: "validation" }>, loss: number, speed: number | null): string {
  const cells = [
    row.step.toLocaleString("en"),
    row.tokens.toLocaleString("en"),
    Number.isNaN(loss) ? "" : loss.toFixed(4),
    row.loss.toFixed(4),
    row.accuracy === undefined ? "" : `${(100 * row.accuracy).toFixed(0)} %`,
    speed === null || !Number.isFinite(speed) ? "" : Math.round(speed).toLocaleString("en"),
  ];
  return cells.map((cell, i) => cell.padStart(columns[i]![1])).join("");
}

async function readCheckpoint(path: string): Promise<RunCheckpoint | null> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  return bytes === null ? null : (await decodeRunCheckpoint(bytes)).checkpoint;
}

/** A file is there whole or as it was before, whenever the process is killed. */
async function replaceFile(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(`${path}.new`, "w");
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

export interface SaveModelOptions {
  readonly recipe: TrainingRecipe;
  readonly checkpoint: RunCheckpoint;
  readonly dtype: ExportDtype;
  readonly logitTemperature?: LogitTemperature;
}

/** Writes the model into the run's folder `model`, in Hugging Face form; returns its path. */
export async function saveModel(folder: string, options: SaveModelOptions): Promise<string> {
  const { recipe, checkpoint, dtype, logitTemperature } = options;
  const files = exportModel({
    ...exportOptionsOf(recipe, checkpoint),
    dtype,
    ...(logitTemperature === undefined ? {} : { logitTemperature }),
  });
  const path = join(folder, "model");
  const fresh = `${path}.new`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { recursive: true });
  for (const [name, bytes] of files) await writeFile(join(fresh, name), bytes);
  await rm(path, { recursive: true, force: true });
  await rename(fresh, path);
  return path;
}
