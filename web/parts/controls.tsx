// Controls that several pages use: a labelled choice, a set of switches, a slider over many powers of ten.

import type { Signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { whole } from "../shell/numbers.ts";

export interface Option {
  readonly value: string;
  readonly label: string;
}

export function Choice(props: {
  readonly label: string;
  readonly value: Signal<string>;
  readonly options: readonly Option[];
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={props.value.value}
        onChange={(event) => {
          props.value.value = event.currentTarget.value;
        }}
      >
        {props.options.map(({ value, label }) => (
          <option key={value} value={value} selected={value === props.value.value}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Switch(props: {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly colour?: string | undefined;
}): JSX.Element {
  return (
    <label class="switch">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      />
      {props.colour === undefined ? null : <span class="swatch" style={{ background: props.colour }} />}
      <span>{props.label}</span>
    </label>
  );
}

/** A text that counts only when it is entered, and says what is wrong with it. */
export function TextField(props: {
  readonly label: string;
  readonly value: Signal<string>;
  readonly error?: string | null | undefined;
  readonly hint?: string | undefined;
  readonly numeric?: boolean;
  readonly suggestions?: readonly string[];
  readonly wide?: boolean;
}): JSX.Element {
  const id = useId();
  const error = props.error ?? null;
  return (
    <div class={props.wide ? "field wide" : "field"}>
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="text"
        spellcheck={false}
        autocomplete="off"
        inputMode={props.numeric ? "decimal" : "text"}
        value={props.value.value}
        list={props.suggestions === undefined ? undefined : `${id}-list`}
        aria-invalid={error !== null}
        aria-describedby={error === null && props.hint === undefined ? undefined : `${id}-note`}
        onInput={(event) => {
          props.value.value = event.currentTarget.value;
        }}
      />
      {props.suggestions === undefined ? null : (
        <datalist id={`${id}-list`}>
          {props.suggestions.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
      {error === null ? (
        props.hint === undefined ? null : (
          <p class="hint" id={`${id}-note`}>
            {props.hint}
          </p>
        )
      ) : (
        <p class="problem" id={`${id}-note`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

/** Steps of the slider; a power of ten takes the same way everywhere on it. */
const steps = 2000;

/** A whole number from 0 to `max`, on a slider that is even in powers of ten, with the exact number beside it. */
export function LogSlider(props: {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  readonly onChange: (value: number) => void;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const id = useId();
  const { value, max, onChange } = props;
  const set = (next: number): void => onChange(Math.min(max, Math.max(0, Math.round(next))));
  const toStep = (n: number): number => Math.round((steps * Math.log1p(n)) / Math.log1p(max));
  const fromStep = (step: number): number => Math.expm1((step / steps) * Math.log1p(max));
  return (
    <div class="slider">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        class="range"
        type="range"
        min={0}
        max={steps}
        value={toStep(value)}
        aria-valuetext={whole(value)}
        onInput={(event) => set(fromStep(event.currentTarget.valueAsNumber))}
        onKeyDown={(event) => {
          // Arrows go token by token, where a step of the slider may be thousands.
          const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
          if (by === undefined) return;
          event.preventDefault();
          set(value + by * (event.shiftKey ? 100 : 1));
        }}
      />
      <input
        class="number"
        type="number"
        min={0}
        max={max}
        step={1}
        aria-label={props.label}
        value={value}
        onChange={(event) => {
          const next = event.currentTarget.valueAsNumber;
          if (Number.isFinite(next)) set(next);
        }}
      />
      {props.children}
    </div>
  );
}

/** A number on an even slider, with the exact number beside it. */
export function Slider(props: {
  readonly label: string;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly step?: number;
  readonly onChange: (value: number) => void;
}): JSX.Element {
  const id = useId();
  const { label, value, min, max, step = 1, onChange } = props;
  const set = (next: number): void => {
    if (Number.isFinite(next)) onChange(Math.min(max, Math.max(min, next)));
  };
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <input
        id={id}
        class="range"
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        onInput={(event) => set(event.currentTarget.valueAsNumber)}
      />
      <input
        class="number"
        type="number"
        min={min}
        max={max}
        step={step}
        aria-label={label}
        value={value}
        onChange={(event) => set(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}
