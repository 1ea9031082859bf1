// What the lab's page asks of trainings on the server. Everything here needs the token: it takes the machine's time.
//
//   POST   /api/train            a form: question, and of a text its parts train and validation. Answers a JSON object a
//                                line, the job's id first; who hangs up ends the training
//   POST   /api/train/JOB/ask    { ask }: hold, resume, step, drop, stop, model

import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { stream } from "hono/streaming";
import { type TrainingJob, type TrainingJobs, trainingAsk, trainingQuestion } from "./training-jobs.ts";

/** Of a request: a text, and little else. */
const mostBytes = 128 * 2 ** 20;

export function trainingRoutes(jobs: TrainingJobs): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    c.header("cache-control", "no-store");
    await next();
  });
  app.use(bodyLimit({ maxSize: mostBytes, onError: (c) => c.text("expected a request of at most 128 MB\n", 413) }));
  app.post("/", async (c) => {
    let job: TrainingJob;
    try {
      job = jobs.start(await questionOf(c));
    } catch (error) {
      if (error instanceof RangeError) return c.text(`${error.message}\n`, 422);
      throw error;
    }
    c.header("content-type", "application/jsonl; charset=utf-8");
    return stream(c, async (out) => {
      out.onAbort(() => void jobs.end(job));
      await out.write(`${JSON.stringify({ kind: "job", job: job.id })}\n`);
      for await (const word of job.words()) await out.write(`${JSON.stringify(word)}\n`);
    });
  });
  app.post("/:job/ask", async (c) => {
    const job = jobs.get(c.req.param("job"));
    if (job === null) return c.text("no such job\n", 404);
    try {
      const ask = trainingAsk(await c.req.json().catch(() => undefined));
      // A held training answers at once, one in a step after it: nobody has to wait for that.
      void job.ask(ask);
      return c.json({ asked: ask });
    } catch (error) {
      if (error instanceof RangeError) return c.text(`${error.message}\n`, 422);
      throw error;
    }
  });
  return app;
}

async function questionOf(c: Context): Promise<ReturnType<typeof trainingQuestion>> {
  const form = await c.req.parseBody().catch(() => ({}) as Record<string, string | File>);
  const { question, train, validation, ...rest } = form;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    throw new RangeError(`train: expected a form of question, train and validation, got ${JSON.stringify(unknown)}`);
  }
  if (typeof question !== "string") throw new RangeError("train: expected a form with a question, got none");
  let value: unknown;
  try {
    value = JSON.parse(question);
  } catch {
    throw new RangeError("train: expected a question in JSON, got something else");
  }
  if (train === undefined && validation === undefined) return trainingQuestion(value, null);
  const bytes = async (part: unknown): Promise<Uint8Array> => {
    if (!(part instanceof File)) throw new RangeError("train: expected a text's parts train and validation, got one");
    return new Uint8Array(await part.arrayBuffer());
  };
  return trainingQuestion(value, { train: await bytes(train), validation: await bytes(validation) });
}
