// Curves with bands as SVG: logarithmic or linear positions, losses or differences, the name of each curve at its end.
// Curves differ by colour, dashes and marks, so that they are told apart in print and without colour.

import { type Both, inLanguages, type Language, type Markup, markup, trusted } from "./markup.ts";
import { fixed, shortCount } from "./numbers.ts";

export interface CurvePoint {
  readonly x: number;
  readonly y: number;
  readonly low: number | null;
  readonly high: number | null;
  /** Exact numbers, shown where a pointer rests. */
  readonly title: string;
}

export interface Curve {
  readonly name: string;
  /** Which colour, dash and mark. */
  readonly style: number;
  readonly points: readonly CurvePoint[];
}

export interface Chart {
  readonly title: Both<string>;
  readonly xLabel: Both<string>;
  readonly yLabel: Both<string>;
  readonly xScale: "log" | "linear";
  /** `difference`: symmetric about 0, linear near it and logarithmic away from it, so that small costs and great losses
   *  both show. */
  readonly yScale: "linear" | "difference";
  /** Ends of the x axis. */
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
  readonly marks: readonly { readonly x: number; readonly label: Both<string> }[];
  readonly curves: readonly Curve[];
}

export const chartSize: { readonly width: number; readonly height: number } = { width: 480, height: 330 };

const left = 50;
const right = 108;
const top = 42;
const bottom = 46;
const labelGap = 13.5;

export const curveStyles = 8;
const dashes = ["", "7 3", "2.5 2.5", "9 3 2 3", "12 4", "5 2 1.5 2 1.5 2", "1.5 3", "14 3 3 3 3 3"];

/** The difference at which the axis turns from linear to logarithmic, in nats. */
const differenceUnit = 0.02;

/**
 * An `<svg>` element without style of its own: `chartStyle` goes beside it.
 *
 * @param languages those that its words are in
 * @param labelledBy id of the element that names it, in HTML; a title of its own when absent
 */
export function chartSvg(chart: Chart, languages: readonly Language[], labelledBy?: string): Markup {
  const { width, height } = chartSize;
  const scale = yScale(chart);
  const x = xScale(chart);
  const y = (value: number): number => height - bottom - scale.at(value) * (height - bottom - top);
  const words = (text: Both<string>): Markup => inLanguages(text, languages, "tspan");
  const plot = { left, right: width - right, top, bottom: height - bottom };
  const gridY = scale.ticks.map(
    ({ value, label }) => markup`
<line class="${value === 0 && chart.yScale === "difference" ? "axis" : "grid"}" x1="${plot.left}" x2="${plot.right}" y1="${at(y(value))}" y2="${at(y(value))}"/><text class="tick" x="${plot.left - 6}" y="${at(y(value) + 4)}" text-anchor="end">${label}</text>`,
  );
  const gridX = chart.ticks.map(
    (tick) => markup`
<line class="grid" x1="${at(x(tick))}" x2="${at(x(tick))}" y1="${plot.top}" y2="${plot.bottom}"/><text class="tick" x="${at(x(tick))}" y="${plot.bottom + 16}" text-anchor="middle">${shortCount(tick)}</text>`,
  );
  const marks = chart.marks
    .filter((mark) => mark.x >= chart.from && mark.x <= chart.to)
    .map(({ x: where, label }) => {
      const onRight = x(where) > (plot.left + plot.right) / 2;
      const [dx, anchor] = onRight ? [-4, "end"] : [4, "start"];
      return markup`
<line class="mark" x1="${at(x(where))}" x2="${at(x(where))}" y1="${plot.top - 8}" y2="${plot.bottom}"/><text class="mark-label" x="${at(x(where) + dx)}" y="${plot.top - 4}" text-anchor="${anchor}">${words(label)}</text>`;
    });
  const bands = chart.curves.map((curve) => band(curve, x, y, plot));
  const lines = chart.curves.map((curve) => line(curve, x, y, plot));
  const heading = labelledBy === undefined ? markup`<title>${chart.title[languages[0]!]}</title>` : null;
  return markup`<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"${labelledBy === undefined ? null : markup` aria-labelledby="${labelledBy}"`}>${heading}
<text class="axis-label" x="4" y="13">${words(chart.yLabel)}</text>${gridY}${gridX}
<line class="axis" x1="${plot.left}" x2="${plot.right}" y1="${plot.bottom}" y2="${plot.bottom}"/>
<text class="axis-label" x="${(plot.left + plot.right) / 2}" y="${height - 10}" text-anchor="middle">${words(chart.xLabel)}</text>${marks}${bands}${lines}${endLabels(chart.curves, x, y, plot)}
</svg>`;
}

