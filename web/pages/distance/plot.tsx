// Curves over distance: the distance on a logarithmic axis, so that the next token and the millionth are both seen.

import type { JSX } from "preact";
import { powerLabel } from "../../../src/advice/chart/scale.ts";
import { Canvas, type Surface } from "../../parts/canvas.tsx";
import { short } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { curves, distances, type Kind, reach, read, setRead, trained } from "./state.ts";

const left = 52;
const right = 12;
const top = 22;
const foot = 44;

/** T5's, by head. */
const dashes: readonly number[][] = [[], [6, 4], [2, 3], [10, 3, 2, 3]];

const x = (distance: number, width: number): number =>
  left + (Math.log1p(distance) / Math.log1p(reach.value)) * (width - left - right);

export function Plot({ kind, label }: { readonly kind: Kind; readonly label: string }): JSX.Element {
  const readAt = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - box.left - left) / (box.width - left - right);
    setRead(Math.round(Math.expm1(Math.min(1, Math.max(0, share)) * Math.log1p(reach.value))));
  };
  return (
    <div class="plot">
      <Canvas
        role="img"
        aria-label={label}
        heightFor={(width) => (width < 520 ? 230 : 300)}
        draw={(surface) => draw(surface, kind)}
        onPointerDown={readAt}
        onPointerMove={(event) => {
          if (event.buttons === 1) readAt(event);
        }}
      />
    </div>
  );
}

function draw({ context, width, height, colour }: Surface, kind: Kind): void {
  const shown = curves.value.filter((curve) => curve.kind === kind);
  const points = distances.value;
  let [low, high] = kind === "rotary" ? [-0.2, 1] : [-12, 0];
  for (const { scores } of shown) {
    for (let i = 0; i < points.length; i++) {
      // Biases fall without end, so their axis ends below.
      if (kind === "rotary") low = Math.min(low, scores[i]!);
      high = Math.max(high, scores[i]!);
    }
  }
  if (kind === "rotary") [low, high] = [Math.floor(low * 5) / 5, Math.ceil(high * 5) / 5];
  else high = Math.ceil(high);
  const bottom = height - foot;
  const y = (score: number): number => top + ((high - score) / (high - low)) * (bottom - top);
  context.font = "11.5px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  const line = (x0: number, y0: number, x1: number, y1: number): void => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  };
  context.strokeStyle = colour("line");
  context.fillStyle = colour("soft");
  context.textAlign = "right";
  const step = kind === "rotary" ? 0.2 : 2;
  for (let i = Math.round(low / step); i * step <= high + 1e-9; i++) {
    line(left, y(i * step), width - right, y(i * step));
    context.fillText(short(i * step, 3).replace("-", "−"), left - 8, y(i * step));
  }
  context.textAlign = "center";
  for (let power = 0; 10 ** power <= reach.value; power++) {
    line(x(10 ** power, width), top, x(10 ** power, width), bottom);
    context.fillText(powerLabel(power), x(10 ** power, width), bottom + 14);
  }
  context.fillText("0", left, bottom + 14);
  const { axes } = words.value.distance;
  context.textAlign = "right";
  context.fillText(axes.distance, width - right, bottom + 32);
  context.textAlign = "left";
  context.fillText(axes[kind], 4, top - 12);
  const length = Number(trained.value);
  if (length > 0 && length <= reach.value) {
    const at = x(length, width);
    context.strokeStyle = colour("mark");
    context.fillStyle = colour("mark");
    context.lineWidth = 1.5;
    line(at, top - 8, at, bottom);
    context.textAlign = at > width - 90 ? "right" : "left";
    context.fillText(words.value.clock.axisTrained, at + (at > width - 90 ? -5 : 5), top - 10);
  }
  context.save();
  context.beginPath();
  context.rect(left, top - 2, width - left - right + 2, bottom - top + 4);
  context.clip();
  context.lineWidth = 1.8;
  context.lineJoin = "round";
  for (const { name, head, scores } of shown) {
    context.strokeStyle = colour(`curve-${name}`);
    // Heads of one encoding share its colour: ALiBi's flattest beside its steepest, T5's four.
    context.setLineDash(head === null || head === 1 ? [] : name === "alibi" ? [6, 4] : dashes[head - 1]!);
    context.beginPath();
    points.forEach((distance, i) => {
      context.lineTo(x(distance, width), y(scores[i]!));
    });
    context.stroke();
  }
  context.restore();
  context.setLineDash([2, 3]);
  context.strokeStyle = colour("soft");
  line(x(read.value, width), top, x(read.value, width), bottom);
  context.setLineDash([]);
  for (const { name, here } of shown) {
    if (here < low) continue;
    context.fillStyle = colour(`curve-${name}`);
    context.beginPath();
    context.arc(x(read.value, width), y(here), 4, 0, 2 * Math.PI);
    context.fill();
  }
}
