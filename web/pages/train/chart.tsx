// Curves that grow while rows arrive, by uPlot: one a run, on a linear or a logarithmic axis.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { short, whole } from "../../shell/numbers.ts";
import { isDark } from "../../shell/preferences.ts";

export interface Curve {
  readonly name: string;
  /** Of the style sheet, without dashes. */
  readonly colour: string;
  readonly dash?: readonly number[];
  /** In ascending x. */
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Where something happened to this curve. */
  readonly mark?: number | undefined;
}

interface Properties {
  readonly label: string;
  readonly curves: readonly Curve[];
  readonly axisX: string;
  readonly axisY: string;
  /** Even in doublings. */
  readonly doublings?: boolean;
  /** Every point is drawn as one. */
  readonly dots?: boolean;
  /** A line across all curves. */
  readonly mark?: { readonly x: number; readonly text: string } | undefined;
}

const height = 300;

/** uPlot's columns: every x of any curve, and each curve's y there. */
function columns(curves: readonly Curve[]): uPlot.AlignedData {
  const all = [...new Set(curves.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const at = new Map(all.map((x, i) => [x, i]));
  const rows = curves.map(({ points }) => {
    const row: (number | null)[] = new Array(all.length).fill(null);
    for (const [x, y] of points) row[at.get(x)!] = y;
    return row;
  });
  return [all, ...rows];
}

export function Chart(properties: Properties): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(properties);
  latest.current = properties;
  /** Where the pointer is: an index of the columns. */
  const read = useSignal<number | null>(null);
  const { curves, axisX, axisY, label, doublings = false } = properties;
  // What a plot is made of and cannot change; its data may.
  const shape = JSON.stringify([
    axisX,
    axisY,
    doublings,
    isDark.value,
    curves.map(({ name, colour }) => [name, colour]),
  ]);
  useEffect(() => {
    const element = place.current!;
    const made = new uPlot(optionsOf(latest, element.clientWidth, read), columns(latest.current.curves), element);
    plot.current = made;
    const observer = new ResizeObserver(([entry]) => made.setSize({ width: entry!.contentRect.width, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(columns(latest.current.curves)));
  const [xs] = columns(curves);
  const x = read.value === null ? undefined : xs[read.value];
  const values = curves.flatMap(({ name, points }) => {
    const found = points.find((point) => point[0] === x);
    return found === undefined ? [] : [`${name} ${short(found[1], 4)}`];
  });
  return (
    <figure class="train-chart">
      <div ref={place} role="img" aria-label={label} />
      <p class="hint mono train-reading">{x === undefined ? " " : `${whole(x)} ${axisX}: ${values.join(" · ")}`}</p>
    </figure>
  );
}

function optionsOf(
  latest: { readonly current: Properties },
  width: number,
  read: { value: number | null },
): uPlot.Options {
  const colour = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const { curves, axisX, axisY, doublings = false, dots = false } = latest.current;
  const axis = { stroke: colour("soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
  const lines = { stroke: colour("line"), width: 1 };
  return {
    width,
    height,
    legend: { show: false },
    padding: [16, 14, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, ...(doublings ? { distr: 3, log: 2 } : {}) } },
    axes: [
      {
        ...axis,
        label: axisX,
        labelSize: 22,
        size: 34,
        grid: lines,
        ticks: lines,
        space: 70,
        values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : whole(tick))),
      },
      { ...axis, label: axisY, labelSize: 20, size: 46, grid: lines, ticks: lines },
    ],
    series: [
      {},
      ...curves.map(({ name, colour: of, dash }) => ({
        label: name,
        stroke: colour(of),
        width: dots ? 2 : 1.6,
        ...(dash === undefined ? {} : { dash: [...dash] }),
        spanGaps: true,
        points: { show: dots, size: 7, fill: colour("paper") },
      })),
    ],
    hooks: {
      setCursor: [
        ({ cursor }) => {
          read.value = cursor.idx ?? null;
        },
      ],
      draw: [(made) => drawMarks(made, latest.current, colour)],
    },
  };
}

/** Vertical lines over the curves: one for all, and each curve's own in its colour. */
function drawMarks(made: uPlot, { curves, mark }: Properties, colour: (name: string) => string): void {
  const { ctx, bbox } = made;
  const [low, high] = [made.scales.x!.min ?? 0, made.scales.x!.max ?? 0];
  const ratio = window.devicePixelRatio || 1;
  const line = (x: number, of: string, dash: number[]): number | null => {
    if (x < low || x > high) return null;
    const at = Math.round(made.valToPos(x, "x", true));
    ctx.save();
    ctx.strokeStyle = colour(of);
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash(dash.map((part) => part * ratio));
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
    return at;
  };
  for (const { colour: of, mark: own } of curves) if (own !== undefined) line(own, of, [3, 3]);
  if (mark === undefined) return;
  const at = line(mark.x, "mark", []);
  if (at === null) return;
  const right = at > bbox.left + bbox.width / 2;
  ctx.save();
  ctx.fillStyle = colour("mark");
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = right ? "right" : "left";
  ctx.textBaseline = "bottom";
  ctx.fillText(mark.text, at + (right ? -4 : 4) * ratio, bbox.top - 2 * ratio);
  ctx.restore();
}
