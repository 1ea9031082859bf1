// Whether WebGPU may be chosen. That `navigator.gpu` is there says little: it is there on machines without an adapter too.
// Asking for one where there is none makes Chromium complain in the console, so it is asked once somebody chooses it.

import { type Signal, signal } from "@preact/signals";

/** null while nobody has asked. */
const found: Signal<boolean | null> = signal("gpu" in navigator ? null : false);

/** Whether WebGPU is to be offered: until it turns out that there is no adapter. */
export const mayHaveAdapter = (): boolean => found.value !== false;

let asked = false;
/** Asks whether there is an adapter, once. */
export function findAdapter(): void {
  if (asked || found.value === false) return;
  asked = true;
  navigator.gpu.requestAdapter().then(
    (adapter) => {
      found.value = adapter !== null;
    },
    () => {
      found.value = false;
    },
  );
}
