// What the lab's page asks of run folders. All of it reads, and nothing outside the runs' folder.
//
//   GET /api/runs                     every run
//   GET /api/runs/show?id=A           what a report says of it
//   GET /api/runs/diff?id=A&id=B      in what two differ: codes, values, and a sentence in English
//   GET /api/runs/report?id=A&id=B…&format=html|csv|jsonl|md|svg|parquet   as a file

import { type Context, Hono } from "hono";
import {
  type ReportRun,
  reportFormats,
  reportOf,
  runDifferences,
  runView,
  visibleData,
  visibleText,
} from "../evaluation/index.ts";
import { noStore } from "./api.ts";
import type { RunStore } from "./run-store.ts";

/** Runs that one report or page holds at most. */
const mostRuns = 12;

export function runRoutes(store: RunStore, version: string): Hono {
  const app = new Hono();
  app.use(noStore);
  app.get("/", async (c) => {
    // An id stays as it is: it is what a run is asked for by.
    const runs = (await store.list()).map(({ id, ...facts }) => ({ id, ...visibleData(facts) }));
    return c.json({ folder: visibleText(store.folder), runs });
  });
  app.get("/show", (c) =>
    answer(c, store, 1, 1, ([run]) => {
      const { manifest } = run!;
      return c.json({ id: run!.path, manifest: visibleData(manifest), view: runView(run!) });
    }),
  );
  app.get("/diff", (c) =>
    answer(c, store, 2, 2, ([a, b]) => c.json({ differences: visibleData(runDifferences(a!.manifest, b!.manifest)) })),
  );
  app.get("/report", async (c) => {
    const name = c.req.query("format") ?? "html";
    const format = Object.hasOwn(reportFormats, name) ? reportFormats[name] : undefined;
    if (format === undefined) {
      return c.text(`format: expected ${Object.keys(reportFormats).join(", ")}, got another\n`, 400);
    }
    return await answer(c, store, 1, mostRuns, async (runs) => {
      const file = runs.length === 1 ? runs[0]!.path.replace(/[^\w.-]+/g, "-") : "longhand-report";
      return c.body(
        await format.write(reportOf(runs), { version, language: c.req.query("lang") === "zh-TW" ? "zh-TW" : "en" }),
        200,
        {
          "content-type": format.type.startsWith("text/") ? `${format.type}; charset=utf-8` : format.type,
          // Saved, never shown: a report is no part of the lab's page.
          "content-disposition": `attachment; filename="${file}.${name}"`,
        },
      );
    });
  });
  return app;
}

/** The runs that are asked for; 404 for one that is not there, 422 for one that cannot be read. */
async function answer(
  c: Context,
  store: RunStore,
  least: number,
  greatest: number,
  reply: (runs: readonly ReportRun[]) => Response | Promise<Response>,
): Promise<Response> {
  const ids = c.req.queries("id") ?? [];
  if (ids.length < least || ids.length > greatest) {
    const count = least === greatest ? String(least) : `${least} to ${greatest}`;
    return c.text(`id: expected ${count} of them, got ${ids.length}\n`, 400);
  }
  try {
    const runs: ReportRun[] = [];
    for (const id of ids) {
      const run = await store.read(id);
      if (run === null) return c.text(`${visibleText(id)}: no such run\n`, 404);
      runs.push(run);
    }
    return await reply(runs);
  } catch (error) {
    if (error instanceof RangeError) return c.text(`${visibleText(error.message)}\n`, 422);
    throw error;
  }
}
