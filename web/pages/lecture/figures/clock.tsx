// The sinusoidal clock: all 64 hands at one position, and the numbers of one of them.

import type { JSX } from "preact";
import { sinusoidal } from "../../../../src/encodings/sinusoidal.ts";
import { Canvas, type Surface } from "../../../parts/canvas.tsx";
import { LogSlider, Slider } from "../../../parts/controls.tsx";
import { exact, whole } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { drawHand, drawHub } from "../../clock/dial.ts";
import { Numbers } from "../numbers.tsx";
import { hand, position } from "../state.ts";

export const clock: ReturnType<typeof sinusoidal> = sinusoidal({ hiddenSize: 128 });
const numHands = clock.hands.length;

const columnsFor = (width: number): number => (width < 420 ? 8 : 16);

export function ClockFigure(): JSX.Element {
  const text = words.value.lecture;
  const own = text.clock;
  const row = clock.rows([position.value]);
  const chosen = hand.value;
  const rows = [
    [own.wavelength, exact(clock.hands[chosen]!.wavelength), "wavelength"],
    [own.sine, exact(row[2 * chosen]!), "sin"],
    [own.cosine, exact(row[2 * chosen + 1]!), "cos"],
  ] as const;
  return (
    <>
      <LogSlider label={text.position} value={position.value} max={position.max} onChange={position.set} />
      <Slider label={text.hand} value={chosen} min={hand.min} max={hand.max} onChange={hand.set} />
      <div>
        <Canvas
          role="img"
          aria-label={`${own.caption}: ${whole(position.value)}. ${text.hand} ${chosen}: ${rows.map(([name, value]) => `${name} ${value}`).join(", ")}`}
          heightFor={(width) => (numHands / columnsFor(width)) * (width / columnsFor(width))}
          draw={drawAll}
        />
      </div>
      <Numbers rows={rows} />
    </>
  );
}

function drawAll(surface: Surface): void {
  const { context, width, colour } = surface;
  const columns = columnsFor(width);
  const size = width / columns;
  const row = clock.rows([position.value]);
  for (let i = 0; i < numHands; i++) {
    const dial = {
      x: ((i % columns) + 0.5) * size,
      y: (Math.floor(i / columns) + 0.5) * size,
      radius: size / 2 - 3,
    };
    if (i === hand.value) {
      context.fillStyle = colour("marked");
      context.fillRect(dial.x - size / 2, dial.y - size / 2, size, size);
    }
    context.lineWidth = 1.5;
    context.strokeStyle = colour("track");
    context.beginPath();
    context.arc(dial.x, dial.y, dial.radius, 0, 2 * Math.PI);
    context.stroke();
    const name = i === hand.value ? "mark" : "many";
    const at = { ...dial, radius: dial.radius - 2 };
    drawHand(surface, at, { sin: row[2 * i]!, cos: row[2 * i + 1]! }, { colour: colour(name), width: 2 });
    drawHub(surface, dial, colour(name), 1.8);
  }
}
