// Curves on two axes, on a canvas of their own: lines, bands, marks, and a place that is read. It places what it is
// given; the numbers are the caller's, and the caller puts them into words beside it.

import type { JSX } from "preact";
import { powerLabel } from "../../src/advice/chart/scale.ts";
import { short, whole } from "../shell/numbers.ts";
import { Canvas, type Surface } from "./canvas.tsx";

export interface Line {
  /** A colour of the style sheet. */
  readonly colour: string;
  readonly x: ArrayLike<number>;
  readonly y: ArrayLike<number>;
  readonly dash?: boolean;
  /** The ends of a band around the line. */
  readonly low?: ArrayLike<number>;
  readonly high?: ArrayLike<number>;
}

export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly label: string;
  /** Logarithmic, in powers of ten; from 0 it is even in log(1 + x). */
  readonly log?: boolean;
}

export interface ChartProperties {
  /** What it shows, in words and numbers, for who does not see it. */
  readonly label: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly Line[];
  /** Upright rules. */
  readonly marks?: readonly { readonly x: number; readonly label: string }[];
  /** The place that is read; dragging moves it. */
  readonly read?: number;
  readonly onRead?: (x: number) => void;
  readonly tall?: boolean;
}

const left = 48;
const right = 14;
const top = 30;
const foot = 38;

interface Scale {
  readonly to: (value: number) => number;
  readonly back: (share: number) => number;
}
/** From values to shares of the axis, and back. */
function scaleOf({ from, to, log }: Axis): Scale {
  if (!log) return { to: (value) => (value - from) / (to - from), back: (share) => from + share * (to - from) };
  const shift = from === 0 ? 1 : 0;
  const [a, b] = [Math.log(from + shift), Math.log(to + shift)];
  return {
    to: (value) => (Math.log(value + shift) - a) / (b - a),
    back: (share) => Math.exp(a + share * (b - a)) - shift,
  };
}

function ticksOf({ from, to, log }: Axis, room: number): { readonly at: number; readonly label: string }[] {
  if (log) {
    const powers = Array.from({ length: 16 }, (_, power) => power).filter((power) => {
      const value = 10 ** power;
      return value >= from * 0.999 && value <= to * 1.001;
    });
    const all = powers.map((power) => ({ at: 10 ** power, label: powerLabel(power) }));
    return from === 0 ? [{ at: 0, label: "0" }, ...all] : all;
  }
  const rough = (to - from) / Math.max(2, room);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999)!;
  const ticks: { at: number; label: string }[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; i++) {
    const at = i * step;
    ticks.push({ at, label: Math.abs(at) >= 1000 ? whole(at) : short(Number(at.toPrecision(6)), 4).replace("-", "−") });
  }
  return ticks;
}

export function Chart(properties: ChartProperties): JSX.Element {
  const { label, x, onRead, tall } = properties;
  const readAt = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - box.left - left) / (box.width - left - right);
    onRead?.(Math.round(scaleOf(x).back(Math.min(1, Math.max(0, share)))));
  };
  return (
    <div class={onRead === undefined ? "chart" : "chart readable"}>
      <Canvas
        role="img"
        aria-label={label}
        heightFor={(width) => (tall ? (width < 520 ? 250 : 310) : width < 520 ? 220 : 260)}
        draw={(surface) => draw(surface, properties)}
        onPointerDown={readAt}
        onPointerMove={(event) => {
          if (event.buttons === 1) readAt(event);
        }}
      />
    </div>
  );
}

function draw({ context, width, height, colour }: Surface, properties: ChartProperties): void {
  const { x: xAxis, y: yAxis, lines, marks = [], read } = properties;
  const bottom = height - foot;
  const scales = { x: scaleOf(xAxis), y: scaleOf(yAxis) };
  const x = (value: number): number => left + scales.x.to(value) * (width - left - right);
  const y = (value: number): number => bottom - scales.y.to(value) * (bottom - top);
  const rule = (x0: number, y0: number, x1: number, y1: number): void => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  };
  context.font = "11.5px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  context.strokeStyle = colour("line");
  context.fillStyle = colour("soft");
  context.textAlign = "right";
  for (const { at, label } of ticksOf(yAxis, (bottom - top) / 42)) {
    rule(left, y(at), width - right, y(at));
    context.fillText(label, left - 7, y(at));
  }
  context.textAlign = "center";
  for (const { at, label } of ticksOf(xAxis, (width - left - right) / 80)) {
    rule(x(at), top, x(at), bottom);
    context.fillText(label, x(at), bottom + 12);
  }
  context.textAlign = "left";
  context.fillText(yAxis.label, 4, 9);
  context.textAlign = "right";
  context.fillText(xAxis.label, width - right, bottom + 28);
  for (const { x: at, label } of marks) {
    const place = x(at);
    context.strokeStyle = colour("mark");
    context.fillStyle = colour("mark");
    context.lineWidth = 1.5;
    rule(place, top - 4, place, bottom);
    context.textAlign = place > width - 90 ? "right" : "left";
    context.fillText(label, place + (place > width - 90 ? -5 : 5), top - 7);
  }
  context.save();
  context.beginPath();
  context.rect(left, top - 3, width - left - right + 3, bottom - top + 6);
  context.clip();
  context.lineJoin = "round";
  for (const line of lines) {
    const count = line.x.length;
    if (line.low !== undefined && line.high !== undefined) {
      context.globalAlpha = 0.16;
      context.fillStyle = colour(line.colour);
      context.beginPath();
      for (let i = 0; i < count; i++) context.lineTo(x(line.x[i]!), y(line.high[i]!));
      for (let i = count - 1; i >= 0; i--) context.lineTo(x(line.x[i]!), y(line.low[i]!));
      context.fill();
      context.globalAlpha = 1;
    }
    context.strokeStyle = colour(line.colour);
    context.lineWidth = 2;
    context.setLineDash(line.dash ? [6, 4] : []);
    context.beginPath();
    for (let i = 0; i < count; i++) context.lineTo(x(line.x[i]!), y(line.y[i]!));
    context.stroke();
  }
  context.restore();
  if (read === undefined) return;
  context.setLineDash([2, 3]);
  context.lineWidth = 1;
  context.strokeStyle = colour("ink");
  rule(x(read), top, x(read), bottom);
  context.setLineDash([]);
}

/** The lines' names with their colours. */
export function Legend(props: {
  readonly entries: readonly { readonly name: string; readonly colour: string; readonly hollow?: boolean }[];
}): JSX.Element {
  return (
    <ul class="legend">
      {props.entries.map(({ name, colour, hollow }) => (
        <li key={name}>
          <span
            class={hollow ? "swatch hollow" : "swatch"}
            style={hollow ? { borderColor: `var(--${colour})` } : { background: `var(--${colour})` }}
          />
          {name}
        </li>
      ))}
    </ul>
  );
}
