// What the page and the worker of a run say to each other.

import type { LengthPoint } from "../../../src/evaluation/length-test.ts";
import type { TaskName, TrainingRecipe, TrainingRow } from "../../../src/training/index.ts";
import type { PageProvider } from "../../parts/runtime.ts";

/** What is trained on. */
export type TrainingData =
  | { readonly kind: "text"; readonly train: Uint8Array; readonly validation: Uint8Array }
  | { readonly kind: "task"; readonly task: TaskName; readonly sizes: readonly [number, number] };

export interface StartMessage {
  readonly kind: "start";
  readonly recipe: TrainingRecipe;
  readonly data: TrainingData;
  readonly provider: PageProvider;
  /** How many are trained at the same time, this one among them. */
  readonly models: number;
  readonly held: boolean;
}

export type ToWorker = StartMessage | { readonly kind: "hold" | "resume" | "step" | "drop" | "stop" | "model" };

export type FromWorker =
  /** Where it stands: after every step, and when something was asked of it. */
  | {
      readonly kind: "progress";
      readonly step: number;
      readonly held: boolean;
      readonly ended: boolean;
      readonly dropAt: number | null;
      readonly tokensPerSecond: number | null;
    }
  | { readonly kind: "row"; readonly row: TrainingRow }
  | { readonly kind: "lengths"; readonly trained: number; readonly points: readonly LengthPoint[] }
  /** Files of the model, by name. */
  | { readonly kind: "model"; readonly files: readonly (readonly [string, Uint8Array<ArrayBuffer>])[] }
  | { readonly kind: "error"; readonly message: string };
