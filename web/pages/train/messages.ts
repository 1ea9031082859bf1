// What the page and the worker of a run say to each other.

import type { TrainingAsk, TrainingQuestion } from "../../../src/evaluation/live-training.ts";
import type { PageProvider } from "../../parts/runtime.ts";

export interface StartMessage {
  readonly kind: "start";
  readonly question: TrainingQuestion;
  readonly provider: PageProvider;
  /** How many are trained at the same time, this one among them. */
  readonly models: number;
}

/** Answered by words of the training. */
export type ToWorker = StartMessage | { readonly kind: TrainingAsk };
