// All hands of a group, each on a dial of its own: one canvas, so that a thousand lines a frame cost nothing.

import type { JSX } from "preact";
import type { InspectedGroup } from "../../../src/advice/inspect.ts";
import { rotaryTables } from "../../../src/encodings/rope/tables.ts";
import { Canvas, type Surface } from "../../parts/canvas.tsx";
import { short } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { colourOf } from "./colours.ts";
import { drawHand, drawHub, drawRing } from "./dial.ts";
import { choose, chosen, group, pointed, position, scaledGroup, shown } from "./state.ts";

interface Grid {
  readonly columns: number;
  readonly size: number;
  readonly rows: number;
}

function gridOf(width: number, count: number): Grid {
  const least = width < 520 && count > 16 ? 36 : 62;
  // Powers of two, so that rows of the clock are octaves of the same length.
  let columns = 4;
  while (columns * 2 * least <= width && columns * 2 <= count) columns *= 2;
  return { columns, size: Math.min(width / columns, 92), rows: Math.ceil(count / columns) };
}

const count = (): number => group.value?.hands.length ?? 0;

export function Dials(): JSX.Element {
  const text = words.value.clock;
  const at = (event: MouseEvent): number | null => {
    const element = event.currentTarget as HTMLCanvasElement;
    const box = element.getBoundingClientRect();
    const { columns, size } = gridOf(box.width, count());
    const column = Math.floor((event.clientX - box.left) / size);
    const pair = Math.floor((event.clientY - box.top) / size) * columns + column;
    return column >= 0 && column < columns && pair >= 0 && pair < count() ? pair : null;
  };
  const move = (event: KeyboardEvent): void => {
    const width = (event.currentTarget as HTMLElement).clientWidth;
    const { columns } = gridOf(width, count());
    const to: Readonly<Record<string, number>> = {
      ArrowLeft: chosen.value - 1,
      ArrowRight: chosen.value + 1,
      ArrowUp: chosen.value - columns,
      ArrowDown: chosen.value + columns,
      Home: 0,
      End: count() - 1,
    };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    pointed.value = null;
    if (next >= 0 && next < count()) choose(next);
  };
  const hand = group.value!.hands[chosen.value]!;
  return (
    <div class="dials">
      <Canvas aria-hidden="true" heightFor={heightFor} draw={drawRings} />
      <Canvas
        tabIndex={0}
        role="slider"
        aria-label={`${text.hands}. ${text.handsHelp}`}
        aria-valuemin={0}
        aria-valuemax={count() - 1}
        aria-valuenow={chosen.value}
        aria-valuetext={`${text.hand(hand.pair)}: ${text.wavelength} ${hand.wavelength === null ? text.still : short(hand.wavelength)}, ${text.turnsTrained} ${short(hand.turnsInTraining, 4)}, ${text.seen}: ${hand.seen ? text.yes : text.no}`}
        onPointerMove={(event) => {
          if (event.pointerType === "mouse") pointed.value = at(event);
        }}
        onPointerLeave={() => {
          pointed.value = null;
        }}
        onClick={(event) => {
          const pair = at(event);
          if (pair !== null) choose(pair);
        }}
        onKeyDown={move}
        heightFor={heightFor}
        draw={drawHands}
      />
    </div>
  );
}

function heightFor(width: number): number {
  const { size, rows } = gridOf(width, count());
  return rows * size;
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly size: number;
  readonly radius: number;
  /** The width of the ring. */
  readonly ring: number;
}

function places(width: number): Place[] {
  const { columns, size } = gridOf(width, count());
  const large = size > 55;
  return Array.from({ length: count() }, (_, pair) => ({
    x: ((pair % columns) + 0.5) * size,
    y: (Math.floor(pair / columns) + 0.5) * size,
    size,
    radius: size / 2 - (large ? 6 : 4),
    ring: large ? 4 : 3,
  }));
}

/** What does not change with the position has a canvas of its own, so that a dragged slider draws hands alone. */
function drawRings(surface: Surface): void {
  const { context, width, colour } = surface;
  const over = scaledGroup.value;
  const all = places(width);
  group.value?.hands.forEach((hand, pair) => {
    const { x, y, size, radius, ring } = all[pair]!;
    if (pair === shown.value) {
      context.fillStyle = colour("marked");
      context.beginPath();
      context.roundRect(x - size / 2 + 1, y - size / 2 + 1, size - 2, size - 2, 6);
      context.fill();
    }
    drawRing(surface, { x, y, radius }, hand, ring, false);
    const scaled = over?.hands[pair];
    if (scaled !== undefined) drawRing(surface, { x, y, radius: radius - ring - 1 }, scaled, ring - 1, true);
  });
}

function drawHands(surface: Surface): void {
  const { width, colour } = surface;
  const of = group.value;
  if (of === null) return;
  const over = scaledGroup.value;
  const tables = ({ inverseFrequencies }: InspectedGroup) =>
    rotaryTables({ inverseFrequencies, attentionFactor: 1 }, [position.value]);
  const angles = tables(of);
  const overAngles = over === null ? null : tables(over);
  const all = places(width);
  of.hands.forEach((hand, pair) => {
    const { x, y, size, radius, ring } = all[pair]!;
    const inner = { x, y, radius: radius - ring - (over === null ? 2 : 4) };
    if (overAngles !== null) {
      const direction = { cos: overAngles.cos[pair]!, sin: overAngles.sin[pair]! };
      drawHand(surface, inner, direction, { colour: colour("strategy"), width: size > 55 ? 2 : 1.5 });
    }
    const direction = { cos: angles.cos[pair]!, sin: angles.sin[pair]! };
    drawHand(surface, inner, direction, { colour: colour(colourOf(hand)), width: size > 55 ? 2.6 : 2 });
    drawHub(surface, inner, colour(colourOf(hand)), size > 55 ? 2.4 : 1.8);
  });
}
