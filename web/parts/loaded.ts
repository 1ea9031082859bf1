// Something that is fetched once and then kept: loading, then its value or what went wrong. Reloading the page tries again.

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";

export type Loaded<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "ready"; readonly value: T };

/** A function that starts each load at its first call, by name. */
export function loadedOnce<T>(load: (name: string) => Promise<T>): (name: string) => ReadonlySignal<Loaded<T>> {
  const known = new Map<string, Signal<Loaded<T>>>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const state: Signal<Loaded<T>> = signal({ kind: "loading" });
    known.set(name, state);
    load(name).then(
      (value) => {
        state.value = { kind: "ready", value };
      },
      (error: unknown) => {
        state.value = { kind: "error", message: error instanceof Error ? error.message : String(error) };
      },
    );
    return state;
  };
}
