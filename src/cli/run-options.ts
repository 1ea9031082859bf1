// Options of the commands that measure a model under strategies: which ones, where rows are kept, how weights are used.

import type { Command } from "commander";
import type { Precision } from "../engine/index.ts";
import type { EvaluationStrategy } from "../evaluation/index.ts";
import { addMachineOptions } from "./encoding-options.ts";

export interface RunFlags {
  readonly strategies?: string;
  readonly factor?: string;
  readonly bos: boolean;
  readonly out?: string;
  readonly precision?: Precision | "auto";
  readonly threads?: number;
  readonly json?: true;
}

/** --strategies, --factor and --no-bos; how the two first are read is said by the caller. */
export function addStrategyOptions(command: Command, strategies: string, read: "windows" | "prompts"): Command {
  return command
    .option("--strategies <list>", strategies)
    .option("--factor <list>", "factors for names without one: 2,4,8 or 2..16 (doubling)")
    .option("--no-bos", `no BOS at the head of the ${read}`);
}

/** --shard, of the commands whose rows can be written in parts. */
export function addShardOption(command: Command): Command {
  return command.option("--shard <i/n>", "only this part of the rows, in a folder of its own within --out");
}

/** --precision, --threads and --json, which end every list of options. */
export function addLastOptions(command: Command, json = "print one JSON document"): Command {
  return addMachineOptions(command).option("--json", json);
}

/** What is measured where no strategy is asked for. */
export const asIs: EvaluationStrategy = {
  name: "as-is",
  encoding: { scaling: { kind: "as-is" } },
  reading: { kind: "whole" },
};