interface Plot {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

type Map1 = (value: number) => number;

function band({ points, style }: Curve, x: Map1, y: Map1, plot: Plot): Markup | null {
  const known = points.filter(({ low, high }) => low !== null && high !== null);
  if (known.length < 2) return null;
  const inside = (value: number): string => at(Math.min(plot.bottom, Math.max(plot.top, y(value))));
  const upper = known.map((p) => `${at(x(p.x))},${inside(p.high!)}`);
  const lower = known.map((p) => `${at(x(p.x))},${inside(p.low!)}`).reverse();
  return markup`
<polygon class="band c${style % curveStyles}" points="${[...upper, ...lower].join(" ")}"/>`;
}

function line({ points, style, name }: Curve, x: Map1, y: Map1, plot: Plot): Markup {
  const way = points.map((p) => `${at(x(p.x))},${at(y(p.y))}`).join(" ");
  const hits = points.map(({ x: px, y: py, low, high, title }) => {
    const [cx, cy] = [x(px), y(py)];
    const whisker =
      low === null || high === null
        ? null
        : markup`<line class="whisker" x1="${at(cx)}" x2="${at(cx)}" y1="${at(clamp(y(high), plot))}" y2="${at(clamp(y(low), plot))}"/>`;
    return markup`
<g class="point"><title>${`${name} · ${title}`}</title>${whisker}${symbol(style, cx, cy)}<circle class="hit" cx="${at(cx)}" cy="${at(cy)}" r="8"/></g>`;
  });
  return markup`
<g class="curve c${style % curveStyles}"><polyline points="${way}"${dash(style)}/>${hits}
</g>`;
}

function clamp(y: number, { top: least, bottom: most }: Plot): number {
  return Math.min(most, Math.max(least, y));
}

function dash(style: number): Markup | null {
  // A second round of colours has other dashes.
  const pattern = dashes[(style + 3 * Math.floor(style / curveStyles)) % dashes.length]!;
  return pattern === "" ? null : markup` stroke-dasharray="${pattern}"`;
}

/** A mark for each style: dot, square, triangle, diamond, and hollow ones. */
function symbol(style: number, cx: number, cy: number): Markup {
  const hollow = style % curveStyles >= 4 ? " hollow" : "";
  const shape = style % 4;
  if (shape === 0) return markup`<circle class="symbol${hollow}" cx="${at(cx)}" cy="${at(cy)}" r="2.8"/>`;
  const paths = ["", "M-2.6-2.6h5.2v5.2h-5.2z", "M0-3.4L3.2 2.4H-3.2z", "M0-3.6L3.6 0L0 3.6L-3.6 0z"];
  return markup`<path class="symbol${hollow}" transform="translate(${at(cx)} ${at(cy)})" d="${trusted(paths[shape]!)}"/>`;
}

/** A piece of the line with its mark, for a legend. */
export function curveSample(style: number): Markup {
  return markup`<svg class="sample" viewBox="0 0 36 12" aria-hidden="true"><g class="curve c${style % curveStyles}"><polyline points="1,6 35,6"${dash(style)}/>${symbol(style, 18, 6)}</g></svg>`;
}

/** Names at the lines' ends, moved apart where they would overlap, with a line to where they belong. */
function endLabels(curves: readonly Curve[], x: Map1, y: Map1, plot: Plot): Markup[] {
  const ends = curves
    .flatMap(({ name, style, points }) => {
      const last = points.at(-1);
      return last === undefined ? [] : [{ name, style, x: x(last.x), wanted: clamp(y(last.y), plot) }];
    })
    .sort((a, b) => a.wanted - b.wanted);
  const room = Math.floor((plot.bottom - plot.top) / labelGap) + 1;
  const places = spread(
    ends.slice(0, room).map(({ wanted }) => wanted),
    labelGap,
    plot.top,
    plot.bottom,
  );
  return places.map((place, i) => {
    const end = ends[i]!;
    return markup`
<path class="leader c${end.style % curveStyles}" d="M${at(end.x + 4)} ${at(end.wanted)}L${at(plot.right + 8)} ${at(place)}"/><text class="name c${end.style % curveStyles}" x="${at(plot.right + 11)}" y="${at(place + 4)}">${shortened(end.name)}</text>`;
  });
}

/** Ascending places at least `gap` apart, between the ends, near those that are wanted. */
export function spread(wanted: readonly number[], gap: number, least: number, most: number): number[] {
  const out = [...wanted];
  for (let i = 0; i < out.length; i++) out[i] = Math.max(out[i]!, i === 0 ? least : out[i - 1]! + gap);
  for (let i = out.length - 1; i >= 0; i--) {
    out[i] = Math.min(out[i]!, i === out.length - 1 ? most : out[i + 1]! - gap);
  }
  return out;
}

/** A name that fits beside the chart; whole ones stand in the legend. */
export function shortened(name: string, most = 15): string {
  const letters = [...name];
  return letters.length <= most ? name : `${letters.slice(0, most - 1).join("")}…`;
}

function xScale({ xScale: kind, from, to }: Chart): Map1 {
  const width = chartSize.width - right - left;
  const share =
    kind === "log"
      ? (value: number) => Math.log(value / from) / Math.log(to / from)
      : (value: number) => (value - from) / (to - from);
  return (value) => left + width * (to > from ? share(value) : 0.5);
}

interface Scale {
  /** 0 at the bottom, 1 at the top. */
  at(value: number): number;
  readonly ticks: readonly { readonly value: number; readonly label: string }[];
}

function yScale({ yScale: kind, curves }: Chart): Scale {
  const points = curves.flatMap((curve) => curve.points);
  const means = points.map((p) => p.y);
  const lowest = Math.min(...means);
  const highest = Math.max(...means);
  if (kind === "difference") return differenceScale(points);
  // A band that is far wider than all curves lie apart (few windows) is cut, not the curves made flat.
  const reach = Math.max(0.15 * (highest - lowest), 0.02 * Math.abs(highest), 1e-3);
  const low = Math.max(lowest - reach, Math.min(lowest, ...points.map((p) => p.low ?? p.y)));
  const high = Math.min(highest + reach, Math.max(highest, ...points.map((p) => p.high ?? p.y)));
  const step = niceStep((high - low) / 5);
  const from = Math.floor(low / step) * step;
  const to = Math.ceil(high / step) * step;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const count = Math.round((to - from) / step);
  const ticks = Array.from({ length: count + 1 }, (_, i) => ({
    value: from + i * step,
    label: fixed(from + i * step, digits),
  }));
  return { at: (value) => (value - from) / (to - from), ticks };
}

function differenceScale(points: readonly CurvePoint[]): Scale {
  const bend = (value: number): number => Math.asinh(value / differenceUnit);
  const means = points.map((p) => p.y);
  const [lowMean, highMean] = [Math.min(0, ...means), Math.max(0, ...means)];
  // Bands may reach as far again as the curves do.
  const reach = Math.max(differenceUnit / 2, 2 * Math.max(-lowMean, highMean));
  const low = Math.max(-reach, Math.min(-0.005, ...points.map((p) => p.low ?? p.y)));
  const high = Math.min(reach, Math.max(0.005, ...points.map((p) => p.high ?? p.y)));
  const [from, to] = [bend(1.08 * low), bend(1.08 * high)];
  const steps = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];
  const values = [...steps.map((s) => -s).reverse(), 0, ...steps].filter((v) => bend(v) >= from && bend(v) <= to);
  // Labels need a line's height each: first ±0.01 goes, then every other step.
  const line = labelGap / (chartSize.height - bottom - top);
  const room = (a: number, b: number): boolean => (bend(b) - bend(a)) / (to - from) >= line;
  const shown = values.filter((value) => {
    const size = Math.abs(value);
    if (size === 0.01) return room(0, 0.01) && room(0.01, 0.03);
    return size === 0 || room(0.03, 0.1) || /^[0.]*1/.test(String(size));
  });
  return {
    at: (value) => (bend(value) - from) / (to - from),
    ticks: shown.map((value) => ({ value, label: value > 0 ? `+${value}` : String(value).replace("-", "−") })),
  };
}

