// The Extend page's state: what is asked, of which model, where it runs, and what has come out so far.

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { targetLength } from "../../../src/evaluation/compare/prepare.ts";
import type { ComparePlan, CompareQuestion } from "../../../src/evaluation/live-compare.ts";
import type { RunView } from "../../../src/evaluation/report/view.ts";
import { type StrategyChoice, strategyChoices } from "../../../src/evaluation/strategies/chosen.ts";
import { builtInModelsAt } from "../../../src/formats/built-in-models.ts";
import type { ModelDescription } from "../../../src/formats/model-description.ts";
import { openModel } from "../../../src/formats/open-model.ts";
import { mayHaveAdapter } from "../../parts/adapter.ts";
import { download } from "../../parts/download.ts";
import { parameter } from "../../shell/address.ts";
import { language } from "../../shell/preferences.ts";
import { ask, askJson, findServer, linesOf, server } from "../../shell/server.ts";
import type { FromWorker, LiveEvent, PageModel, ToWorker } from "./messages.ts";
import { sampleName, sampleText } from "./sample.ts";

/** The name of a built-in model, "file", or "path". */
export const reader: Signal<string> = parameter("reader", "longhand-rope");
/** Of the server's machine, where `reader` is "path". */
export const path: Signal<string> = parameter("path", "");
/** "sample" or "own". */
export const textKind: Signal<string> = parameter("text", "sample");
export const target: Signal<string> = parameter("to", "4x");
/** Names of strategies; the usual ones when empty. */
export const chosenText: Signal<string> = parameter("with", "");
export const windowsText: Signal<string> = parameter("windows", "4");
export const needlesText: Signal<string> = parameter("needles", "2");
/** "page", "gpu" or "server". */
export const where: Signal<string> = parameter("where", "page");
/** A run of the server, which a link shows again. */
export const runId: Signal<string> = parameter("run", "");

export const files: Signal<readonly File[]> = signal([]);
export const ownText: Signal<{ readonly name: string; readonly text: string }> = signal({
  name: "pasted.txt",
  text: "",
});

/** Where it runs: models of the server's machine there, files of this one in the page. */
export const place: ReadonlySignal<"page" | "gpu" | "server"> = computed(() => {
  if (reader.value === "path") return "server";
  if (where.value === "server" && reader.value !== "file") return "server";
  return where.value === "gpu" && mayHaveAdapter() ? "gpu" : "page";
});

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Names of the models that whoever serves this page has. */
export const builtIns: Signal<readonly string[]> = signal([]);
export async function findBuiltIns(): Promise<void> {
  const answer = await fetch("./models/index.json").catch(() => null);
  const list: unknown = answer?.ok ? await answer.json().catch(() => null) : null;
  if (Array.isArray(list)) builtIns.value = list.filter((name) => typeof name === "string");
}

export interface ModelFacts {
  readonly name: string;
  readonly trainedLength: number | null;
  readonly target: number;
  readonly choices: readonly StrategyChoice[];
}
export type Reading =
  | { readonly kind: "loading" }
  /** A link names files that are not here. */
  | { readonly kind: "gone" }
  | { readonly kind: "no-path" }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "ready"; readonly facts: ModelFacts };

const readingNow: Signal<Reading> = signal({ kind: "loading" });
export const reading: ReadonlySignal<Reading> = readingNow;
export const facts: ReadonlySignal<ModelFacts | null> = computed(() =>
  readingNow.value.kind === "ready" ? readingNow.value.facts : null,
);

function pageModel(): PageModel {
  if (reader.value === "file") return { kind: "files", files: files.value };
  return { kind: "built-in", base: new URL("./models/", document.baseURI).href, name: reader.value };
}

/** Headers are read once a model. */
let opened: { readonly key: unknown; readonly description: Promise<ModelDescription> } | undefined;
function description(): Promise<ModelDescription> {
  const key = reader.value === "file" ? files.value : reader.value;
  if (opened?.key !== key) {
    const model = pageModel();
    const open = async (): Promise<ModelDescription> => {
      if (model.kind === "files") return openModel(model.files);
      return openModel((await builtInModelsAt(model.base, [model.name]).open(model.name))!);
    };
    opened = { key, description: open() };
  }
  return opened.description;
}

async function readFacts(of: string, atPath: string, length: string): Promise<ModelFacts> {
  if (of === "path") {
    return askJson<ModelFacts>("compare/model", {
      method: "POST",
      body: { model: { kind: "path", path: atPath }, target: length },
    });
  }
  const model = await description();
  const { name, trainedLength } = model;
  const tokens = targetLength(length, trainedLength);
  return { name, trainedLength, target: tokens, choices: strategyChoices(model, { trainedLength, target: tokens }) };
}

