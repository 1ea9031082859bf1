// The doctor's state: what was pasted or dropped, and for which engine and length. What is found is the library's.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { applyFixes, type Fixed } from "../../../src/advice/doctor/apply-fixes.ts";
import { diagnose } from "../../../src/advice/doctor/diagnose.ts";
import { recordOf } from "../../../src/advice/doctor/findings/index.ts";
import { type Diagnosis, type DoctorEngine, doctorEngines } from "../../../src/advice/doctor/types.ts";
import { type EngineExport, exportConfiguration, exportTargets } from "../../../src/advice/export/index.ts";
import { unifiedDiff } from "../../../src/advice/line-diff.ts";
import type { ModelDescription } from "../../../src/formats/model-description.ts";
import { openModel } from "../../../src/formats/open-model.ts";
import { parseStrategy } from "../../../src/models/strategy.ts";
import { parameter } from "../../shell/address.ts";

/** What an address carries safely past servers, which refuse long ones. */
const longest = 6000;

const linkedConfig = parameter("config", "");
const ownConfig: Signal<string | null> = signal(null);
export const config: ReadonlySignal<string> = computed(() => ownConfig.value ?? linkedConfig.value);
export function setConfig(text: string): void {
  const fits = encodeURIComponent(text).length <= longest;
  ownConfig.value = fits ? null : text;
  linkedConfig.value = fits ? text : "";
  dropped.value = null;
}
export const configIsTooLong: ReadonlySignal<boolean> = computed(() => ownConfig.value !== null);

export const command: Signal<string> = parameter("command", "");
export const engineText: Signal<string> = parameter("engine", "");
export const version: Signal<string> = parameter("engine-version", "");
export const target: Signal<string> = parameter("read-length", "");
export const scaling: Signal<string> = parameter("export-scaling", "");
export const exportTo: Signal<string> = parameter("export-to", exportTargets[0]);
export const exportLength: Signal<string> = parameter("export-length", "");

/** What was read of files besides a config.json. */
interface Dropped {
  readonly name: string;
  readonly model: ModelDescription | null;
  readonly tensors: ReadonlyMap<string, readonly number[]> | null;
  readonly error: string | null;
}
export const dropped: Signal<Dropped | null> = signal(null);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Reads headers: of a GGUF what it says, of a checkpoint its config.json and the shapes of its weights. */
export async function readFiles(files: readonly File[]): Promise<void> {
  if (files.length === 0) return;
  const configFile = files.find(({ name }) => name === "config.json") ?? files.find(({ name }) => /\.json$/.test(name));
  const hasWeights = files.some(({ name }) => /\.(safetensors|gguf|bin)$/.test(name));
  const name = (configFile ?? files[0]!).name;
  try {
    if (configFile !== undefined) setConfig(await configFile.text());
    else setConfig("");
    if (!hasWeights) {
      if (configFile === undefined) await openModel(files);
      return;
    }
    const { openWeights } = await import("../../../src/formats/weights/open.ts");
    const model = configFile === undefined ? await openModel(files) : null;
    const weights = await openWeights(files);
    const tensors = new Map(weights.names.map((tensor) => [tensor, weights.info(tensor).shape]));
    await weights.close();
    dropped.value = { name, model, tensors, error: null };
  } catch (error) {
    dropped.value = { name, model: null, tensors: null, error: messageOf(error) };
  }
}

export function clear(): void {
  setConfig("");
  for (const one of [command, engineText, version, target, scaling, exportLength]) one.value = "";
}

/** 131,072 or nothing. */
function lengthOf(text: string): number | undefined {
  const digits = text.replace(/[,_\s]/g, "");
  return digits === "" ? undefined : Number(digits);
}

export const isEmpty: ReadonlySignal<boolean> = computed(
  () => config.value.trim() === "" && command.value.trim() === "" && dropped.value?.model == null,
);

interface Answer {
  readonly diagnosis: Diagnosis | null;
  readonly error: string | null;
}
export const answer: ReadonlySignal<Answer> = computed(() => {
  if (isEmpty.value) return { diagnosis: null, error: null };
  const given = dropped.value;
  const engine = doctorEngines.find((name) => name === engineText.value);
  const length = lengthOf(target.value);
  try {
    const diagnosis = diagnose({
      ...(config.value.trim() === "" ? {} : { config: config.value }),
      ...(given?.model == null ? {} : { model: given.model }),
      ...(given?.tensors == null ? {} : { tensors: given.tensors }),
      ...(command.value.trim() === "" ? {} : { command: command.value }),
      ...(engine === undefined ? {} : { engine }),
      ...(version.value.trim() === "" ? {} : { engineVersion: version.value.trim() }),
      ...(length === undefined ? {} : { target: length }),
    });
    return { diagnosis, error: null };
  } catch (error) {
    return { diagnosis: null, error: messageOf(error) };
  }
});

export interface Repair {
  readonly fixed: Fixed;
  /** Of config.json; empty where it stays. */
  readonly patch: string;
  readonly command: string | null;
}
export const repair: ReadonlySignal<Repair | null> = computed(() => {
  const { diagnosis } = answer.value;
  if (diagnosis === null) return null;
  const before = config.value.trim() === "" ? undefined : config.value;
  const line = command.value.trim() === "" ? undefined : command.value;
  const fixed = applyFixes({ config: before, command: line }, diagnosis.findings);
  const patch = before === undefined || fixed.config === null ? "" : unifiedDiff("config.json", before, fixed.config);
  return { fixed, patch, command: fixed.command !== null && fixed.command !== line ? fixed.command : null };
});

interface Exported {
  readonly made: EngineExport | null;
  readonly error: string | null;
}
export const exported: ReadonlySignal<Exported> = computed(() => {
  const model = answer.value.diagnosis?.model ?? null;
  if (model === null) return { made: null, error: null };
  const to = exportTargets.find((name) => name === exportTo.value) ?? exportTargets[0];
  const length = lengthOf(exportLength.value);
  const text = config.value.trim() === "" ? null : config.value;
  try {
    const made = exportConfiguration(model, {
      to,
      ...(scaling.value.trim() === "" ? {} : { scaling: parseStrategy(scaling.value) }),
      ...(length === undefined ? {} : { length }),
      ...(text === null ? {} : { config: JSON.parse(text), configText: text }),
    });
    return { made, error: null };
  } catch (error) {
    return { made: null, error: messageOf(error) };
  }
});

/** Codes whose records carry a broken case that fits the fields. */
export const examples = [
  "yarn-factor-mismatch",
  "legacy-type-lost",
  "override-loses-theta",
  "llama-scale-inverted",
] as const;

/** Puts the broken case of a finding into the fields. */
export function showExample(code: string): void {
  const broken = recordOf(code)?.broken;
  if (broken == null) return;
  clear();
  if (broken.config !== undefined) setConfig(`${JSON.stringify(broken.config, null, 2)}\n`);
  command.value = broken.command ?? "";
  engineText.value = (broken.engine satisfies DoctorEngine | undefined) ?? "";
  version.value = broken.engineVersion ?? "";
  target.value = broken.target === undefined ? "" : String(broken.target);
}
