// Runs the built command as a person would. `npm test` builds before it tests.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** The built command. */
export const cli: string = resolve(import.meta.dirname, "../../dist/cli.js");

export interface CliResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function longhand(args: readonly string[], env: Record<string, string> = {}): CliResult {
  if (!existsSync(cli)) throw new Error("test: expected dist/cli.js; run `npm run build` first, or `npm test`");
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "", ...env },
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status, stdout, stderr };
}