export const usual: ReadonlySignal<readonly string[]> = computed(
  () => facts.value?.choices.filter(({ usual: is }) => is).map(({ name }) => name) ?? [],
);
/** What is compared: the usual ones, or those that the address names. */
export const chosen: ReadonlySignal<readonly string[]> = computed(() =>
  chosenText.value.trim() === "" ? usual.value : chosenText.value.split(/,(?![^{]*})/).map((name) => name.trim()),
);
export function choose(names: readonly string[]): void {
  const same = names.length === usual.value.length && names.every((name) => usual.value.includes(name));
  chosenText.value = same ? "" : names.join(",");
}

const whole = (text: string, least: number): number => {
  const value = Number(text);
  return Number.isInteger(value) && value >= least ? value : least;
};

/** What is asked; null while there is no text. */
export const question: ReadonlySignal<Omit<CompareQuestion, "text"> | null> = computed(() =>
  textKind.value === "own" && ownText.value.text.trim() === ""
    ? null
    : {
        target: target.value,
        ...(chosenText.value.trim() === "" ? {} : { strategies: chosenText.value }),
        windows: whole(windowsText.value, 1),
        needles: whole(needlesText.value, 0),
        seed: 0,
      },
);
async function wholeQuestion(): Promise<CompareQuestion | null> {
  const rest = question.value;
  if (rest === null) return null;
  const text = textKind.value === "own" ? ownText.value : { name: sampleName, text: await sampleText() };
  return { ...rest, text };
}

export type Planned =
  | { readonly kind: "none" }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "ready"; readonly plan: ComparePlan };
export const planned: Signal<Planned> = signal({ kind: "none" });

export interface Live {
  readonly phase: "preparing" | "loading" | "running" | "cancelling" | "cancelled" | "done" | "error";
  readonly on: "page" | "gpu" | "server";
  readonly share: number;
  readonly secondsLeft: number | null;
  readonly strategy: string | null;
  readonly step: string | null;
  /** Rows that were there when it began. */
  readonly before: number;
  readonly view: RunView | null;
  readonly message: string | null;
  /** Of the server's run. */
  readonly run: string | null;
}
export const live: Signal<Live | null> = signal(null);
export const isBusy: ReadonlySignal<boolean> = computed(() =>
  ["preparing", "loading", "running", "cancelling"].includes(live.value?.phase ?? ""),
);

const fresh = (on: Live["on"]): Live => ({
  phase: "preparing",
  on,
  share: 0,
  secondsLeft: null,
  strategy: null,
  step: null,
  before: 0,
  view: null,
  message: null,
  run: null,
});

function happened(event: LiveEvent): void {
  const now = live.value;
  if (now === null) return;
  const busy = now.phase === "cancelling" ? "cancelling" : undefined;
  if (event.event === "run") live.value = { ...now, run: event.run };
  else if (event.event === "started") live.value = { ...now, before: event.rows };
  else if (event.event === "loading") live.value = { ...now, phase: busy ?? "loading", share: event.share };
  else if (event.event === "progress") {
    const { share, secondsLeft, step } = event;
    live.value = { ...now, phase: busy ?? "running", share, secondsLeft, strategy: step.strategy, step: step.kind };
  } else if (event.event === "result") live.value = { ...now, view: event.view };
  else if (event.event === "error") live.value = { ...now, phase: "error", message: event.message };
  else if (event.event === "done" || event.event === "cancelled") live.value = { ...now, phase: event.event };
  if (event.event === "done" || event.event === "cancelled") runId.value = now.run ?? "";
}

let worker: Worker | undefined;
function workerNow(): Worker {
  if (worker === undefined) {
    worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "compare" });
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => heard(data);
    worker.onerror = (event) => {
      event.preventDefault();
      happened({ event: "error", message: event.message || "the worker could not be loaded" });
    };
  }
  return worker;
}
const tell = (message: ToWorker): void => workerNow().postMessage(message);

let planId = 0;
function heard(message: FromWorker): void {
  if (message.kind === "event") happened(message.event);
  else if (message.kind === "report") download(message.name, message.type, message.content);
  else if (message.id === planId) {
    planned.value =
      message.kind === "plan" ? { kind: "ready", plan: message.plan } : { kind: "error", message: message.message };
  }
}

