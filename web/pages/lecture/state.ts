// The lecture's state: which idea, and what its figure's controls say. All of it stands in the address.

import { computed, type ReadonlySignal, type Signal } from "@preact/signals";
import { type Idea, ideas } from "../../../src/advice/exercises.ts";
import { parameter } from "../../shell/address.ts";

const ideaText = parameter("idea", ideas[0]);
export const idea: ReadonlySignal<Idea> = computed(() =>
  (ideas as readonly string[]).includes(ideaText.value) ? (ideaText.value as Idea) : ideas[0],
);
export function goToIdea(next: Idea): void {
  ideaText.value = next;
}

/** A number of a figure's control. */
export interface Setting {
  readonly value: number;
  readonly set: (value: number) => void;
  readonly min: number;
  readonly max: number;
}

function setting(name: string, initial: number, min: number, max: number): Setting {
  const text = parameter(`fig-${name}`, String(initial));
  return {
    get value() {
      const value = Number(text.value);
      return Number.isFinite(value) ? Math.min(max, Math.max(min, value)) : initial;
    },
    set: (value) => {
      text.value = String(value);
    },
    min,
    max,
  };
}

/** Beyond what any model is sold with. */
const far = 1_048_576;
export const encoding: Signal<string> = parameter("fig-encoding", "none");
export const mask: Signal<string> = parameter("fig-mask", "off");
export const depth: Signal<string> = parameter("fig-depth", "1");
export const row: Setting = setting("row", 100, 0, 300);
export const position: Setting = setting("position", 1000, 0, far);
export const hand: Setting = setting("hand", 32, 0, 63);
export const offset: Setting = setting("step", 10, 0, far);
export const distance: Setting = setting("distance", 20, 0, 4096);
export const heads: Setting = setting("heads", 8, 1, 64);
export const query: Setting = setting("query", 5000, 0, far);
export const theta: Signal<string> = parameter("fig-theta", "10000");
export const factor: Setting = setting("factor", 4, 1, 32);
export const betaFast: Setting = setting("fast", 32, 1, 64);
export const betaSlow: Setting = setting("slow", 1, 1, 32);
export const length: Setting = setting("length", 8192, 1, 131_072);
export const shownModels: Signal<string> = parameter("fig-models", "");
