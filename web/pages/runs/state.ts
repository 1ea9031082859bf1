// The Runs page's state: which run folders the server has, which are chosen, and what their reports say.

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Chart } from "../../../src/evaluation/report/chart.ts";
import type { RunView } from "../../../src/evaluation/report/view.ts";
import type { JsonDifference } from "../../../src/evaluation/run-folder/json.ts";
import type { RunManifest } from "../../../src/evaluation/run-folder/manifest.ts";
import { parameter } from "../../shell/address.ts";
import { askJson, findServer, server } from "../../shell/server.ts";

/** As the server lists it. */
export interface ListedRun {
  readonly id: string;
  readonly kind: string | null;
  readonly model: string | null;
  readonly target: number | null;
  readonly about: readonly string[];
  readonly rows: number;
  readonly wantedRows: number | null;
  readonly startedAt: string | null;
  readonly error: string | null;
}

/** Ids of the runs that are shown, with a bar between them. */
const chosenText = parameter("runs", "");
export const filter: Signal<string> = parameter("find", "");
export const kind: Signal<string> = parameter("kind", "");

export type List =
  | { readonly kind: "loading" }
  /** Nothing but files is served here. */
  | { readonly kind: "no-server" }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "ready"; readonly folder: string; readonly runs: readonly ListedRun[] };
export const list: Signal<List> = signal({ kind: "loading" });

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export async function findRuns(): Promise<void> {
  await findServer();
  if (server.value == null) {
    list.value = { kind: "no-server" };
    return;
  }
  try {
    const { folder, runs } = await askJson<{ folder: string; runs: readonly ListedRun[] }>("runs");
    list.value = { kind: "ready", folder, runs };
  } catch (error) {
    list.value = { kind: "error", message: messageOf(error) };
  }
}

export const kinds: ReadonlySignal<readonly string[]> = computed(() =>
  list.value.kind === "ready" ? [...new Set(list.value.runs.flatMap((run) => run.kind ?? []))].sort() : [],
);

/** Runs in whose words every word of the filter is found. */
export const found: ReadonlySignal<readonly ListedRun[]> = computed(() => {
  if (list.value.kind !== "ready") return [];
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  return list.value.runs.filter((run) => {
    if (kind.value !== "" && run.kind !== kind.value) return false;
    const text = [run.id, run.kind, run.model, run.target, ...run.about].join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
});

export const chosen: ReadonlySignal<readonly string[]> = computed(() => chosenText.value.split("|").filter(Boolean));
/** As many as one picture holds. */
export const mostChosen = 8;
export function choose(ids: readonly string[]): void {
  chosenText.value = ids.slice(-mostChosen).join("|");
}

export type Shown =
  | { readonly kind: "loading" }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "ready"; readonly manifest: RunManifest; readonly view: RunView };
export const shown: Signal<ReadonlyMap<string, Shown>> = signal(new Map<string, Shown>());
/** Where two runs differ. */
export const differences: Signal<readonly JsonDifference[] | null> = signal(null);

const query = (id: string): string => `id=${encodeURIComponent(id)}`;

async function load(id: string): Promise<void> {
  const keep = (one: Shown): void => {
    shown.value = new Map(shown.peek()).set(id, one);
  };
  keep({ kind: "loading" });
  try {
    keep({ kind: "ready", ...(await askJson<{ manifest: RunManifest; view: RunView }>(`runs/show?${query(id)}`)) });
  } catch (error) {
    keep({ kind: "error", message: messageOf(error) });
  }
}

/** Keeps what is shown in step with what is chosen; returns what ends it. */
export function keepShowing(): () => void {
  void findRuns();
  // What a run holds may have grown since the page was last seen.
  shown.value = new Map();
  const endShown = effect(() => {
    if (list.value.kind !== "ready") return;
    for (const id of chosen.value) if (!shown.peek().has(id)) void load(id);
  });
  let latest = 0;
  const endDifferences = effect(() => {
    const ids = chosen.value;
    const mine = ++latest;
    differences.value = null;
    if (list.value.kind !== "ready" || ids.length !== 2) return;
    askJson<{ differences: readonly JsonDifference[] }>(`runs/diff?${ids.map(query).join("&")}`).then(
      (answer) => {
        if (mine === latest) differences.value = answer.differences;
      },
      // Each run that cannot be read says so where it is shown.
      () => {},
    );
  });
  return () => {
    latest++;
    endShown();
    endDifferences();
  };
}

/** Where a report of the chosen runs is downloaded. */
export const reportAddress = (format: string, lang: string): string =>
  `./api/runs/report?${chosen.value.map(query).join("&")}&format=${format}&lang=${lang}`;

/** The charts of several runs, those of one title in one: curves are named by run and told apart by their place. */
export const overlaid: ReadonlySignal<readonly Chart[]> = computed(() => {
  const charts = new Map<string, Chart>();
  const styles = new Map<string, number>();
  for (const id of chosen.value) {
    const one = shown.value.get(id);
    if (one?.kind !== "ready") continue;
    for (const chart of one.view.charts) {
      const curves = chart.curves.map(({ name, points }) => {
        const full = `${id} · ${name}`;
        if (!styles.has(full)) styles.set(full, styles.size);
        return { name: full, style: styles.get(full)!, points };
      });
      const key = `${chart.title.en} ${chart.xScale}`;
      const before = charts.get(key);
      charts.set(key, before === undefined ? { ...chart, curves } : joined(before, { ...chart, curves }));
    }
  }
  return [...charts.values()];
});

function joined(a: Chart, b: Chart): Chart {
  const longer = a.to >= b.to ? a : b;
  const marks = [...a.marks, ...b.marks.filter(({ x }) => a.marks.every((mark) => mark.x !== x))];
  return { ...longer, from: Math.min(a.from, b.from), marks, title: a.title, curves: [...a.curves, ...b.curves] };
}
