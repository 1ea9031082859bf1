// The clock's state: which model, which hand, which place. What the hands do is asked of the library.

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type InspectedGroup, type Inspection, inspectModel } from "../../../src/advice/inspect.ts";
import { builtInModelsAt } from "../../../src/formats/built-in-models.ts";
import { describeHuggingFace } from "../../../src/formats/huggingface/index.ts";
import type { ModelDescription } from "../../../src/formats/model-description.ts";
import { openModel } from "../../../src/formats/open-model.ts";
import { parseStrategy } from "../../../src/models/strategy.ts";
import { parameter } from "../../shell/address.ts";

/** "typed", "file", or the name of a built-in model. */
export const model: Signal<string> = parameter("model", "typed");
export const theta: Signal<string> = parameter("theta", "10000");
export const headDim: Signal<string> = parameter("dim", "128");
export const trained: Signal<string> = parameter("trained", "4096");
export const target: Signal<string> = parameter("target", "4x");
export const scaling: Signal<string> = parameter("scaling", "");
export const groupIndex: Signal<string> = parameter("group", "0");
const positionText = parameter("position", "1000");
const handText = parameter("hand", "40");
const offsetText = parameter("offset", "500");

/** Past every context that is sold today. */
export const maxPosition = 8_388_608;

const clamped = (text: string, max: number): number => {
  const value = Math.round(Number(text));
  return Number.isFinite(value) ? Math.min(max, Math.max(0, value)) : 0;
};
export const position: ReadonlySignal<number> = computed(() => clamped(positionText.value, maxPosition));
export const offset: ReadonlySignal<number> = computed(() => clamped(offsetText.value, maxPosition));
export function goTo(value: number): void {
  positionText.value = String(value);
}
export function setOffset(value: number): void {
  offsetText.value = String(value);
}

/** What stands where a model's description is awaited. */
type Reading =
  | { readonly kind: "loading" }
  | { readonly kind: "gone" }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "ready"; readonly description: ModelDescription };

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const builtInNames: Signal<readonly string[]> = signal([]);
/** Names of models that this server has; none where it has none, or only files are served. */
export async function findBuiltIns(): Promise<void> {
  const answer = await fetch("./models/index.json").catch(() => null);
  const list: unknown = answer?.ok ? await answer.json().catch(() => null) : null;
  if (Array.isArray(list)) builtInNames.value = list.filter((name) => typeof name === "string");
}

const dropped: Signal<{ readonly name: string; readonly reading: Reading } | null> = signal(null);
export const droppedName: ReadonlySignal<string | null> = computed(() => dropped.value?.name ?? null);

/** Reads the headers of files that were dropped or chosen. */
export async function readFiles(files: readonly File[]): Promise<void> {
  if (files.length === 0) return;
  const main = files.find((file) => file.name === "config.json") ?? files[0]!;
  dropped.value = { name: main.name, reading: { kind: "loading" } };
  model.value = "file";
  groupIndex.value = "0";
  const reading = await readingOf(() => openModel(files));
  dropped.value = { name: main.name, reading };
}

async function readingOf(read: () => Promise<ModelDescription> | ModelDescription): Promise<Reading> {
  try {
    return { kind: "ready", description: await read() };
  } catch (error) {
    return { kind: "error", message: messageOf(error) };
  }
}

const fetched: Signal<Readonly<Record<string, Reading>>> = signal({});
effect(() => {
  const name = model.value;
  if (name === "typed" || name === "file" || fetched.peek()[name] !== undefined) return;
  fetched.value = { ...fetched.peek(), [name]: { kind: "loading" } };
  void readingOf(async () => {
    const files = await builtInModelsAt(new URL("./models/", document.baseURI), [name]).open(name);
    return openModel(files!);
  }).then((reading) => {
    fetched.value = { ...fetched.peek(), [name]: reading };
  });
});

