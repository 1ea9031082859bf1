// What the page and its worker say to each other.

import type { CompareEvent, ComparePlan, CompareQuestion } from "../../../src/evaluation/live-compare.ts";
import type { PageProvider } from "../../parts/runtime.ts";

/** A model that a page can read. */
export type PageModel =
  | { readonly kind: "built-in"; readonly base: string; readonly name: string }
  | { readonly kind: "files"; readonly files: readonly File[] };

export type ToWorker =
  | { readonly kind: "plan"; readonly id: number; readonly model: PageModel; readonly question: CompareQuestion }
  | {
      readonly kind: "start";
      readonly model: PageModel;
      readonly question: CompareQuestion;
      readonly provider: PageProvider;
    }
  | { readonly kind: "cancel" }
  | { readonly kind: "report"; readonly format: string; readonly language: "en" | "zh-TW" };

/** What happens to a compare, in the page or on the server. */
export type LiveEvent =
  | CompareEvent
  | { readonly event: "run"; readonly run: string }
  | { readonly event: "done" }
  | { readonly event: "cancelled" }
  | { readonly event: "error"; readonly message: string };

export type FromWorker =
  | { readonly kind: "plan"; readonly id: number; readonly plan: ComparePlan }
  | { readonly kind: "plan-error"; readonly id: number; readonly message: string }
  | { readonly kind: "event"; readonly event: LiveEvent }
  | {
      readonly kind: "report";
      readonly name: string;
      readonly type: string;
      readonly content: string | Uint8Array<ArrayBuffer>;
    };
