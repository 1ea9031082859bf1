// Clock: the hands of any model's rotary encoding, what training showed of their turns, and what a length or a strategy
// makes of them.

import { type Signal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { LogSlider } from "../../parts/controls.tsx";
import { short, whole } from "../../shell/numbers.ts";
import { motionIsReduced, words } from "../../shell/preferences.ts";
import { Dials } from "./dials.tsx";
import { HandDetails } from "./hand-details.tsx";
import { HandsTable } from "./hands-table.tsx";
import { ModelForm } from "./model-form.tsx";
import { Relative } from "./relative.tsx";
import {
  findBuiltIns,
  goTo,
  group,
  inspection,
  maxPosition,
  position,
  reading,
  scaledGroup,
  scaledInspection,
  scaling,
} from "./state.ts";
import { Wavelengths } from "./wavelengths.tsx";

const running: Signal<boolean> = signal(false);

export function Clock(): JSX.Element {
  const text = words.value.clock;
  useEffect(() => {
    void findBuiltIns();
  }, []);
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <ModelForm />
      <Body />
    </>
  );
}

function Body(): JSX.Element | null {
  const text = words.value.clock;
  if (reading.value.kind === "loading") return <p role="status">{text.loading}</p>;
  if (reading.value.kind === "gone") return <p role="status">{text.fileGone}</p>;
  const of = group.value;
  const seen = inspection.value;
  if (of === null || seen === null) return null;
  if (of.hands.length === 0) {
    const kind = text.kinds[of.kind as keyof typeof text.kinds];
    return (
      <section class="card">
        <p>
          {text.noHands} {kind}
        </p>
        {of.slopes === undefined ? null : <p class="mono">{of.slopes.map((slope) => short(slope)).join(" · ")}</p>}
      </section>
    );
  }
  return (
    <>
      <section class="card" aria-labelledby="hands">
        <h2 id="hands">{text.hands}</h2>
        <Summary />
        <Run />
        <Dials />
        <Legend />
      </section>
      <div class="columns">
        <HandDetails />
        <Relative />
      </div>
      <section class="card">
        <Wavelengths />
      </section>
      <HandsTable />
      <Findings />
    </>
  );
}

function Summary(): JSX.Element {
  const text = words.value.clock;
  const { summary } = group.value!;
  const over = scaledGroup.value?.summary ?? null;
  const target = whole(inspection.value!.targetLength ?? 0);
  return (
    <p class="summary" aria-live="polite">
      {summary === null ? null : text.summary(summary.unseen, summary.turning, target)}{" "}
      {over === null ? null : <strong>{text.summaryScaled(over.unseen, over.turning, scaling.value.trim())}</strong>}
    </p>
  );
}

function Run(): JSX.Element {
  const text = words.value.clock;
  useEffect(() => {
    if (!running.value) return;
    let frame = requestAnimationFrame(function tick() {
      // A token a frame at first, faster the further it is, as on the slider.
      const next = position.value + Math.max(1, Math.round(position.value / 250));
      if (next > maxPosition) running.value = false;
      else goTo(next);
      if (running.value) frame = requestAnimationFrame(tick);
    });
    return () => cancelAnimationFrame(frame);
  }, [running.value]);
  useEffect(
    () => () => {
      running.value = false;
    },
    [],
  );
  return (
    <LogSlider label={text.position} value={position.value} max={maxPosition} onChange={goTo}>
      {motionIsReduced ? null : (
        <button
          type="button"
          aria-pressed={running.value}
          onClick={() => {
            running.value = !running.value;
          }}
        >
          {running.value ? text.pause : text.play}
        </button>
      )}
    </LogSlider>
  );
}

function Legend(): JSX.Element {
  const text = words.value.clock;
  const entries = [
    ["many", text.legendMany],
    ["some", text.legendSome],
    ["part", text.legendPart],
    ["little", text.legendLittle],
    ["unseen", text.legendUnseen],
    ...(scaledInspection.value === null ? [] : ([["strategy", text.legendScaled]] as const)),
  ] as const;
  return (
    <ul class="legend">
      {entries.map(([name, label]) => (
        <li key={name}>
          <span class="swatch" style={{ background: `var(--${name})` }} />
          {label}
        </li>
      ))}
    </ul>
  );
}

function Findings(): JSX.Element | null {
  const findings = (scaledInspection.value ?? inspection.value)!.findings;
  if (findings.length === 0) return null;
  return (
    <details class="card">
      <summary>{words.value.clock.findings}</summary>
      <ul class="findings" lang="en">
        {findings.map(({ code, severity, where, expected, why, fix }) => (
          <li key={`${code} ${where}`}>
            <strong>{severity}</strong> {where}: {expected}. {why} {fix}
          </li>
        ))}
      </ul>
    </details>
  );
}
