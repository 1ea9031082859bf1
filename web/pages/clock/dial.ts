// One dial: the ring says which angles training has shown and which come at the target, the hands where they are now.
// Position 0 is at twelve o'clock, and hands go round as a clock's do.

import type { Hand } from "../../../src/encodings/rope/hands.ts";
import type { Surface } from "../../parts/canvas.tsx";
import { colourOf } from "./colours.ts";

/** Where a hand points: cosine and sine of its angle. */
export interface Direction {
  readonly cos: number;
  readonly sin: number;
}

export interface Dial {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

const top = -Math.PI / 2;
const turn = 2 * Math.PI;

function arc({ context }: Surface, { x, y }: Dial, radius: number, from: number, to: number): void {
  context.beginPath();
  context.arc(x, y, radius, top + from * turn, top + Math.min(to, from + 1) * turn);
  context.stroke();
}

/** The ring of one hand: turns shown in training, and those that only the target shows. */
export function drawRing(surface: Surface, dial: Dial, hand: Hand, width: number, ofStrategy: boolean): void {
  const { context, colour } = surface;
  context.lineCap = "butt";
  context.lineWidth = width;
  context.strokeStyle = colour("track");
  arc(surface, dial, dial.radius, 0, 1);
  context.strokeStyle = ofStrategy ? colour("strategy-soft") : colour(`${colourOf(hand)}-soft`);
  if (hand.turnsInTraining > 0) arc(surface, dial, dial.radius, 0, Math.min(1, hand.turnsInTraining));
  if (hand.seen) return;
  context.strokeStyle = colour("unseen");
  arc(
    surface,
    dial,
    dial.radius,
    hand.turnsInTraining,
    Math.max(hand.turnsInTraining, Math.min(1, hand.turnsAtTarget)),
  );
}

export function drawHand(
  { context }: Surface,
  { x, y, radius }: Dial,
  { cos, sin }: Direction,
  style: { readonly colour: string; readonly width: number; readonly dash?: readonly number[] },
): void {
  context.lineCap = "round";
  context.lineWidth = style.width;
  context.strokeStyle = style.colour;
  context.setLineDash(style.dash === undefined ? [] : [...style.dash]);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + sin * radius, y - cos * radius);
  context.stroke();
  context.setLineDash([]);
}

/** The middle of a dial. */
export function drawHub({ context }: Surface, { x, y }: Dial, colour: string, radius: number): void {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, radius, 0, turn);
  context.fill();
}
