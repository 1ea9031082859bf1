// Trainings on the lab's server: what a page is told is what the library trains; what is no question is refused; who hangs
// up trains no more.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { onnxRuntimeBackend } from "../../src/engine/index.ts";
import { openModel } from "../../src/formats/open-model.ts";
import { tokenHeader } from "../../src/server/guard.ts";
import { type Lab, startLab } from "../../src/server/lab.ts";
import type { SentWord } from "../../src/server/training-jobs.ts";
import {
  createTask,
  type RecipeOptions,
  runRecipe,
  taskBatches,
  taskLength,
  tokenBatches,
  trainingRecipe,
} from "../../src/training/index.ts";
import { seededText } from "../support/words.ts";

let folder: string;
let lab: Lab;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "longhand-lab-training-"));
  await mkdir(join(folder, "web"));
  await writeFile(join(folder, "web", "index.html"), "<!doctype html>page");
  lab = await startLab({ page: join(folder, "web"), port: 0, runs: join(folder, "runs"), token: "secret-token" });
});
afterAll(async () => {
  await lab.close();
  await rm(folder, { recursive: true, force: true });
});

const sizes = { hiddenSize: 16, numLayers: 2, numHeads: 2, intermediateSize: 16, batchSize: 2 };
const copyRecipe = (options: RecipeOptions) =>
  trainingRecipe({ ...sizes, length: taskLength(createTask("copy"), 5), ...options });

function formOf(question: unknown, parts: Readonly<Record<string, Uint8Array>> = {}): FormData {
  const form = new FormData();
  form.set("question", typeof question === "string" ? question : JSON.stringify(question));
  for (const [name, bytes] of Object.entries(parts)) form.set(name, new Blob([new Uint8Array(bytes)]), name);
  return form;
}

const asked = (path: string, options: RequestInit = {}): Promise<Response> =>
  fetch(`${lab.address}api/train${path}`, {
    method: "POST",
    ...options,
    headers: { [tokenHeader]: "secret-token", ...options.headers },
  });

type Word = SentWord | { readonly kind: "job"; readonly job: string };

/** A training that is listened to. */
class Heard {
  readonly words: Word[] = [];
  readonly #leave = new AbortController();
  #ended = false;
  #wake: () => void = () => undefined;

  static async of(question: unknown, parts?: Readonly<Record<string, Uint8Array>>): Promise<Heard> {
    const heard = new Heard();
    const answer = await asked("", { body: formOf(question, parts), signal: heard.#leave.signal });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/jsonl; charset=utf-8"]);
    void heard.#listen(answer);
    return heard;
  }

  async #listen(answer: Response): Promise<void> {
    let rest = "";
    try {
      for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop()!;
        this.words.push(...lines.map((line) => JSON.parse(line) as Word));
        this.#wake();
      }
    } catch {
      // Hung up.
    }
    this.#ended = true;
    this.#wake();
  }

