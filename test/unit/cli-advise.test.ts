// longhand advise as a newcomer types it: from the configuration alone, and measured on a text.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { longhand } from "../support/cli.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { plainWords } from "../support/words.ts";

const smol = fileURLToPath(new URL("../../examples/configs/smollm2-135m.json", import.meta.url));

let root: string;
let model: string;
let text: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "longhand-advise-"));
  model = writeTinyModel(join(root, "tiny"));
  text = join(root, "text.txt");
  writeFileSync(text, plainWords(600));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("longhand advise", () => {
  test("from the configuration alone: what to use, why, what else there is, what is not known, what to type", () => {
    const { status, stdout, stderr } = longhand(["advise", smol, "--target", "16384"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const sentences = stdout.replaceAll(/\s+/g, " ");
    expect(sentences).toContain("trained at 8,192 tokens · target 16,384");
    expect(sentences).toContain("Use yarn:2 from the configuration alone");
    expect(sentences).toContain("12 of 32 hands (pairs of channels that turn together) reach angles at 16,384 tokens");
    expect(sentences).toContain("yarn:2 leaves none of them unseen. It is the most widely used way");
    for (const name of ["dynamic:2", "ntk:2", "linear:2", "last tokens"])
      expect(stdout).toContain(`  ${name} `.trimEnd());
    expect(stdout).toContain("What this does not know");
    expect(stdout).toContain(`longhand advise ${smol} --target 16384 --text YOUR.txt`);
    expect(stdout).toContain(`longhand export ${smol} --scaling yarn:2 --length 16384 --to ENGINE`);
    for (const line of stdout.split("\n").filter((one) => !one.includes("longhand "))) {
      expect([...line].length).toBeLessThanOrEqual(80);
      expect(line).toBe(line.trimEnd());
    }
  });

  test("--text measures, advises what was lowest among what short texts may pay, and goes on from its folder", () => {
    const common = ["advise", model, "--target", "192", "--text", text, "--threads", "1", "--out", join(root, "run")];
    const { status, stdout, stderr } = longhand([...common, "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const advice = JSON.parse(stdout);
    expect(advice).toMatchObject({ basis: "measurement", trainedLength: 64, target: 192, tolerance: 0.05 });
    expect(advice.run).toBe(join(root, "run"));
    const names = advice.options.map(({ scaling }: { scaling: string | null }) => scaling);
    expect([...names].sort()).toEqual(["dynamic:3", "linear:3", "none", "ntk:3", "yarn:3", null].sort());
    const [first] = advice.options;
    expect(advice.recommended).toBe(first.scaling ?? "as-is");
    expect(first.shortCost).toBeLessThanOrEqual(0.05);
    for (const { shortCost, why } of advice.options) {
      expect(why.some((one: string) => one.includes("of --tolerance"))).toBe(shortCost > 0.05);
    }
    // The second time everything is read from the folder; nothing may be lost within training now.
    const again = longhand([...common, "--tolerance", "0"]);
    expect({ status: again.status, stderr: again.stderr }).toEqual({ status: 0, stderr: "" });
    const sentences = again.stdout.replaceAll(/\s+/g, " ");
    expect(sentences).toContain("measured on your text");
    expect(sentences).toContain("Short texts: nats a token within 64 tokens");
    expect(sentences).not.toMatch(/-0\.000/);
    expect(again.stdout).toContain(`Run folder: ${join(root, "run")}`);
  }, 120_000);

  test("a text that is too short, and a target without a trained length, are refused in a sentence", () => {
    const short = join(root, "short.txt");
    writeFileSync(short, "the miller");
    const args = ["advise", model, "--target", "192", "--text", short, "--out", join(root, "short")];
    const { status, stdout, stderr } = longhand(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^longhand advise: .*expected .*tokens/);
    expect(longhand(["advise", smol]).stderr).toMatch(/required option '--target <tokens>'/);
  });
});
