// Every hand's wavelength on one logarithmic axis, against the lengths that matter.

import type { JSX } from "preact";
import { handAxis, powerLabel } from "../../../src/advice/chart/scale.ts";
import type { Hand } from "../../../src/encodings/rope/hands.ts";
import { Canvas, type Surface } from "../../parts/canvas.tsx";
import { words } from "../../shell/preferences.ts";
import { colourOf } from "./colours.ts";
import { choose, group, inspection, pointed, position, scaledGroup, scaledInspection, shown } from "./state.ts";

const rowHeight = 34;
const head = 40;
const foot = 26;
const side = 14;

interface Row {
  readonly hands: readonly Hand[];
  readonly ofStrategy: boolean;
}

function rows(): Row[] {
  const of = group.value;
  const over = scaledGroup.value;
  return [
    ...(of === null ? [] : [{ hands: of.hands, ofStrategy: false }]),
    ...(over === null ? [] : [{ hands: over.hands, ofStrategy: true }]),
  ];
}

/** From tokens to pixels: wide enough for both inspections. */
function scale(width: number): { readonly x: (tokens: number) => number; readonly from: number; readonly to: number } {
  const axes = [inspection.value, scaledInspection.value].flatMap((one) => (one === null ? [] : [handAxis(one)]));
  const widest = axes.reduce((a, b) => (b.to > a.to ? b : a));
  return { x: (tokens) => side + widest.at(tokens) * (width - 2 * side), from: widest.from, to: widest.to };
}

export function Wavelengths(): JSX.Element {
  const text = words.value.clock;
  const nearest = (event: MouseEvent): number | null => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const { x } = scale(box.width);
    const row = rows()[Math.floor((event.clientY - box.top - head) / rowHeight)] ?? rows()[0];
    let best: number | null = null;
    let gap = 12;
    for (const { pair, wavelength } of row?.hands ?? []) {
      if (wavelength === null) continue;
      const distance = Math.abs(x(wavelength) - (event.clientX - box.left));
      if (distance < gap) [best, gap] = [pair, distance];
    }
    return best;
  };
  return (
    <figure class="figure">
      <figcaption>{text.wavelengths}</figcaption>
      <div>
        <Canvas
          role="img"
          aria-label={text.wavelengths}
          onPointerMove={(event) => {
            if (event.pointerType === "mouse") pointed.value = nearest(event);
          }}
          onPointerLeave={() => {
            pointed.value = null;
          }}
          onClick={(event) => {
            const pair = nearest(event);
            if (pair !== null) choose(pair);
          }}
          heightFor={() => head + rows().length * rowHeight + foot}
          draw={draw}
        />
      </div>
    </figure>
  );
}

function draw({ context, width, height, colour }: Surface): void {
  const seen = inspection.value;
  if (seen === null) return;
  const text = words.value.clock;
  const { x, from, to } = scale(width);
  const bottom = height - foot;
  context.font = "11.5px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (let power = Math.ceil(from); power <= to; power++) {
    const at = Math.round(x(10 ** power)) + 0.5;
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(at, head);
    context.lineTo(at, bottom);
    context.stroke();
    context.fillStyle = colour("soft");
    context.textAlign = power === Math.ceil(from) && at < 30 ? "left" : at > width - 20 ? "right" : "center";
    context.fillText(powerLabel(power), context.textAlign === "left" ? at - 8 : at, bottom + 14);
  }
  const rule = (tokens: number | null, label: string, level: number, dash: number[], name: string): void => {
    if (tokens === null || tokens < 10 ** from) return;
    const at = Math.min(width - 1, x(tokens));
    context.strokeStyle = colour(name);
    context.fillStyle = colour(name);
    context.lineWidth = 1.5;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(at, level + 6);
    context.lineTo(at, bottom);
    context.stroke();
    context.setLineDash([]);
    const room = context.measureText(label).width + 6;
    context.textAlign = at + room > width ? "right" : "left";
    context.fillText(label, at + (context.textAlign === "right" ? -5 : 5), level + 8);
  };
  const sameTarget = seen.targetLength === seen.trainedLength;
  rule(seen.trainedLength, text.axisTrained, 12, [], "mark");
  if (!sameTarget) rule(seen.targetLength, text.axisTarget, 24, [5, 4], "mark");
  rule(Math.max(1, position.value), text.axisPosition, 0, [2, 3], "soft");
  rows().forEach(({ hands, ofStrategy }, index) => {
    const y = head + (index + 0.5) * rowHeight;
    for (const hand of hands) {
      if (hand.wavelength === null) continue;
      const at = x(hand.wavelength);
      const name = ofStrategy ? "strategy" : colourOf(hand);
      context.beginPath();
      context.arc(at, y, hand.pair === shown.value ? 7 : 4, 0, 2 * Math.PI);
      if (hand.seen) {
        context.fillStyle = colour(name);
        context.fill();
      } else {
        context.fillStyle = colour("paper");
        context.fill();
        context.strokeStyle = colour("unseen");
        context.lineWidth = 1.8;
        context.stroke();
      }
    }
  });
}
