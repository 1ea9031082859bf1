// Lecture: twelve ideas, each a short text beside a figure that is computed here, and a question at its end.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { type Idea, ideas } from "../../../src/advice/exercises.ts";
import { addressWith, visit } from "../../shell/address.ts";
import { words } from "../../shell/preferences.ts";
import { Exercise } from "./exercise.tsx";
import { views } from "./ideas.ts";
import { goToIdea, idea } from "./state.ts";

const neighbour = (by: number): Idea | undefined => ideas[ideas.indexOf(idea.value) + by];

/** Goes on without leaving the reader at the foot of the last idea. */
function step(by: number): void {
  const next = neighbour(by);
  if (next === undefined) return;
  goToIdea(next);
  document.getElementById("idea-title")?.scrollIntoView({ block: "nearest" });
}

/** Arrow keys that a control, a text or a scrolling region needs are left to it. */
function onKey(event: KeyboardEvent): void {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (by === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const target = event.target as HTMLElement;
  if (target.closest("input, select, textarea, [role=slider], .scroll, canvas") !== null) return;
  event.preventDefault();
  step(by);
}

export function Lecture(): JSX.Element {
  const text = words.value.lecture;
  useEffect(() => {
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  const now = idea.value;
  const own = text[now];
  const { figure: Figure, further } = views[now];
  const paragraphs: readonly string[] = own.text;
  const caption = "caption" in own ? own.caption : null;
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <nav class="ideas" aria-label={text.ideas}>
        <ol>
          {ideas.map((one, i) => (
            <li key={one}>
              <a
                href={addressWith({ idea: one })}
                aria-current={one === now ? "step" : undefined}
                onClick={(event) => {
                  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
                  event.preventDefault();
                  goToIdea(one);
                }}
              >
                <span aria-hidden="true">{i + 1}</span>
                {text[one].name}
              </a>
            </li>
          ))}
        </ol>
      </nav>
      <div class="lecture">
        <section aria-labelledby="idea-title">
          <p class="hint" aria-live="polite">
            {text.step(ideas.indexOf(now) + 1, ideas.length)}
          </p>
          <h2 id="idea-title">{own.title}</h2>
          {paragraphs.map((paragraph) => (
            <p key={paragraph}>{paragraph}</p>
          ))}
          <p class="actions">
            <button type="button" disabled={neighbour(-1) === undefined} onClick={() => step(-1)}>
              ← {text.previous}
            </button>
            <button type="button" disabled={neighbour(1) === undefined} onClick={() => step(1)}>
              {text.next} →
            </button>
          </p>
          <p class="hint keys">{text.keys}</p>
        </section>
        <section class="card" aria-label={text.figure} data-figure={now}>
          {caption === null ? null : <p class="caption">{caption}</p>}
          <Figure key={now} />
          <p class="further actions">
            {further().map(({ page, state }) => (
              <a
                key={page}
                href={addressWith({ page, ...state })}
                onClick={(event) => {
                  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
                  event.preventDefault();
                  visit({ page, ...state });
                  window.scrollTo(0, 0);
                }}
              >
                {text.openIn(words.value[page].name)} →
              </a>
            ))}
          </p>
        </section>
        <Exercise of={now} />
      </div>
    </>
  );
}
