// The charts of runs, by uPlot: curves with bands that grow as rows arrive, the trained length drawn, numbers where the
// pointer is. What is drawn is said by the library; here it only gets its place on the screen.

import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./run-charts.css";
import { type Chart, type Curve, chartColours } from "../../src/evaluation/report/chart.ts";
import { shortCount } from "../../src/evaluation/report/numbers.ts";
import { short, whole } from "../shell/numbers.ts";
import { isDark, language, words } from "../shell/preferences.ts";

const dashes: readonly (readonly number[])[] = [
  [],
  [7, 3],
  [3, 3],
  [9, 3, 2, 3],
  [12, 4],
  [5, 2, 2, 2],
  [2, 4],
  [14, 3],
];
/** The part of a difference, in nats, that is drawn evenly; what is greater is drawn logarithmically. */
const evenDifference = 0.02;

/** Each colour has a dash of its own, and another one each time the colours begin anew. */
function dashOf(style: number): readonly number[] {
  return dashes[(style + Math.floor(style / dashes.length)) % dashes.length]!;
}

export function colourOf(style: number): string {
  const colours = isDark.value ? chartColours.dark : chartColours.light;
  return colours[style % colours.length]!;
}

/** Charts below one another, and one list of their curves, which switches them off and on. */
export function RunCharts({ charts }: { readonly charts: readonly Chart[] }): JSX.Element | null {
  const hidden: Signal<ReadonlySet<string>> = useSignal(new Set<string>());
  const text = words.value.runs;
  const curves = new Map<string, number>();
  for (const chart of charts) for (const { name, style } of chart.curves) curves.set(name, style);
  if (charts.length === 0) return null;
  return (
    <>
      <fieldset class="curves run-curves">
        <legend class="hidden">{text.curves}</legend>
        {[...curves].map(([name, style]) => (
          <label class="switch" key={name}>
            <input
              type="checkbox"
              checked={!hidden.value.has(name)}
              onChange={(event) => {
                const next = new Set(hidden.value);
                if (event.currentTarget.checked) next.delete(name);
                else next.add(name);
                hidden.value = next;
              }}
            />
            <Sample style={style} />
            <bdi>{name}</bdi>
          </label>
        ))}
      </fieldset>
      <div class="run-charts">
        {charts.map((chart) => (
          <Plot key={chart.title.en} chart={chart} hidden={hidden.value} />
        ))}
      </div>
    </>
  );
}

/** A piece of a curve as it is drawn. */
export function Sample({ style }: { readonly style: number }): JSX.Element {
  const dash = dashOf(style);
  return (
    <svg class="sample" width="26" height="10" aria-hidden="true">
      <line
        x1="1"
        y1="5"
        x2="25"
        y2="5"
        stroke={colourOf(style)}
        stroke-width="2.4"
        stroke-dasharray={dash.join(" ")}
      />
    </svg>
  );
}

const height = 290;

