// What one strategy finds of what was hidden, by length and depth: a canvas of cells, darker for more found, with the counts
// written in them; the same in words for who does not see it.

import type { JSX } from "preact";
import type { NeedleMap } from "../../src/evaluation/report/model.ts";
import { fixed, foundOf, shortCount } from "../../src/evaluation/report/numbers.ts";
import { words } from "../shell/preferences.ts";
import { Canvas, type Surface } from "./canvas.tsx";

const left = 54;
const foot = 22;
const row = 34;

export function HeatMaps({ maps }: { readonly maps: readonly NeedleMap[] }): JSX.Element | null {
  const text = words.value.runs;
  if (maps.length === 0) return null;
  return (
    <section aria-label={text.needles}>
      <h3 class="above">{text.needles}</h3>
      <p class="hint">{text.needlesHint}</p>
      <div class="heat-maps">
        {maps.map((map) => (
          <figure class="figure heat-map" key={map.strategy}>
            <figcaption>
              <bdi>{map.strategy}</bdi>
            </figcaption>
            <div>
              <Canvas
                role="img"
                aria-label={sentence(map)}
                heightFor={() => map.depths.length * row + foot}
                draw={(surface) => draw(surface, map)}
              />
            </div>
          </figure>
        ))}
      </div>
    </section>
  );
}

const depthText = (depth: number): string => `${fixed(100 * depth, Number.isInteger(100 * depth) ? 0 : 1)} %`;

function sentence({ strategy, lengths, depths, cells }: NeedleMap): string {
  const text = words.value.runs;
  const parts = depths.flatMap((depth, i) =>
    lengths.flatMap((length, j) => {
      const cell = cells[i]![j]!;
      return cell === null ? [] : [text.needleSentence(depthText(depth), shortCount(length), foundOf(cell.found))];
    }),
  );
  return `${strategy}: ${parts.join("; ")}`;
}

function draw({ context, width, height, colour }: Surface, { lengths, depths, cells }: NeedleMap): void {
  const cellWidth = (width - left) / lengths.length;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const [i, depth] of depths.entries()) {
    context.textAlign = "right";
    context.fillStyle = colour("soft");
    context.fillText(depthText(depth), left - 7, i * row + row / 2);
    for (let j = 0; j < lengths.length; j++) {
      const cell = cells[i]![j]!;
      const [x, y] = [left + j * cellWidth, i * row];
      context.globalAlpha = 1;
      context.fillStyle = colour("track");
      context.fillRect(x + 1, y + 1, cellWidth - 2, row - 2);
      if (cell === null) continue;
      context.globalAlpha = cell.found.proportion;
      context.fillStyle = colour("accent");
      context.fillRect(x + 1, y + 1, cellWidth - 2, row - 2);
      context.globalAlpha = 1;
      context.textAlign = "center";
      context.fillStyle = colour(cell.found.proportion > 0.5 ? "accent-ink" : "ink");
      context.fillText(foundOf(cell.found), x + cellWidth / 2, y + row / 2);
    }
  }
  context.textAlign = "center";
  context.fillStyle = colour("soft");
  for (const [j, length] of lengths.entries()) {
    context.fillText(shortCount(length), left + (j + 0.5) * cellWidth, height - foot / 2);
  }
}
