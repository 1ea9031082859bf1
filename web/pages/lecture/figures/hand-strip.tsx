// Rows of hands on one logarithmic axis of tokens a turn, against the trained and the target length.

import type { JSX } from "preact";
import { powerLabel } from "../../../../src/advice/chart/scale.ts";
import type { Hand } from "../../../../src/encodings/rope/hands.ts";
import { Canvas, type Surface } from "../../../parts/canvas.tsx";
import { words } from "../../../shell/preferences.ts";

export interface HandRow {
  readonly name: string;
  readonly colour: string;
  readonly hands: readonly Hand[];
}

const side = 16;
const head = 36;
const rowHeight = 44;
const foot = 40;
/** Powers of ten that the axis shows. */
const powers = 6;

export function HandStrip(props: {
  readonly label: string;
  readonly trained: number;
  readonly target: number;
  readonly rows: readonly HandRow[];
}): JSX.Element {
  return (
    <div>
      <Canvas
        role="img"
        aria-label={props.label}
        heightFor={() => head + props.rows.length * rowHeight + foot}
        draw={(surface) => draw(surface, props)}
      />
    </div>
  );
}

function draw({ context, width, height, colour }: Surface, props: Parameters<typeof HandStrip>[0]): void {
  const text = words.value.lecture;
  const bottom = height - foot;
  const x = (tokens: number): number => side + (Math.log10(tokens) / powers) * (width - 2 * side);
  context.font = "11.5px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let power = 0; power <= powers; power++) {
    const at = x(10 ** power);
    context.strokeStyle = colour("line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(at, head);
    context.lineTo(at, bottom);
    context.stroke();
    context.fillStyle = colour("soft");
    context.textAlign = "center";
    context.fillText(powerLabel(power), at, bottom + 12);
  }
  context.textAlign = "right";
  context.fillText(text.tokensATurn, width - side, bottom + 30);
  const marks = [
    [props.trained, text.trained, 12, []],
    [props.target, text.target, 26, [5, 4]],
  ] as const;
  for (const [tokens, label, level, dash] of marks) {
    context.strokeStyle = colour("mark");
    context.fillStyle = colour("mark");
    context.lineWidth = 1.5;
    context.setLineDash([...dash]);
    context.beginPath();
    context.moveTo(x(tokens), level);
    context.lineTo(x(tokens), bottom);
    context.stroke();
    context.setLineDash([]);
    context.textAlign = "left";
    context.fillText(label, x(tokens) + 5, level);
  }
  props.rows.forEach(({ colour: name, hands }, index) => {
    const y = head + (index + 0.5) * rowHeight;
    for (const { wavelength, seen } of hands) {
      if (wavelength === null) continue;
      context.beginPath();
      context.arc(x(wavelength), y, width < 520 ? 3.2 : 4.5, 0, 2 * Math.PI);
      context.fillStyle = seen ? colour(name) : colour("paper");
      context.fill();
      if (seen) continue;
      context.strokeStyle = colour("unseen");
      context.lineWidth = 1.8;
      context.stroke();
    }
  });
}