async function plan(id: number): Promise<void> {
  const wanted = await wholeQuestion();
  if (id !== planId) return;
  if (wanted === null || (reader.value === "file" && files.value.length === 0)) {
    planned.value = { kind: "none" };
    return;
  }
  if (place.value !== "server") {
    // While it computes, a worker hears nothing.
    if (!isBusy.value) tell({ kind: "plan", id, model: pageModel(), question: wanted });
    return;
  }
  try {
    const answer = await askJson<ComparePlan>("compare/plan", {
      method: "POST",
      body: { model: askedModel(), ...wanted },
    });
    if (id === planId) planned.value = { kind: "ready", plan: answer };
  } catch (error) {
    if (id === planId) planned.value = { kind: "error", message: messageOf(error) };
  }
}

const askedModel = (): object =>
  reader.value === "path" ? { kind: "path", path: path.value } : { kind: "built-in", name: reader.value };

export async function start(): Promise<void> {
  const on = place.value;
  live.value = fresh(on);
  runId.value = "";
  try {
    const wanted = await wholeQuestion();
    if (wanted === null) throw new RangeError("text: expected one, got none");
    if (on === "server") {
      const { job } = await askJson<{ job: string }>("compare", {
        method: "POST",
        body: { model: askedModel(), ...wanted },
      });
      await follow(job);
    } else tell({ kind: "start", model: pageModel(), question: wanted, provider: on === "gpu" ? "webgpu" : "wasm" });
  } catch (error) {
    happened({ event: "error", message: messageOf(error) });
  }
}

/** Goes on with a run of the server. */
export async function resume(run: string): Promise<void> {
  live.value = { ...fresh("server"), view: live.value?.view ?? null, run };
  try {
    const { job } = await askJson<{ job: string }>("compare/resume", { method: "POST", body: { run } });
    await follow(job);
  } catch (error) {
    happened({ event: "error", message: messageOf(error) });
  }
}

let jobNow: string | null = null;
async function follow(job: string): Promise<void> {
  jobNow = job;
  for await (const event of linesOf<LiveEvent>(await ask(`compare/${job}/events`))) happened(event);
}

export async function cancel(): Promise<void> {
  const now = live.value;
  if (now === null) return;
  live.value = { ...now, phase: "cancelling" };
  if (now.on !== "server") tell({ kind: "cancel" });
  else if (jobNow !== null) await ask(`compare/${jobNow}`, { method: "DELETE" }).catch(() => {});
}

export function saveReport(format: string): void {
  tell({ kind: "report", format, language: language.value });
}

/** Shows a run of the server again, whole or not; and watches the one that runs. */
async function restore(): Promise<void> {
  await findServer();
  if (server.value == null) return;
  if (runId.value !== "" && runId.value !== live.value?.run && !isBusy.value) {
    const id = runId.value;
    live.value = { ...fresh("server"), run: id };
    try {
      const { view } = await askJson<{ view: RunView }>(`runs/show?id=${encodeURIComponent(id)}`);
      live.value = { ...fresh("server"), run: id, view, phase: view.section.complete ? "done" : "cancelled" };
    } catch (error) {
      happened({ event: "error", message: messageOf(error) });
    }
  }
  if (!server.value.hasToken || isBusy.value) return;
  const { job } = await askJson<{ job: string | null }>("compare/running");
  if (job === null) return;
  live.value = fresh("server");
  await follow(job).catch((error) => happened({ event: "error", message: messageOf(error) }));
}

/** Keeps the model's facts and the plan in step with what is asked; returns what ends it. */
export function keepPlanning(): () => void {
  void restore();
  let latest = 0;
  const endFacts = effect(() => {
    const [of, atPath, length, own] = [reader.value, path.value, target.value, files.value];
    const known = server.value;
    const mine = ++latest;
    if (of === "file" && own.length === 0) {
      readingNow.value = { kind: "gone" };
      return;
    }
    if (of === "path" && (atPath.trim() === "" || known?.hasToken !== true)) {
      readingNow.value = { kind: "no-path" };
      return;
    }
    if (readingNow.peek().kind !== "ready") readingNow.value = { kind: "loading" };
    // A path is typed letter by letter.
    const wait = of === "path" ? 400 : 0;
    setTimeout(() => {
      if (mine !== latest) return;
      readFacts(of, atPath, length).then(
        (value) => {
          if (mine === latest) readingNow.value = { kind: "ready", facts: value };
        },
        (error: unknown) => {
          if (mine === latest) readingNow.value = { kind: "error", message: messageOf(error) };
        },
      );
    }, wait);
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const endPlan = effect(() => {
    // Read for the sake of being told of them.
    void [facts.value, question.value, ownText.value, place.value, isBusy.value];
    const mine = ++planId;
    clearTimeout(timer);
    if (facts.value === null) {
      planned.value = { kind: "none" };
      return;
    }
    timer = setTimeout(() => void plan(mine), 150);
  });
  return () => {
    latest++;
    planId++;
    clearTimeout(timer);
    endFacts();
    endPlan();
  };
}
