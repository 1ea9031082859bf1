// The lab's server: the built page and the built-in models' files, on 127.0.0.1 only. It reads; it never writes.
//
//   /              the page and its files (dist/web)
//   /models/       index.json: the names of the built-in models; NAME/FILE: their files

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { type BuiltInModels, packagedModels } from "../formats/built-in-models.ts";
import { opened } from "../formats/model-files.ts";
import { guard } from "./guard.ts";
import { pathParts, readStaticFile, typeOf } from "./static-files.ts";

export interface LabOptions {
  /** The folder of the built page. */
  readonly page: string;
  /** The first port to try, 1 .. 65535, or 0 for any; 5180 when absent. */
  readonly port?: number;
  /** The built-in models; those beside the package when absent. */
  readonly models?: BuiltInModels;
}

export interface Lab extends AsyncDisposable {
  readonly port: number;
  /** Where a browser finds the page. */
  readonly address: string;
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
  const app = labApp(options.page, options.models ?? (await packagedModels()), () => port);
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
    closing ??= new Promise((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
    return closing;
  };
  return { port, address: `http://${host}:${port}/`, close, [Symbol.asyncDispose]: close };
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

function labApp(page: string, models: BuiltInModels, port: () => number): Hono {
  const app = new Hono();
  app.use(guard(port));
  app.get("/models/index.json", async (c) => {
    c.header("cache-control", "no-store");
    return c.json(await models.names());
  });
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