function Plot({ chart, hidden }: { readonly chart: Chart; readonly hidden: ReadonlySet<string> }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ chart, curves: chart.curves });
  /** Where the pointer is: an index of the columns. */
  const read = useSignal<number | null>(null);
  const shown = chart.curves.filter(({ name }) => !hidden.has(name));
  latest.current = { chart, curves: shown };
  const said = language.value;
  // What a plot is made of and cannot change; its points may.
  const shape = JSON.stringify([
    said,
    isDark.value,
    [chart.from, chart.to, chart.ticks, chart.marks],
    shown.map(({ name, style }) => [name, style]),
  ]);
  useEffect(() => {
    const element = place.current!;
    const { chart: of, curves } = latest.current;
    const made = new uPlot(optionsOf(of, curves, element.clientWidth, read), columnsOf(curves), element);
    plot.current = made;
    const observer = new ResizeObserver(([entry]) => made.setSize({ width: entry!.contentRect.width, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(columnsOf(latest.current.curves)));
  const x = read.value === null ? undefined : placesOf(shown)[read.value];
  const readings = shown.flatMap(({ name, style, points }) => {
    const point = points.find((one) => one.x === x);
    return point === undefined ? [] : [{ name, style, title: point.title }];
  });
  return (
    <figure class="figure run-chart">
      <figcaption>{chart.title[said]}</figcaption>
      <p class="hint run-axis">{chart.yLabel[said]}</p>
      <div ref={place} role="img" aria-label={sentence(chart, shown)} />
      <ul class="run-reading">
        {readings.length === 0 ? (
          <li class="hint">{words.value.runs.pointHint}</li>
        ) : (
          readings.map(({ name, style, title }) => (
            <li key={name}>
              <Sample style={style} /> <bdi>{name}</bdi> {title}
            </li>
          ))
        )}
      </ul>
    </figure>
  );
}

/** The chart in words: where each curve begins and ends. */
function sentence(chart: Chart, curves: readonly Curve[]): string {
  const said = language.value;
  const parts = curves.map(({ name, points }) => {
    const [first, last] = [points[0]!, points.at(-1)!];
    return words.value.runs.curveSentence(name, short(first.y, 4), whole(first.x), short(last.y, 4), whole(last.x));
  });
  return `${chart.title[said]}. ${chart.marks.map(({ label }) => label[said]).join(", ")}. ${parts.join(" ")}`;
}

function placesOf(curves: readonly Curve[]): number[] {
  return [...new Set(curves.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
}

/** uPlot's columns: every x of any curve; then of each curve its values and the ends of its band. */
function columnsOf(curves: readonly Curve[]): uPlot.AlignedData {
  const all = placesOf(curves);
  const at = new Map(all.map((x, i) => [x, i]));
  const column = (points: Curve["points"], value: (point: Curve["points"][number]) => number | null) => {
    const out: (number | null | undefined)[] = new Array(all.length).fill(undefined);
    for (const point of points) out[at.get(point.x)!] = value(point);
    return out;
  };
  return [
    all,
    ...curves.flatMap(({ points }) => [
      column(points, ({ y }) => y),
      column(points, ({ low }) => low),
      column(points, ({ high }) => high),
    ]),
  ];
}

/** A band's end has no line, and no say in the axis: with two windows it may be far off. */
const bandEnd: uPlot.Series = { stroke: "transparent", width: 0, auto: false, spanGaps: true, points: { show: false } };
/** Room for a mark's label above the plot. */
const markRow = 13;

function optionsOf(chart: Chart, curves: readonly Curve[], width: number, read: Signal<number | null>): uPlot.Options {
  const said = language.peek();
  const css = getComputedStyle(document.documentElement);
  const colour = (name: string): string => css.getPropertyValue(`--${name}`).trim();
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: colour("soft"), font, labelFont: font };
  const lines = { stroke: colour("line"), width: 1 };
  const isDifference = chart.yScale === "difference";
  const series = curves.flatMap(({ name, style }): uPlot.Series[] => [
    {
      label: name,
      stroke: colourOf(style),
      width: 2,
      dash: [...dashOf(style)],
      spanGaps: true,
      points: { show: true, size: 5, fill: colourOf(style), stroke: colourOf(style) },
    },
    bandEnd,
    bandEnd,
  ]);
  return {
    width,
    height,
    legend: { show: false },
    padding: [10 + markRow * Math.max(1, chart.marks.length), 14, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => [chart.from, chart.to], ...(chart.xScale === "log" ? { distr: 3, log: 2 } : {}) },
      y: isDifference ? { distr: 4, asinh: evenDifference, range: (_, low, high) => differenceRange(low, high) } : {},
    },
    axes: [
      {
        ...axis,
        label: chart.xLabel[said],
        labelSize: 18,
        size: 34,
        grid: lines,
        ticks: lines,
        splits: () => fitting(chart.ticks, width),
        filter: (_, ticks) => ticks,
        values: (_, ticks) => ticks.map((tick) => shortCount(tick)),
      },
      {
        ...axis,
        size: 46,
        grid: lines,
        ticks: lines,
        values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick, 3).replace("-", "−"))),
        ...(isDifference
          ? {
              splits: (made: uPlot): number[] => differenceTicks(made),
              filter: (_: uPlot, ticks: number[]): number[] => ticks,
            }
          : {}),
      },
    ],
    series: [{}, ...series],
    bands: curves.map(({ style }, i) => ({
      series: [3 * i + 3, 3 * i + 2],
      // Fainter where there are many, as of several runs.
      fill: `${colourOf(style)}${curves.length > 7 ? "12" : "24"}`,
    })),
    hooks: {
      setCursor: [
        ({ cursor }) => {
          read.value = cursor.idx ?? null;
        },
      ],
      draw: [(made) => drawMarks(made, chart, colour)],
    },
  };
}

/** Of ticks in doublings, as many as have room for their labels. */
function fitting(ticks: readonly number[], width: number): number[] {
  const most = Math.max(2, Math.floor(width / 62));
  const every = Math.ceil(ticks.length / most);
  return ticks.filter((_, i) => (ticks.length - 1 - i) % every === 0);
}

/** The first ones are those that are kept where there is no room for all. */
const differenceSteps = [0, 1, -1, 0.1, -0.1, 10, -10, 0.01, -0.01];
function differenceTicks(made: uPlot): number[] {
  const { min = 0, max = 0 } = made.scales.y!;
  const kept: number[] = [];
  for (const step of differenceSteps) {
    const at = made.valToPos(step, "y");
    const hasRoom = kept.every((other) => Math.abs(made.valToPos(other, "y") - at) >= 15);
    if (step >= min! && step <= max! && hasRoom) kept.push(step);
  }
  return kept.sort((a, b) => a - b);
}

/** Around 0, which is always seen. */
function differenceRange(low: number | null, high: number | null): [number, number] {
  const [from, to] = [Math.min(0, low ?? 0), Math.max(0, high ?? 0)];
  return [Math.min(from * 1.3, -evenDifference), Math.max(to * 1.3, evenDifference)];
}

function drawMarks(made: uPlot, chart: Chart, colour: (name: string) => string): void {
  const { ctx, bbox } = made;
  const ratio = window.devicePixelRatio || 1;
  ctx.save();
  if (chart.yScale === "difference") {
    const y = Math.round(made.valToPos(0, "y", true));
    ctx.strokeStyle = colour("soft");
    ctx.lineWidth = 1.3 * ratio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.strokeStyle = colour("mark");
  ctx.fillStyle = colour("mark");
  ctx.lineWidth = 1.5 * ratio;
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "bottom";
  for (const [i, { x, label }] of chart.marks.entries()) {
    if (x < chart.from || x > chart.to) continue;
    // One above the other: two lengths may lie close.
    const top = bbox.top - (3 + markRow * i) * ratio;
    const at = Math.round(made.valToPos(x, "x", true));
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(at, top - 4 * ratio);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const onRight = at > bbox.left + bbox.width / 2;
    ctx.textAlign = onRight ? "right" : "left";
    ctx.fillText(label[language.peek()], at + (onRight ? -5 : 5) * ratio, top);
  }
  ctx.restore();
}
