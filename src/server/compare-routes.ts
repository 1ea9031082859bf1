// What the lab's page asks of compares on the server. Everything here needs the token: it reads models anywhere on this
// machine and writes run folders.
//
//   POST   /api/compare/model         { model, target }: what the model is, which strategies it may be read under
//   POST   /api/compare/plan          a question: what it costs
//   POST   /api/compare               a question: starts a job
//   POST   /api/compare/resume        { run }: goes on with a run
//   GET    /api/compare/running       the job that runs
//   GET    /api/compare/JOB/events    a JSON object a line, until the job ends
//   DELETE /api/compare/JOB           cancels it; its rows are kept

import { availableParallelism } from "node:os";
import { Hono } from "hono";
import { planCompare, strategyChoices, targetLength } from "../evaluation/index.ts";
import { isRecord } from "../evaluation/run-folder/json.ts";
import { openModel } from "../formats/open-model.ts";
import { asked, boundedBody, jsonLines, noStore } from "./api.ts";
import { askedModel, type CompareJobs, compareAsk } from "./compare-jobs.ts";

export function compareRoutes(jobs: CompareJobs): Hono {
  const app = new Hono();
  app.use(noStore, boundedBody);
  app.post("/model", (c) =>
    asked(c, async (body) => {
      const { model, target } = isRecord(body) ? body : {};
      const description = await openModel(await jobs.source(askedModel(model)));
      const { name, trainedLength, numParameters } = description;
      const length = targetLength(typeof target === "string" ? target : "4x", trainedLength);
      const choices = strategyChoices(description, { trainedLength, target: length });
      return { name, trainedLength, numParameters, target: length, choices };
    }),
  );
  app.post("/plan", (c) =>
    asked(c, async (body) => {
      const { model, ...question } = compareAsk(body);
      return planCompare(await jobs.source(model), question, availableParallelism());
    }),
  );
  app.post("/", (c) => asked(c, async (body) => ({ job: (await jobs.start(compareAsk(body))).id })));
  app.post("/resume", (c) =>
    asked(c, async (body) => {
      const run = isRecord(body) && typeof body.run === "string" ? body.run : "";
      return { job: (await jobs.resume(run)).id };
    }),
  );
  app.get("/running", (c) => c.json({ job: jobs.running?.id ?? null }));
  app.get("/:job/events", (c) => {
    const job = jobs.get(c.req.param("job"));
    if (job === null) return c.text("no such job\n", 404);
    return jsonLines(c, job.events());
  });
  app.delete("/:job", (c) => {
    const job = jobs.get(c.req.param("job"));
    if (job === null) return c.text("no such job\n", 404);
    job.cancel();
    return c.json({ cancelled: true });
  });
  return app;
}
