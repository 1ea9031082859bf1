// The relative matrix M_R on one hand: what moves k to k + R is one rotation, the same at every k.

import type { JSX } from "preact";
import { applyRotary } from "../../../src/encodings/rope/rotation.ts";
import { rotaryTables } from "../../../src/encodings/rope/tables.ts";
import { Canvas, type Surface } from "../../parts/canvas.tsx";
import { LogSlider } from "../../parts/controls.tsx";
import { exact, whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { drawHand, drawHub } from "./dial.ts";
import { group, maxPosition, offset, position, scaledGroup, setOffset, shown } from "./state.ts";

export interface Motion {
  /** [[cos, −sin], [sin, cos]] of R·ω. */
  readonly matrix: readonly (readonly [number, number])[];
  readonly before: readonly [number, number];
  readonly moved: readonly [number, number];
  readonly table: readonly [number, number];
  /** The larger of the two differences between them. */
  readonly difference: number;
}

function motion(): Motion | null {
  const of = scaledGroup.value ?? group.value;
  const omega = of?.inverseFrequencies[shown.value];
  return omega === undefined ? null : motionOf(omega, position.value, offset.value);
}

/** What M_R makes of the hand at k, and where the table has it at k + R. */
export function motionOf(omega: number, k: number, r: number): Motion {
  const at = (p: number) => rotaryTables({ inverseFrequencies: [omega], attentionFactor: 1 }, [p]);
  const point = (p: number): [number, number] => [at(p).cos[0]!, at(p).sin[0]!];
  const options = { headDim: 2, layout: "half" } as const;
  const before = point(k);
  // The columns of M_R are where it takes (1, 0) and (0, 1).
  const [a, c] = applyRotary([1, 0], at(r), options);
  const [b, d] = applyRotary([0, 1], at(r), options);
  const [x, y] = applyRotary(before, at(r), options);
  const table = point(k + r);
  return {
    matrix: [
      [a!, b!],
      [c!, d!],
    ],
    before,
    moved: [x!, y!],
    table,
    difference: Math.max(Math.abs(x! - table[0]), Math.abs(y! - table[1])),
  };
}

const six = (value: number): string => value.toFixed(6).replace("-", "−");

export function Relative(): JSX.Element | null {
  const text = words.value.clock;
  const of = motion();
  if (of === null) return null;
  const { matrix, before, moved, table, difference } = of;
  return (
    <section class="card" aria-labelledby="relative">
      <h3 id="relative">{text.relative}</h3>
      <p>{text.relativeLead}</p>
      <LogSlider label={text.distance} value={offset.value} max={maxPosition} onChange={setOffset} />
      <div class="relative">
        <div class="big-dial">
          <Canvas
            role="img"
            aria-label={`${text.hand(shown.value)}: k, k + R`}
            heightFor={(width) => width}
            draw={draw}
          />
        </div>
        <div class="equation">
          <Column name={`M_R, R = ${whole(offset.value)}`} rows={matrix} />
          <span aria-hidden="true">·</span>
          <Column name={`P(k), k = ${whole(position.value)}`} rows={before.map((value) => [value])} />
          <div>
            <span aria-hidden="true">=</span>
            <Column name={text.product} rows={moved.map((value) => [value])} />
          </div>
        </div>
        <dl class="numbers">
          <dt>{text.product}</dt>
          <dd>
            <Pair of={moved} />
          </dd>
          <dt>{text.tableValue}</dt>
          <dd>
            <Pair of={table} />
          </dd>
          <dt>{text.difference}</dt>
          <dd>{difference === 0 ? "0" : difference.toExponential(1)}</dd>
        </dl>
      </div>
    </section>
  );
}

/** Both coordinates with every digit, below one another. */
function Pair({ of }: { readonly of: readonly [number, number] }): JSX.Element {
  return (
    <>
      {exact(of[0])}
      <br />
      {exact(of[1])}
    </>
  );
}

export function Column(props: { readonly name: string; readonly rows: readonly (readonly number[])[] }): JSX.Element {
  return (
    <table class="matrix">
      <caption>{props.name}</caption>
      <tbody>
        {props.rows.map((row, index) => (
          <tr key={index}>
            {row.map((value, column) => (
              <td key={column}>{six(value)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function draw(surface: Surface): void {
  const of = motion();
  if (of !== null) drawMotion(surface, of);
}

export function drawMotion(surface: Surface, of: Motion): void {
  const { context, width, colour } = surface;
  const dial = { x: width / 2, y: width / 2, radius: width / 2 - 32 };
  context.lineWidth = 2;
  context.strokeStyle = colour("track");
  context.beginPath();
  context.arc(dial.x, dial.y, dial.radius, 0, 2 * Math.PI);
  context.stroke();
  const [k, to] = [of.before, of.table].map(([cos, sin]) => ({ cos, sin })) as [Tip, Tip];
  drawHand(surface, dial, k, { colour: colour("some"), width: 3 });
  drawHand(surface, dial, to, { colour: colour("mark"), width: 3, dash: [7, 6] });
  drawHub(surface, dial, colour("ink"), 3.5);
  context.font = "12.5px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  // Where both point the same way, two names would lie on one another.
  const together = Math.hypot(k.cos - to.cos, k.sin - to.sin) < 0.35;
  const labels = together
    ? ([[to, "k, k + R", "ink"]] as const)
    : ([
        [k, "k", "some"],
        [to, "k + R", "mark"],
      ] as const);
  for (const [tip, label, name] of labels) {
    context.fillStyle = colour(name);
    context.fillText(label, dial.x + tip.sin * (dial.radius + 12), dial.y - tip.cos * (dial.radius + 12));
  }
}

interface Tip {
  readonly cos: number;
  readonly sin: number;
}
