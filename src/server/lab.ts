// The lab's server: the built page, the built-in models' files, run folders, and compares and trainings that it runs, on
// 127.0.0.1 only. Whatever writes, or reads outside the page, the built-in models and the runs' folder, needs the token.
//
//   /              the page and its files (dist/web)
//   /models/       index.json: the names of the built-in models; NAME/FILE: their files
//   /api/lab       which server this is; whether the request carries the token
//   /api/runs      run-routes.ts
//   /api/compare   compare-routes.ts (with the token)
//   /api/train     training-routes.ts (with the token)

import { randomBytes } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { cpus, totalmem } from "node:os";
import { resolve } from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import packageJson from "../../package.json" with { type: "json" };
import type { RunSession } from "../evaluation/index.ts";
import { type BuiltInModels, packagedModels } from "../formats/built-in-models.ts";
import { opened } from "../formats/model-files.ts";
import { noStore } from "./api.ts";
import { CompareJobs } from "./compare-jobs.ts";
import { compareRoutes } from "./compare-routes.ts";
import { guard, hasToken, tokenGuard } from "./guard.ts";
import { runRoutes } from "./run-routes.ts";
import { RunStore } from "./run-store.ts";
import { pathParts, readStaticFile, typeOf } from "./static-files.ts";
import { TrainingJobs } from "./training-jobs.ts";
import { trainingRoutes } from "./training-routes.ts";

export interface LabOptions {
  /** The folder of the built page. */
  readonly page: string;
  /** The first port to try, 1 .. 65535, or 0 for any; 5180 when absent. */
  readonly port?: number;
  /** The built-in models; those beside the package when absent. */
  readonly models?: BuiltInModels;
  /** The folder of the run folders; longhand-runs when absent. It need not exist. */
  readonly runs?: string;
  /** What the page must know to write; drawn at random when absent. */
  readonly token?: string;
}

export interface Lab extends AsyncDisposable {
  readonly port: number;
  /** Where a browser finds the page. */
  readonly address: string;
  readonly token: string;
  /** The address with the token: after the #, which a browser sends to nobody. */
  readonly link: string;
  /** Ends the server, open connections too. Twice is once. */
  close(): Promise<void>;
}

const host = "127.0.0.1";
const defaultPort = 5180;
/** Ports tried after the first when it is taken. */
const portsTried = 20;

/**
 * Starts the lab.
 *
 * @throws RangeError when the page has not been built, or every port that was tried is taken
 */
export async function startLab(options: LabOptions): Promise<Lab> {
  const first = options.port ?? defaultPort;
  if (!Number.isInteger(first) || first < 0 || first > 65535) {
    throw new RangeError(`--port: expected an integer in 0 .. 65535, got ${first}`);
  }
  if ((await readStaticFile(options.page, "/")) === null) {
    throw new RangeError(`expected the built page in ${options.page}, got none; run npm run build`);
  }
  let port = first;
  const token = options.token ?? randomBytes(18).toString("base64url");
  const models = options.models ?? (await packagedModels());
  const store = new RunStore(resolve(options.runs ?? "longhand-runs"));
  const { version } = packageJson;
  const jobs = new CompareJobs({ store, models, version, session: thisMachine() });
  const trainings = new TrainingJobs();
  const app = labApp({ page: options.page, models, store, jobs, trainings, token, port: () => port });
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  const last = first === 0 ? 0 : Math.min(65535, first + portsTried - 1);
  for (let tried = first; ; tried++) {
    const taken = await listen(server, tried);
    if (taken === null) break;
    if (tried >= last) {
      throw new RangeError(`--port: expected a free port among ${first} .. ${last}, got ${taken.code} on every one`);
    }
  }
  port = (server.address() as AddressInfo).port;
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await Promise.all([jobs.close(), trainings.close()]);
      await new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      });
    })();
    return closing;
  };
  const address = `http://${host}:${port}/`;
  return { port, address, token, link: `${address}#token=${token}`, close, [Symbol.asyncDispose]: close };
}

/** Listens on a port; the error when it is taken. Throws any other. */
function listen(server: Server, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((done, fail) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      server.off("listening", succeeded);
      if (error.code === "EADDRINUSE" || error.code === "EACCES") done(error);
      else fail(error);
    };
    const succeeded = (): void => {
      server.off("error", failed);
      done(null);
    };
    server.once("error", failed);
    server.once("listening", succeeded);
    server.listen(port, host);
  });
}

interface LabParts {
  readonly page: string;
  readonly models: BuiltInModels;
  readonly store: RunStore;
  readonly jobs: CompareJobs;
  readonly trainings: TrainingJobs;
  readonly token: string;
  readonly port: () => number;
}

function labApp({ page, models, store, jobs, trainings, token, port }: LabParts): Hono {
  const app = new Hono();
  app.use(guard(port));
  app.get("/api/lab", noStore, (c) =>
    c.json({ version: packageJson.version, hasToken: hasToken(c.req.raw.headers, token) }),
  );
  app.route("/api/runs", runRoutes(store, packageJson.version));
  app.use("/api/compare/*", tokenGuard(token));
  app.route("/api/compare", compareRoutes(jobs));
  app.use("/api/train/*", tokenGuard(token));
  app.route("/api/train", trainingRoutes(trainings));
  app.all("/api/*", (c) => c.notFound());
  app.get("/models/index.json", noStore, async (c) => c.json(await models.names()));
  app.get("/models/*", async (c) => {
    const [, name, file, ...rest] = pathParts(new URL(c.req.url).pathname) ?? [];
    if (name === undefined || file === undefined || rest.length > 0) return c.notFound();
    const files = await models.open(name);
    // Names that the folder itself lists: no path is made of what was asked for.
    if (files === null || !(await files.list()).includes(file)) return c.notFound();
    const bytes = await opened(files, file, async (source) => source.read(0, source.size));
    return c.body(new Uint8Array(bytes), 200, { "content-type": typeOf(file), "cache-control": "no-cache" });
  });
  app.get("*", async (c) => {
    const path = new URL(c.req.url).pathname;
    const found = await readStaticFile(page, path);
    if (found === null) return c.notFound();
    // Vite names what it puts into assets/ after its contents.
    const cache = path.startsWith("/assets/") ? "max-age=31536000, immutable" : "no-cache";
    return c.body(found.bytes, 200, { "content-type": found.type, "cache-control": cache });
  });
  app.notFound((c) => c.text("longhand lab: no such file\n", 404));
  app.onError((error, c) => {
    console.error(`longhand lab: internal: ${error.stack ?? error.message}`);
    return c.text("longhand lab: internal error; the terminal says more\n", 500);
  });
  return app;
}

function thisMachine(): Pick<RunSession, "versions" | "hardware"> {
  return {
    versions: { longhand: packageJson.version, node: process.version },
    hardware: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: cpus().length,
      memoryBytes: totalmem(),
      platform: `${process.platform} ${process.arch}`,
    },
  };
}
