// A page whose code is fetched when it is first shown.

import { type Signal, signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { words } from "./preferences.ts";

type Fetched =
  | { readonly kind: "view"; readonly view: ComponentType }
  | { readonly kind: "error"; readonly error: unknown }
  | null;

export function later(load: () => Promise<ComponentType>): ComponentType {
  const fetched: Signal<Fetched> = signal<Fetched>(null);
  let isAsked = false;
  return function Later(): JSX.Element {
    if (!isAsked) {
      isAsked = true;
      load().then(
        (view) => {
          fetched.value = { kind: "view", view };
        },
        (error: unknown) => {
          fetched.value = { kind: "error", error };
        },
      );
    }
    const now = fetched.value;
    if (now === null) return <p role="status">{words.value.shell.opening}</p>;
    // The frame says it, and leaves the other pages usable.
    if (now.kind === "error") throw now.error;
    const View = now.view;
    return <View />;
  };
}