function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5, 10].find((n) => n * power >= least * (1 - 1e-9)) ?? 10);
}

/** Powers of 2 from the anchor, thinned so that at most seven stand in the range. */
export function doublingTicks(from: number, to: number, anchor: number): number[] {
  const octaves = Math.log2(to / from);
  const step = Math.max(1, Math.ceil(octaves / 7));
  const out: number[] = [];
  for (let k = -step * Math.floor(Math.log2(anchor / from) / step + 1e-9); anchor * 2 ** k <= to * 1.001; k += step) {
    const tick = anchor * 2 ** k;
    if (Number.isInteger(tick) && tick >= from) out.push(tick);
  }
  return out;
}

/** About five round numbers from 0. */
export function linearTicks(to: number): number[] {
  const step = niceStep(Math.max(to, 1) / 5);
  return Array.from({ length: Math.floor(to / step + 1e-9) + 1 }, (_, i) => Math.round(i * step));
}

function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Colours of curves, of at least 4.5 to 1 against the paper, in light and in dark; `where` scopes them. */
export const chartColours: { readonly light: readonly string[]; readonly dark: readonly string[] } = {
  light: ["#4a5561", "#0b5cad", "#b0400e", "#0d7348", "#7a3fae", "#a8245f", "#7a5a00", "#006a75"],
  dark: ["#b3bec9", "#6fb6ff", "#ff9f70", "#55d19d", "#c9a2ff", "#ff90c2", "#e2bd55", "#62d2de"],
};

