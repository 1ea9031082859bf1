// What the lab's page asks of trainings on the server. Everything here needs the token: it takes the machine's time.
//
//   POST   /api/train            a form: question, and of a text its parts train and validation. Answers a JSON object a
//                                line, the job's id first; who hangs up ends the training
//   POST   /api/train/JOB/ask    { ask }: hold, resume, step, drop, stop, model

import { type Context, Hono } from "hono";
import { answerOrRefusal, asked, boundedBody, jsonLines, noStore } from "./api.ts";
import { type TrainingJob, type TrainingJobs, trainingAsk, trainingQuestion } from "./training-jobs.ts";

export function trainingRoutes(jobs: TrainingJobs): Hono {
  const app = new Hono();
  app.use(noStore, boundedBody);
  app.post("/", (c) =>
    answerOrRefusal(c, async () => {
      const job = jobs.start(await questionOf(c));
      return jsonLines(c, named(job), () => void jobs.end(job));
    }),
  );
  app.post("/:job/ask", async (c) => {
    const job = jobs.get(c.req.param("job"));
    if (job === null) return c.text("no such job\n", 404);
    return asked(c, async (body) => {
      const ask = trainingAsk(body);
      // A held training answers at once, one in a step after it: nobody has to wait for that.
      void job.ask(ask);
      return { asked: ask };
    });
  });
  return app;
}

/** What a job says, its name first. */
async function* named(job: TrainingJob): AsyncGenerator<object> {
  yield { kind: "job", job: job.id };
  yield* job.words();
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
