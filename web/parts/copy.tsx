// A text to take along: shown as it is, copied at a press.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { words } from "../shell/preferences.ts";

type Said = "copied" | "failed" | null;

export function CopyButton({ text }: { readonly text: string }): JSX.Element {
  const own = words.value.doctor;
  const said = useMemo(() => signal<Said>(null), [text]);
  const copy = async (): Promise<void> => {
    // A page that is not served from this machine or over https has no clipboard.
    said.value = await Promise.resolve(navigator.clipboard?.writeText(text))
      .then(() => (navigator.clipboard === undefined ? ("failed" as const) : ("copied" as const)))
      .catch(() => "failed" as const);
  };
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {said.value === "copied" ? own.copied : own.copy}
      </button>
      {said.value === "failed" ? (
        <span class="problem" role="status">
          {own.copyFailed}
        </span>
      ) : null}
    </>
  );
}

/** Code that scrolls within itself. */
export function Code({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class={text.includes("\n") ? "code-block" : "code-block wrap"} aria-label={label} tabIndex={0}>
      <pre>
        <code>{text}</code>
      </pre>
    </section>
  );
}
