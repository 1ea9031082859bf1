// The charts of a section: a compare's losses by position with bands, its paired differences; a training's losses.

import type { CompareResult, CompareRow } from "../compare/result.ts";
import type { Difference } from "../statistics/paired.ts";
import { type Chart, type Curve, type CurvePoint, doublingTicks, linearTicks } from "./chart.ts";
import { both } from "./markup.ts";
import type { PerplexitySection, ReportSection, TrainSection } from "./model.ts";
import { differenceDigits, fixed, grouped, positionRange, signed } from "./numbers.ts";

export function chartsOf(section: ReportSection): Chart[] {
  if (section.kind === "compare") return compareCharts(section.result);
  if (section.kind === "perplexity") return perplexityCharts(section);
  if (section.kind === "train") return trainCharts(section);
  return [];
}

/** The loss against the length of a window, where there are several. */
function perplexityCharts({ results, run }: PerplexitySection): Chart[] {
  const lengths = [...new Set(results.map(({ length }) => length))].sort((a, b) => a - b);
  if (lengths.length < 2) return [];
  const [from, to] = [lengths[0]!, lengths.at(-1)!];
  const trained = run.manifest.identity.trainedLength;
  const names = [...new Set(results.map(({ strategy }) => strategy))];
  return [
    {
      title: both("Loss by length of a window", "視窗長度與損失"),
      xLabel: both("tokens of a window, log scale", "視窗長度（token，對數尺度）"),
      yLabel: both("loss, nats a token", "損失（nats／token）"),
      xScale: "log",
      yScale: "linear",
      from,
      to,
      ticks: lengths,
      marks:
        typeof trained === "number"
          ? [{ x: trained, label: both(`trained ${grouped(trained)}`, `訓練長度 ${grouped(trained)}`) }]
          : [],
      curves: names.map((name, i) => ({
        name,
        style: i,
        points: results
          .filter(({ strategy }) => strategy === name)
          .sort((a, b) => a.length - b.length)
          .map(({ length, mean: y, low, high }) => ({
            x: length,
            y,
            low,
            high,
            title: `${grouped(length)}: ${fixed(y, 4)}${low === null || high === null ? "" : ` [${fixed(low, 4)}, ${fixed(high, 4)}]`}`,
          })),
      })),
    },
  ];
}

/** The style of every strategy: one for the unscaled model, one for forgetting, in every report. */
export function strategyStyles({ strategies, unscaled, forgetting }: CompareResult): ReadonlyMap<string, number> {
  const reserved = { unscaled: 0, forgetting: 6 };
  let next = 1;
  const styles = new Map<string, number>();
  for (const { strategy } of strategies) {
    if (strategy === unscaled) styles.set(strategy, reserved.unscaled);
    else if (strategy === forgetting) styles.set(strategy, reserved.forgetting);
    else {
      styles.set(strategy, next++);
      if (next === reserved.forgetting) next++;
    }
  }
  return styles;
}

function compareCharts(result: CompareResult): Chart[] {
  const { rows, trainedLength, target, unscaled, forgetting } = result;
  if (rows.length === 0) return [];
  // What lies beyond the trained length gets a fifth of the width at least; short positions stand in the table.
  const least = trainedLength === null || target <= trainedLength ? 0 : trainedLength / (target / trainedLength) ** 4;
  const middles = rows.map(({ position }) => middle(position));
  const from = Math.min(...middles.filter((x) => x >= least));
  const common = {
    xLabel: both("position in tokens, log scale", "位置（token，對數尺度）"),
    xScale: "log" as const,
    from,
    to: target,
    ticks: doublingTicks(from, target, trainedLength ?? target),
    marks:
      trainedLength === null
        ? []
        : [
            {
              x: trainedLength,
              label: both(`trained ${grouped(trainedLength)}`, `訓練長度 ${grouped(trainedLength)}`),
            },
          ],
  };
  const charts: Chart[] = [
    {
      ...common,
      title: both("Loss by position", "各位置的損失"),
      yLabel: both("loss, nats a token", "損失（nats／token）"),
      yScale: "linear",
      curves: curvesOf(result, (row) => lossPoint(row), from),
    },
  ];
  const against = (
    title: Chart["title"],
    yLabel: Chart["yLabel"],
    get: (row: CompareRow) => Difference | null,
  ): void => {
    const curves = curvesOf(
      result,
      (row) => {
        const difference = get(row);
        return difference === null ? null : differencePoint(row, difference);
      },
      from,
    );
    if (curves.length > 0) charts.push({ ...common, title, yLabel, yScale: "difference", curves });
  };
  if (unscaled !== null) {
    against(
      both("Difference from the unscaled model", "與不縮放模型的差"),
      both(`loss − ${unscaled}’s, same tokens (below 0: better)`, `損失 − ${unscaled}（相同 token，低於 0 較佳）`),
      (row) => row.againstUnscaled,
    );
  }
  if (forgetting !== null) {
    against(
      both("Difference from simply forgetting", "與直接遺忘的差"),
      both(`loss − ${forgetting}’s, same tokens (below 0: better)`, `損失 − ${forgetting}（相同 token，低於 0 較佳）`),
      (row) => row.againstForgetting,
    );
  }
  return charts;
}

