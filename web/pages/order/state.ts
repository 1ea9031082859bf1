// The order page's state, and the library's answers to it.

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  compareOrders,
  type OrderComparison,
  type OrderEncoding,
  type OrderOptions,
  orderEncodings,
} from "../../../src/evaluation/order-blindness.ts";
import { parameter } from "../../shell/address.ts";

export const first: Signal<string> = parameter("first", "你打我");
export const second: Signal<string> = parameter("second", "我打你");
export const encodingText: Signal<string> = parameter("encoding", "none");
export const maskText: Signal<string> = parameter("mask", "off");
export const layersText: Signal<string> = parameter("depth", "1");

export const options: ReadonlySignal<OrderOptions> = computed(() => ({
  encoding: (orderEncodings as readonly string[]).includes(encodingText.value)
    ? (encodingText.value as OrderEncoding)
    : "none",
  causal: maskText.value === "on",
  numLayers: layersText.value === "2" ? 2 : 1,
}));

export interface Answer {
  readonly comparison: OrderComparison | null;
  readonly error: string | null;
}
const none: Answer = { comparison: null, error: null };

async function ask(a: string, b: string, of: OrderOptions): Promise<Answer> {
  try {
    return { comparison: await compareOrders(a, b, of), error: null };
  } catch (error) {
    return { comparison: null, error: error instanceof Error ? error.message : String(error) };
  }
}

export const answer: Signal<Answer> = signal(none);

/** One square of the overview. */
export interface Square {
  readonly options: OrderOptions;
  /** null until it is computed. */
  readonly answer: Answer | null;
}

export const variants: readonly { readonly causal: boolean; readonly numLayers: number }[] = [
  { causal: false, numLayers: 1 },
  { causal: false, numLayers: 2 },
  { causal: true, numLayers: 1 },
  { causal: true, numLayers: 2 },
];
const empty: readonly Square[] = orderEncodings.flatMap((encoding) =>
  variants.map((variant) => ({ options: { encoding, ...variant }, answer: null })),
);
export const overview: Signal<readonly Square[]> = signal(empty);

/** Keeps the answers in step with the sentences and the switches; returns what ends it. */
export function keepAnswering(): () => void {
  let latest = 0;
  const endAnswer = effect(() => {
    const [a, b, of] = [first.value, second.value, options.value];
    const mine = ++latest;
    void ask(a, b, of).then((found) => {
      // A newer question may have been answered already.
      if (mine === latest) answer.value = found;
    });
  });
  let round = 0;
  const endOverview = effect(() => {
    const [a, b] = [first.value, second.value];
    const mine = ++round;
    void (async () => {
      const squares: Square[] = [];
      for (const square of empty) {
        squares.push({ ...square, answer: await ask(a, b, square.options) });
        // Lets the page draw between two runs.
        if (squares.length % variants.length === 0) {
          await new Promise((done) => setTimeout(done));
          if (mine !== round) return;
          overview.value = [...squares, ...empty.slice(squares.length)];
        }
      }
    })();
  });
  return () => {
    latest++;
    round++;
    endAnswer();
    endOverview();
  };
}
