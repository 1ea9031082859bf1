// A chart of lines with bands as an SVG that stands alone: x on a log axis by powers of two.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export interface Point {
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
}

export interface Series {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface ChartOptions {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly Series[];
  /** Values above are cut off; the greatest one when absent. */
  readonly yMax?: number;
  /** Where the x axis has numbers; at every point when absent. */
  readonly xTicks?: readonly number[];
  /** Whether points are marked; true when absent. */
  readonly dots?: boolean;
}

/** Distinct also for who sees no red or green (Okabe and Ito 2008). */
const colours = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#777777", "#b0a000"];
const [width, height] = [760, 420];
const area = { left: 64, right: 620, top: 44, bottom: 360 };

export function lineChart({ title, xLabel, yLabel, series, yMax, xTicks, dots = true }: ChartOptions): string {
  const all = series.flatMap(({ points }) => points);
  if (all.length === 0) throw new RangeError("lineChart: expected points, got none");
  const xs = [...new Set(all.map(({ x }) => x))].sort((a, b) => a - b);
  const [first, last] = [Math.log2(xs[0]!), Math.log2(xs.at(-1)!)];
  const low = Math.min(...all.map((p) => p.low));
  const high = Math.min(yMax ?? Number.POSITIVE_INFINITY, Math.max(...all.map((p) => p.high)));
  const step = niceStep((high - low) / 5);
  const [bottom, top] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  const x = (value: number): number =>
    area.left + ((Math.log2(value) - first) / Math.max(1e-9, last - first)) * (area.right - area.left);
  const y = (value: number): number =>
    area.bottom - ((Math.min(value, top) - bottom) / (top - bottom)) * (area.bottom - area.top);
  const n = (value: number): string => value.toFixed(1);
  const parts: string[] = [];
  for (let value = bottom; value <= top + step / 2; value += step) {
    parts.push(`<line class="grid" x1="${area.left}" x2="${area.right}" y1="${n(y(value))}" y2="${n(y(value))}"/>`);
    parts.push(
      `<text x="${area.left - 8}" y="${n(y(value) + 4)}" text-anchor="end">${value.toFixed(step < 0.1 ? 2 : 1)}</text>`,
    );
  }
  for (const value of xTicks ?? xs) {
    parts.push(
      `<text x="${n(x(value))}" y="${area.bottom + 20}" text-anchor="middle">${value.toLocaleString("en")}</text>`,
    );
  }
  // Labels stand where their lines end, pushed apart where they would overlap. A line that ends early has its name at its
  // end: a leader across the plot would look like its continuation.
  const rightmost = Math.max(...series.flatMap(({ points }) => points.map((p) => p.x)));
  const named = series.map(({ name, points }, i) => ({ name, i, end: points.at(-1) }));
  const ends = named
    .filter(({ end }) => end?.x === rightmost)
    .map((one) => ({ ...one, at: y(one.end!.y) }))
    .sort((a, b) => a.at - b.at);
  for (let i = 1; i < ends.length; i++) ends[i]!.at = Math.max(ends[i]!.at, ends[i - 1]!.at + 15);
  const over = (ends.at(-1)?.at ?? 0) - area.bottom;
  if (over > 0) for (const one of ends) one.at -= over;
  series.forEach(({ points }, i) => {
    if (points.length === 0) return;
    const colour = colours[i % colours.length]!;
    const band = [...points.map((p) => [p.x, p.high]), ...points.toReversed().map((p) => [p.x, p.low])];
    const path = band.map(([px, py]) => `${n(x(px!))},${n(y(py!))}`).join(" ");
    parts.push(`<polygon points="${path}" fill="${colour}" opacity="0.15"/>`);
    const line = points.map((p) => `${n(x(p.x))},${n(y(p.y))}`).join(" ");
    parts.push(`<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const p of dots ? points : [])
      parts.push(`<circle cx="${n(x(p.x))}" cy="${n(y(p.y))}" r="3" fill="${colour}"/>`);
  });
  for (const { name, i, end } of named) {
    if (end === undefined || end.x === rightmost) continue;
    const colour = colours[i % colours.length]!;
    parts.push(
      `<text x="${n(x(end.x) + 8)}" y="${n(y(end.y) - 5)}" fill="${colour}" class="name" style="fill:${colour}">${name}</text>`,
    );
  }
  for (const { name, i, end, at } of ends) {
    const colour = colours[i % colours.length]!;
    const from = x(end!.x);
    parts.push(
      `<line x1="${n(from + 5)}" y1="${n(y(end!.y))}" x2="${area.right + 14}" y2="${n(at)}" stroke="${colour}" stroke-width="0.7"/>`,
    );
    parts.push(
      `<text x="${area.right + 18}" y="${n(at + 4)}" fill="${colour}" class="name" style="fill:${colour}">${name}</text>`,
    );
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<style>
text { font: 12px system-ui, sans-serif; fill: #333 } .name { font-weight: 600; fill: currentColor } .title { font-size: 15px; font-weight: 600 }
.grid { stroke: #8884; stroke-width: 1 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } }
</style>
<rect width="100%" height="100%" fill="none"/>
<text class="title" x="${area.left}" y="24">${title}</text>
${parts.join("\n")}
<text x="${(area.left + area.right) / 2}" y="${height - 14}" text-anchor="middle">${xLabel}</text>
<text transform="translate(16 ${(area.top + area.bottom) / 2}) rotate(-90)" text-anchor="middle">${yLabel}</text>
</svg>
`;
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? 10 * power;
}

export function writeFigure(path: string, svg: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, svg);
}