function curvesOf(
  { rows, strategies, ...result }: CompareResult,
  point: (row: CompareRow) => CurvePoint | null,
  from: number,
): Curve[] {
  const styles = strategyStyles({ rows, strategies, ...result });
  return strategies.flatMap(({ strategy }) => {
    const points = rows.filter((row) => row.strategy === strategy).map(point);
    const known = points.filter((p): p is CurvePoint => p !== null && p.x >= from);
    return known.length === 0 ? [] : [{ name: strategy, style: styles.get(strategy)!, points: known }];
  });
}

/** Of a bin on a log scale. */
function middle([from, to]: readonly [number, number]): number {
  return Math.sqrt(from * (to - 1));
}

function lossPoint({ position, meanNegativeLogLikelihood: y, low, high }: CompareRow): CurvePoint {
  const interval = low === null || high === null ? "" : ` [${fixed(low, 4)}, ${fixed(high, 4)}]`;
  return { x: middle(position), y, low, high, title: `${positionRange(position)}: ${fixed(y, 4)}${interval}` };
}

function differencePoint({ position }: CompareRow, { mean, low, high, verdict }: Difference): CurvePoint {
  const digits = differenceDigits(mean);
  const interval = low === null || high === null ? "" : ` [${signed(low, digits)}, ${signed(high, digits)}]`;
  const tie = verdict === "tie" ? ", tie" : "";
  return {
    x: middle(position),
    y: mean,
    low,
    high,
    title: `${positionRange(position)}: ${signed(mean, digits)}${interval}${tie}`,
  };
}

function trainCharts({ training, validation, positions, length }: TrainSection): Chart[] {
  const charts: Chart[] = [];
  const most = Math.max(0, ...[...training, ...validation].map(({ tokens }) => tokens));
  const stepCurve = (name: string, style: number, points: TrainSection["training"]): Curve[] =>
    points.length === 0
      ? []
      : [
          {
            name,
            style,
            points: thinned(points).map(({ tokens, loss }) => ({
              x: tokens,
              y: loss,
              low: null,
              high: null,
              title: `${grouped(tokens)}: ${fixed(loss, 4)}`,
            })),
          },
        ];
  const curves = [...stepCurve("training", 1, training), ...stepCurve("validation", 2, validation)];
  if (curves.length > 0) {
    charts.push({
      title: both("Loss in training", "訓練中的損失"),
      xLabel: both("tokens seen", "已讀 token 數"),
      yLabel: both("loss, nats a token", "損失（nats／token）"),
      xScale: "linear",
      yScale: "linear",
      from: 0,
      to: most,
      ticks: linearTicks(most),
      marks: [],
      curves,
    });
  }
  if (positions.length > 1) {
    const points = positions.map(({ position: [from, to], loss: y, low, high }) => ({
      x: Math.sqrt(Math.max(1, from) * to),
      y,
      low,
      high,
      title: `${grouped(from)}–${grouped(to - 1)}: ${fixed(y, 4)}${low === null || high === null ? "" : ` [${fixed(low, 4)}, ${fixed(high, 4)}]`}`,
    }));
    const to = Math.max(...positions.map(({ position }) => position[1]));
    charts.push({
      title: both("Loss by position", "各位置的損失"),
      xLabel: both("position in tokens, log scale", "位置（token，對數尺度）"),
      yLabel: both("loss, nats a token", "損失（nats／token）"),
      xScale: "log",
      yScale: "linear",
      from: points[0]!.x,
      to,
      ticks: doublingTicks(points[0]!.x, to, length),
      marks: [{ x: length, label: both(`trained ${grouped(length)}`, `訓練長度 ${grouped(length)}`) }],
      curves: [{ name: "validation", style: 2, points }],
    });
  }
  return charts;
}

const mostPoints = 200;

/** At most 200 of many points, the last among them. */
function thinned<T>(points: readonly T[]): T[] {
  const step = Math.ceil(points.length / mostPoints);
  return points.filter((_, i) => (points.length - 1 - i) % step === 0);
}
