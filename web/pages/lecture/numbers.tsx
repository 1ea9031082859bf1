// A figure's numbers, in words that everyone can read.

import type { ComponentChildren, JSX } from "preact";

export function Numbers(props: {
  /** Name, value, and the mark by which the value is found. */
  readonly rows: readonly (readonly [name: ComponentChildren, value: string, mark: string])[];
}): JSX.Element {
  return (
    <dl class="numbers">
      {props.rows.map(([name, value, mark]) => (
        <div key={mark}>
          <dt>{name}</dt>
          <dd data-number={mark}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