function typedModel(): Reading {
  const number = (name: string, text: string): number => {
    const value = Number(text.replace(/[,_\s]/g, ""));
    if (text.trim() === "" || !Number.isFinite(value))
      throw new RangeError(`${name}: expected a number, got "${text}"`);
    return value;
  };
  try {
    const size = number("head dimension", headDim.value);
    const description = describeHuggingFace(
      {
        model_type: "llama",
        hidden_size: size,
        head_dim: size,
        num_attention_heads: 1,
        num_key_value_heads: 1,
        num_hidden_layers: 1,
        rope_theta: number("theta", theta.value),
        max_position_embeddings: number("trained length", trained.value),
      },
      { name: "typed" },
    );
    return { kind: "ready", description };
  } catch (error) {
    return { kind: "error", message: messageOf(error) };
  }
}

export const reading: ReadonlySignal<Reading> = computed(() => {
  if (model.value === "typed") return typedModel();
  if (model.value === "file") return dropped.value?.reading ?? { kind: "gone" };
  return fetched.value[model.value] ?? { kind: "loading" };
});

export const description: ReadonlySignal<ModelDescription | null> = computed(() =>
  reading.value.kind === "ready" ? reading.value.description : null,
);

/** 131072, 128k or 4x, as the command line reads them. */
function targetLength(text: string, trainedLength: number | null): number | undefined {
  const found = /^\s*([\d.,_]+)\s*(k|m|x)?\s*$/i.exec(text);
  const value = Number(found?.[1]?.replace(/[,_]/g, ""));
  if (found === null || !(value > 0)) throw new RangeError(`target: expected 131072, 128k or 4x, got "${text}"`);
  const unit = found[2]?.toLowerCase();
  if (unit === "x") return trainedLength === null ? undefined : Math.round(value * trainedLength);
  return Math.round(value * (unit === "k" ? 1024 : unit === "m" ? 1024 * 1024 : 1));
}

interface Asked {
  readonly inspection: Inspection | null;
  readonly error: string | null;
}

const asked = (scaled: boolean): Asked => {
  const of = description.value;
  if (of === null || (scaled && scaling.value.trim() === "")) return { inspection: null, error: null };
  try {
    const length = targetLength(target.value, of.trainedLength);
    const inspection = inspectModel(of, {
      ...(length === undefined ? {} : { target: length }),
      ...(scaled ? { strategy: parseStrategy(scaling.value) } : {}),
    });
    return { inspection, error: null };
  } catch (error) {
    return { inspection: null, error: messageOf(error) };
  }
};
const asFile = computed(() => asked(false));
const underStrategy = computed(() => asked(true));

export const inspection: ReadonlySignal<Inspection | null> = computed(() => asFile.value.inspection);
export const scaledInspection: ReadonlySignal<Inspection | null> = computed(() => underStrategy.value.inspection);
export const targetError: ReadonlySignal<string | null> = computed(() => asFile.value.error);
export const scalingError: ReadonlySignal<string | null> = computed(() =>
  asFile.value.error === null ? underStrategy.value.error : null,
);

const place = computed(() => clamped(groupIndex.value, Math.max(0, (inspection.value?.groups.length ?? 1) - 1)));
export const group: ReadonlySignal<InspectedGroup | null> = computed(
  () => inspection.value?.groups[place.value] ?? null,
);
export const scaledGroup: ReadonlySignal<InspectedGroup | null> = computed(
  () => scaledInspection.value?.groups[place.value] ?? null,
);

const numHands = computed(() => group.value?.hands.length ?? 0);
/** The hand that was chosen. */
export const chosen: ReadonlySignal<number> = computed(() => clamped(handText.value, Math.max(0, numHands.value - 1)));
/** The hand under the pointer. */
export const pointed: Signal<number | null> = signal(null);
/** The hand whose numbers are shown. */
export const shown: ReadonlySignal<number> = computed(() =>
  Math.min(pointed.value ?? chosen.value, numHands.value - 1),
);
export function choose(pair: number): void {
  handText.value = String(clamped(String(pair), numHands.value - 1));
}
