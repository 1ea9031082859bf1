// The whole state of the page lives in its address: a link shows what its sender saw. A parameter that has its default is
// left out. Reading is forgiving (an unknown value is the default), because people edit addresses by hand.

import { effect, type Signal, signal } from "@preact/signals";

interface Parameter {
  readonly name: string;
  readonly value: Signal<string>;
  readonly initial: string;
}

const parameters = new Map<string, Parameter>();
const read = (): URLSearchParams => new URLSearchParams(window.location.search);

/** What the address says to pages that have not been opened: they take it when they come. */
const waiting = new Map<string, string>(read());
/** Counts parameters, so that the address is written again when there are more of them. */
const count: Signal<number> = signal(0);

/** A part of the state: a text that stands in the address under its name. */
export function parameter(name: string, initial: string): Signal<string> {
  const known = parameters.get(name);
  if (known !== undefined) return known.value;
  const value = signal(waiting.get(name) ?? initial);
  waiting.delete(name);
  parameters.set(name, { name, value, initial });
  count.value = parameters.size;
  return value;
}

/** The address of this page with some of its state replaced. */
export function addressWith(changes: Readonly<Record<string, string>>): string {
  count.value;
  const query = new URLSearchParams();
  for (const { name, value, initial } of parameters.values()) {
    const text = changes[name] ?? value.value;
    if (text !== initial) query.set(name, text);
  }
  for (const [name, text] of [...waiting, ...Object.entries(changes)]) {
    if (!parameters.has(name)) query.set(name, text);
  }
  const text = query.toString();
  return text === "" ? window.location.pathname : `?${text}`;
}

/** Keeps the address in step with the state, and the state with the back button. Call once. */
export function keepAddress(): void {
  let timer: number | undefined;
  effect(() => {
    const address = addressWith({});
    // Browsers refuse hundreds of changes a minute, which a dragged slider makes.
    window.clearTimeout(timer);
    timer = window.setTimeout(() => {
      if (address !== window.location.search) window.history.replaceState(null, "", address);
    }, 200);
  });
  window.addEventListener("popstate", () => {
    const query = read();
    for (const { name, value, initial } of parameters.values()) value.value = query.get(name) ?? initial;
    waiting.clear();
    for (const [name, text] of query) if (!parameters.has(name)) waiting.set(name, text);
  });
}

/** Goes to another page of the lab: a step that the back button undoes. */
export function visit(changes: Readonly<Record<string, string>>): void {
  window.history.pushState(null, "", addressWith(changes));
  for (const [name, text] of Object.entries(changes)) {
    const known = parameters.get(name);
    if (known === undefined) waiting.set(name, text);
    else known.value.value = text;
  }
}