  /** The first word from the `from`th on that is meant. */
  async until(wanted: (word: Word) => boolean, from = 0): Promise<Word> {
    for (;;) {
      const found = this.words.slice(from).find(wanted);
      if (found !== undefined) return found;
      if (this.#ended) throw new Error(`ended before that was said: ${JSON.stringify(this.words.at(-1))}`);
      await new Promise<void>((done) => {
        this.#wake = done;
      });
    }
  }

  async ask(ask: string): Promise<Response> {
    const { job } = (await this.until(({ kind }) => kind === "job")) as Extract<Word, { kind: "job" }>;
    return asked(`/${job}/ask`, { body: JSON.stringify({ ask }), headers: { "content-type": "application/json" } });
  }
  hangUp(): void {
    this.#leave.abort();
  }
  get losses(): number[] {
    return this.words.flatMap((word) => (word.kind === "row" && word.row.kind === "train" ? [word.row.loss] : []));
  }
}

const isEnd = (word: Word): boolean => word.kind === "progress" && word.ended;
const atStep =
  (step: number) =>
  (word: Word): boolean =>
    word.kind === "progress" && word.step === step && word.held;

/** What the library trains. */
async function losses(
  options: RecipeOptions,
  text: Uint8Array | null,
): Promise<{ losses: number[]; recipe: ReturnType<typeof trainingRecipe> }> {
  const recipe = text === null ? copyRecipe(options) : trainingRecipe({ ...sizes, ...options });
  const out: number[] = [];
  await runRecipe({
    recipe,
    backend: onnxRuntimeBackend({ provider: "node" }),
    data: text === null ? taskBatches(createTask("copy"), { ...recipe, sizes: [1, 5] }) : tokenBatches(text, recipe),
    onStep: ({ loss }) => void out.push(loss),
  });
  return { losses: out, recipe };
}

describe("a training on the server", () => {
  test("of a text has the library's losses, tests lengths, and gives its model", async () => {
    const text = seededText(3000);
    const { losses: own, recipe } = await losses({ encoding: ["alibi"], length: 16, steps: 12, seed: 3 }, text);
    const heard = await Heard.of({ recipe, held: false }, { train: text, validation: text.slice(0, 400) });
    await heard.until(isEnd);
    expect(heard.losses).toHaveLength(12);
    heard.losses.forEach((loss, i) => {
      expect(Math.abs(loss - own[i]!)).toBeLessThan(1e-5);
    });
    const lengths = heard.words.flatMap((word) => (word.kind === "lengths" ? [word] : []));
    expect(lengths.at(-1)!.trained).toBe(16);
    expect(lengths.at(-1)!.points.map(({ to }) => to)).toEqual([16, 32, 64, 128]);
    // Of a training that has ended too.
    await heard.ask("model");
    const model = (await heard.until(({ kind }) => kind === "model")) as Extract<Word, { kind: "model" }>;
    const files = join(folder, "model");
    await mkdir(files);
    for (const [name, base64] of model.files) await writeFile(join(files, name), Buffer.from(base64, "base64"));
    expect((await openModel(files)).trainedLength).toBe(16);
    heard.hangUp();
  });

  test("of a task is held, takes single steps, drops its encoding, and is the recipe's run with that drop", async () => {
    const { losses: own, recipe } = await losses({ encoding: ["rope"], steps: 6, seed: 1, dropAt: 2 }, null);
    const heard = await Heard.of({ recipe: { ...recipe, dropAt: null }, held: true, task: "copy", sizes: [1, 5] });
    await heard.until(({ kind }) => kind === "job");
    for (const step of [1, 2]) {
      await heard.ask("step");
      await heard.until(atStep(step));
    }
    expect(heard.losses).toHaveLength(2);
    await heard.ask("drop");
    await heard.until((word) => word.kind === "progress" && word.dropAt === 2);
    await heard.ask("resume");
    await heard.until(isEnd);
    expect(heard.losses).toHaveLength(6);
    heard.losses.forEach((loss, i) => {
      expect(Math.abs(loss - own[i]!)).toBeLessThan(1e-5);
    });
    heard.hangUp();
  });

  test("two at a time take turns, and each ends where it would have ended alone", async () => {
    const runs = await Promise.all(
      (["none", "rope"] as const).map(async (name) => {
        const one = await losses({ encoding: [name], steps: 8, seed: 5 }, null);
        return { ...one, heard: await Heard.of({ recipe: one.recipe, held: false, task: "copy", sizes: [1, 5] }) };
      }),
    );
    for (const { heard, losses: own } of runs) {
      await heard.until(isEnd);
      expect(Math.abs(heard.losses.at(-1)! - own.at(-1)!)).toBeLessThan(1e-5);
      heard.hangUp();
    }
  });

  test("ends with who listens", async () => {
    const recipe = copyRecipe({ encoding: ["none"], steps: 1_000_000 });
    const heard = await Heard.of({ recipe, held: false, task: "copy", sizes: [1, 5] });
    await heard.until((word) => word.kind === "progress" && word.step > 2);
    expect((await heard.ask("hold")).status).toBe(200);
    heard.hangUp();
    await expect.poll(async () => (await heard.ask("hold")).status, { timeout: 10_000 }).toBe(404);
  });

  test("what goes wrong is its last word", async () => {
    const recipe = copyRecipe({ encoding: ["alibi"], steps: 50, learningRate: 1e30, clip: 1e30 });
    const heard = await Heard.of({ recipe, held: false, task: "copy", sizes: [1, 5] });
    const word = (await heard.until(({ kind }) => kind === "error")) as Extract<Word, { kind: "error" }>;
    expect(word.message).toMatch(/expected a finite loss/);
    heard.hangUp();
  });
});

describe("what is no question", () => {
  const recipe = copyRecipe({ encoding: ["rope"], steps: 3 });
  const task = { recipe, held: true, task: "copy", sizes: [1, 5] };
  const bytes = new Uint8Array(500).fill(65);

  test.each<[string, unknown, Readonly<Record<string, Uint8Array>>, RegExp]>([
    ["JSON", "{", {}, /expected a question in JSON/],
    ["an object", [], {}, /expected an object/],
    ["known keys", { ...task, out: "/tmp" }, {}, /expected recipe, held, task, sizes, got "out"/],
    ["a recipe", { ...task, recipe: undefined }, {}, /expected a recipe, got none/],
    ["a recipe's keys", { ...task, recipe: { ...recipe, colour: 1 } }, {}, /expected keys of a recipe, got colour/],
    ["encodings", { ...task, recipe: { ...recipe, encoding: "rope" } }, {}, /expected encoding as a list/],
    [
      "an encoding",
      { ...task, recipe: { ...recipe, encoding: ["rop"] } },
      {},
      /expected an encoding of none, .*got rop/,
    ],
    ["numbers", { ...task, recipe: { ...recipe, steps: "3" } }, {}, /expected steps to be an integer/],
    ["a size that fits", { ...task, recipe: { ...recipe, hiddenSize: 8192 } }, {}, /hiddenSize of at most 4096/],
    ["held", { ...task, held: 1 }, {}, /expected held as true or false/],
    ["a task", { ...task, task: "cook" }, {}, /expected a text, or a task of copy, .*got "cook"/],
    ["sizes", { ...task, sizes: [1] }, {}, /expected sizes as two integers/],
    ["sizes of the task", { ...task, sizes: [5, 1] }, {}, /sizes/],
    ["one of both", task, { train: bytes, validation: bytes }, /expected a text or a task, got both/],
    ["both parts", { recipe, held: true }, { train: bytes }, /expected a text's parts train and validation, got one/],
    ["known parts", task, { weights: bytes }, /expected a form of question, train and validation, got "weights"/],
    [
      "enough text",
      { recipe, held: true },
      { train: bytes, validation: bytes.slice(0, 3) },
      /expected more than 16 tokens, got 3/,
    ],
  ])("is refused with what was expected: %s", async (_, question, parts, message) => {
    const answer = await asked("", { body: formOf(question, parts) });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringMatching(message)]);
  });

  test("a form, the token, a job that runs, and an ask that there is", async () => {
    expect((await asked("", { body: "{}" })).status).toBe(422);
    const noToken = await asked("", { body: formOf(task), headers: { [tokenHeader]: "guess" } });
    expect(noToken.status).toBe(401);
    expect((await asked("/nobody/ask", { body: '{"ask":"hold"}', headers: { [tokenHeader]: "" } })).status).toBe(401);
    expect((await asked("/nobody/ask", { body: '{"ask":"hold"}' })).status).toBe(404);
    const heard = await Heard.of(task);
    expect((await heard.ask("sing")).status).toBe(422);
    heard.hangUp();
  });

  test("a server that closes ends what it trains", async () => {
    const other = await startLab({ page: join(folder, "web"), port: 0, runs: join(folder, "runs"), token: "t" });
    const endless = { ...task, held: false, recipe: { ...recipe, steps: 1_000_000, warmup: 0, decay: 0 } };
    const answer = await fetch(`${other.address}api/train`, {
      method: "POST",
      headers: { [tokenHeader]: "t" },
      body: formOf(endless),
    });
    const reader = answer.body!.getReader();
    await reader.read();
    await other.close();
    // The stream ends, one way or the other.
    for (let ended = false; !ended; ) {
      ended = await reader.read().then(
        ({ done }) => done,
        () => true,
      );
    }
  });
});