export const chartStyle: string = `
.chart{display:block;width:100%;height:auto;font-family:system-ui,"Noto Sans TC","PingFang TC","Microsoft JhengHei",sans-serif;font-size:13px}
.chart text{fill:var(--ink)}.chart .tick,.chart .axis-label{fill:var(--soft);font-size:12px}
.chart .grid{stroke:var(--line);stroke-width:1}.chart .axis{stroke:var(--soft);stroke-width:1.2}
.chart .mark{stroke:var(--mark);stroke-width:1.4;stroke-dasharray:3 3}.chart .mark-label{fill:var(--mark);font-size:12px}
${chartColours.light.map((_, i) => `.c${i}{--c:var(--c${i})}`).join("")}
.chart .band{fill:var(--c);fill-opacity:.13}.curve polyline{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round}
.curve .symbol{fill:var(--c);stroke:var(--c);stroke-width:1.2}.curve .symbol.hollow{fill:var(--paper)}
.chart .hit{fill:transparent}.chart .whisker{stroke:var(--c);stroke-width:1.4;visibility:hidden}
.chart .point:hover .whisker{visibility:visible}.chart .point:hover .symbol{stroke-width:4}
.chart .name{fill:var(--c);font-size:12.5px}.chart .leader{fill:none;stroke:var(--c);stroke-width:.8;stroke-opacity:.6}`;

/** The variables that `chartStyle` uses. */
export function chartVariables(theme: "light" | "dark"): string {
  const ink =
    theme === "light"
      ? "--paper:#fff;--ink:#1b1f24;--soft:#59636e;--line:#dfe3e8;--mark:#5a45c8"
      : "--paper:#14181d;--ink:#e8ebef;--soft:#a3aeb9;--line:#333b45;--mark:#afa6ff";
  return `${ink};${chartColours[theme].map((colour, i) => `--c${i}:${colour}`).join(";")}`;
}

/** Several charts below one another, as an SVG document that stands alone. */
export function chartsDocument(
  charts: readonly { readonly heading: string; readonly chart: Chart }[],
  language: Language,
): string {
  const { width, height } = chartSize;
  const step = height + 30;
  const total = charts.length * step + 10;
  const body = charts.map(
    ({ heading, chart }, i) => markup`
<g transform="translate(10 ${i * step + 8})"><text class="heading" x="4" y="16">${heading}</text><svg x="0" y="26" width="${width}" height="${height}">${trusted(chartSvg(chart, [language]).markup)}</svg></g>`,
  );
  const style = `svg{${chartVariables("light")};font-family:system-ui,sans-serif}@media (prefers-color-scheme:dark){svg{${chartVariables("dark")}}}.heading{fill:var(--ink);font-weight:600;font-size:14px}.paper{fill:var(--paper)}${chartStyle}`;
  return `${
    markup`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width + 20} ${total}" width="${width + 20}" height="${total}" role="img" aria-label="${charts.map(({ heading }) => heading).join("; ")}">
<style>${trusted(style)}</style>
<rect class="paper" width="${width + 20}" height="${total}"/>${body}
</svg>`.markup
  }
`;
}
