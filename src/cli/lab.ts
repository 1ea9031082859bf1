// longhand lab: the web lab, on this machine only.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, InvalidArgumentError } from "commander";
import { startLab } from "../server/lab.ts";
import { runsFolder } from "./evaluation-run.ts";
import { palette } from "./terminal.ts";

interface Options {
  readonly port?: number;
  readonly open: boolean;
  readonly runs: string;
}

const help = `
The page is served on 127.0.0.1 and asks nothing of any other machine. Ctrl-C ends it. Open the address as it is shown: the
token in it lets the page read models of this machine and write run folders, and nobody else.

Examples:
  longhand lab
  longhand lab --port 8080 --no-open
  longhand lab --runs experiments/runs`;

export function addLab(program: Command): void {
  program
    .command("lab")
    .summary("the web lab: clocks, order, distance, compares and runs in a page")
    .description("Serve the lab on 127.0.0.1 and open it in a browser.")
    .option("--port <number>", "first port to try; the next free one is taken (default: 5180)", portNumber)
    .option("--no-open", "do not open a browser")
    .option("--runs <folder>", "where run folders are, and go", runsFolder)
    .addHelpText("after", help)
    .action(async ({ port, open, runs }: Options) => {
      await using lab = await startLab({ page: await builtPage(), runs, ...(port === undefined ? {} : { port }) });
      process.stdout.write(`longhand lab: ${palette.bold(lab.link)}\n`);
      if (process.stderr.isTTY) process.stderr.write(palette.dim("Ctrl-C ends it.\n"));
      if (open) openBrowser(lab.link);
      await stopped();
    });
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65535) throw new InvalidArgumentError("expected an integer in 0 .. 65535");
  return port;
}

/** dist/web of this package: the sources and the built command lie at different depths. */
async function builtPage(): Promise<string> {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
    if ((JSON.parse(text) as { name?: unknown }).name === "longhand") return join(folder, "dist", "web");
    if (dirname(folder) === folder) return join(folder, "dist", "web");
  }
}

/** Opens an address as this system does; a machine without a browser is no error. */
function openBrowser(address: string): void {
  const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["cmd", "/c", "start", ""],
  };
  const [command, ...args] = openers[process.platform] ?? (["xdg-open"] as const);
  const child = spawn(command, [...args, address], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}

/** Until Ctrl-C: the lab then ends as it should. */
function stopped(): Promise<void> {
  return new Promise((done) => {
    process.once("SIGINT", () => done());
    process.once("SIGTERM", () => done());
  });
}
