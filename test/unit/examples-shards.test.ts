// The examples for schedulers: what each task would run, run with the scheduler's variables set, is the parts of one whole.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseShard } from "../../src/evaluation/index.ts";
import { longhand } from "../support/cli.ts";

const examples = new URL("../../examples/", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "longhand-examples-"));
const shim = join(folder, "longhand");
writeFileSync(shim, '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n');
chmodSync(shim, 0o755);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The words that longhand is called with. */
function wordsOf(command: string, args: readonly string[], env: Record<string, string>): string[] {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    env: { PATH: `${folder}:${process.env.PATH}`, ...env },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.trimEnd().split("\n");
}

const after = (words: readonly string[], flag: string): string => words[words.indexOf(flag) + 1]!;

let help: string | undefined;
/** Every option of a call is one that the command has. */
function expectKnown(words: readonly string[]): void {
  help ??= longhand(["compare", "--help"]).stdout;
  for (const flag of words.filter((word) => word.startsWith("--"))) expect(help).toContain(flag);
}

describe.runIf(existsSync("/bin/bash"))("the Slurm array", () => {
  const script = join(examples, "02-slurm-array.sh");

  test("runs the parts of one compare, and hands options on", () => {
    const shards = [1, 2, 3].map((task) => {
      const env = { SLURM_ARRAY_TASK_ID: String(task), SLURM_ARRAY_TASK_COUNT: "3", SLURM_CPUS_PER_TASK: "4" };
      const words = wordsOf("/bin/bash", [script, "a model.gguf", "b.txt", "runs/c", "--windows", "32"], env);
      expect(words.slice(0, 4)).toEqual(["compare", "a model.gguf", "--text", "b.txt"]);
      expect(after(words, "--out")).toBe("runs/c");
      expect(after(words, "--threads")).toBe("4");
      expect(after(words, "--windows")).toBe("32");
      expectKnown(words);
      return parseShard(after(words, "--shard"));
    });
    expect(shards).toEqual([1, 2, 3].map((index) => ({ index, count: 3 })));
  });

  test("asks for tasks that begin at 1, as parts do", () => {
    expect(readFileSync(script, "utf8")).toMatch(/^#SBATCH --array=1-8$/m);
  });
});

test("the Kubernetes job's pods run the parts of one compare", () => {
  // biome-ignore lint/suspicious/noExplicitAny: a manifest.
  const job = readYaml(readFileSync(join(examples, "03-kubernetes-job.yaml"), "utf8")) as any;
  expect(job).toMatchObject({ apiVersion: "batch/v1", kind: "Job" });
  const { completionMode, completions, parallelism, template } = job.spec;
  expect({ completionMode, parallelism }).toEqual({ completionMode: "Indexed", parallelism: completions });
  // What backoffLimitPerIndex needs.
  expect(template.spec.restartPolicy).toBe("Never");
  const [container] = template.spec.containers;
  expect(container.command).toBe("[/bin/sh, -c]");
  const shards = Array.from({ length: Number(completions) }, (_, i) => {
    const words = wordsOf("/bin/sh", ["-c", container.args[0]], { JOB_COMPLETION_INDEX: String(i) });
    expect(words[0]).toBe("compare");
    expectKnown(words);
    return parseShard(after(words, "--shard"));
  });
  expect(shards).toEqual(shards.map((_, i) => ({ index: i + 1, count: 8 })));
  expect(container.env[0].name).toBe("LONGHAND_API_KEY");
  expect(container.volumeMounts[0].name).toBe(template.spec.volumes[0].name);
});

type Yaml = string | Yaml[] | { [key: string]: Yaml };

/** As much of YAML as the example has: nested maps and lists by indentation, plain values, folded text. Throws for more. */
function readYaml(text: string): Yaml {
  const lines = text
    .split("\n")
    .filter((line) => !/^\s*(#|$)/.test(line))
    .map((line) => ({ indent: /^ */.exec(line)![0].length, rest: line.trimStart() }));
  let at = 0;
  const block = (indent: number): Yaml => (lines[at]!.rest.startsWith("- ") ? list(indent) : map(indent));
  const list = (indent: number): Yaml[] => {
    const out: Yaml[] = [];
    while (at < lines.length && lines[at]!.indent === indent && lines[at]!.rest.startsWith("- ")) {
      const rest = lines[at]!.rest.slice(2);
      if (/^[\w-]+:( |$)/.test(rest)) {
        lines[at] = { indent: indent + 2, rest };
        out.push(map(indent + 2));
      } else {
        at++;
        out.push(value(rest, indent));
      }
    }
    return out;
  };
  const map = (indent: number): Yaml => {
    const out: Record<string, Yaml> = {};
    while (at < lines.length && lines[at]!.indent === indent && !lines[at]!.rest.startsWith("- ")) {
      const [, key, rest] = /^([\w-]+):(?: (.*))?$/.exec(lines[at]!.rest) ?? [];
      if (key === undefined) throw new Error(`test: expected a key, got ${lines[at]!.rest}`);
      at++;
      out[key] = rest === undefined ? block(lines[at]!.indent) : value(rest, indent);
    }
    return out;
  };
  const value = (rest: string, indent: number): Yaml => {
    if (rest !== ">-") return rest;
    const folded: string[] = [];
    while (at < lines.length && lines[at]!.indent > indent) folded.push(lines[at++]!.rest);
    return folded.join(" ");
  };
  const out = block(0);
  if (at < lines.length) throw new Error(`test: expected the end, got ${lines[at]!.rest}`);
  return out;
}
