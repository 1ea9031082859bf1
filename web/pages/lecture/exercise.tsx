// An idea's question: one number, judged by computing the answer.

import { type Signal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId } from "preact/hooks";
import { type Idea, judgeAnswer, type Verdict } from "../../../src/advice/exercises.ts";
import { models } from "../../parts/built-in.ts";
import { short } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";

type Said = Verdict | { readonly error: string } | null;

const given: Signal<string> = signal("");
const said: Signal<Said> = signal<Said>(null);

export function Exercise({ of }: { readonly of: Idea }): JSX.Element {
  const text = words.value.lecture;
  const id = useId();
  useEffect(() => {
    given.value = "";
    said.value = null;
  }, [of]);
  const ask = async (): Promise<void> => {
    const asked = given.value;
    const number = Number(asked.replace(/[,_\s]/g, ""));
    if (asked.trim() === "" || !Number.isFinite(number)) {
      said.value = { error: text.notNumber };
      return;
    }
    const verdict = await judgeAnswer(of, number, models).catch((error: unknown) => ({
      error: `${text.unreadable}: ${error instanceof Error ? error.message : String(error)}`,
    }));
    // The reader may have gone on meanwhile.
    if (given.value === asked) said.value = verdict;
  };
  return (
    <section class="card exercise" aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>{text.exercise}</h3>
      <p>{text[of].question}</p>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <input
          type="text"
          inputMode="decimal"
          autocomplete="off"
          aria-label={text.answer}
          placeholder={text.answer}
          aria-describedby={`${id}-verdict`}
          value={given.value}
          onInput={(event) => {
            given.value = event.currentTarget.value;
            said.value = null;
          }}
        />
        <button type="submit">{text.check}</button>
      </form>
      <p id={`${id}-verdict`} role="status" data-number="verdict">
        <Said />
      </p>
      <details>
        <summary>{text.hint}</summary>
        <p>{text[of].hint}</p>
      </details>
    </section>
  );
}

function Said(): JSX.Element | null {
  const text = words.value.lecture;
  const verdict = said.value;
  if (verdict === null) return null;
  if ("error" in verdict) return <span class="bad">{verdict.error}</span>;
  if (verdict.right) return <span class="good">{text.right(short(verdict.answer, 9))}</span>;
  return <span class="bad">{verdict.side === "below" ? text.below : text.above}</span>;
}
