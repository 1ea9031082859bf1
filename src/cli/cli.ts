#!/usr/bin/env node
// The command line: one file a command beside this one.

import { Command, CommanderError } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { addAdvise } from "./advise.ts";
import { addCompare } from "./compare.ts";
import { addDiff } from "./diff.ts";
import { addDoctor } from "./doctor.ts";
import { addDrop } from "./drop.ts";
import { addExport } from "./export.ts";
import { describeFailure, exitCodes } from "./failure.ts";
import { addGenerate } from "./generate.ts";
import { addInspect } from "./inspect.ts";
import { addLab } from "./lab.ts";
import { addModels } from "./models.ts";
import { addNeedle } from "./needle.ts";
import { addPerplexity } from "./perplexity.ts";
import { addReport } from "./report.ts";
import { addMerge, addRuns } from "./runs.ts";
import { addScore } from "./score.ts";
import { addSearch } from "./search.ts";
import { addTrain } from "./train.ts";
import { addVerify } from "./verify.ts";

const program = new Command();
program
  .name("longhand")
  .description("How far can a Transformer really read? Position encodings and context length.")
  .version(packageJson.version)
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "longhand: ")) })
  .showHelpAfterError("(longhand --help shows the commands)");
addInspect(program);
addDoctor(program);
addDiff(program);
addScore(program);
addCompare(program);
addPerplexity(program);
addNeedle(program);
addVerify(program);
addRuns(program);
addMerge(program);
addReport(program);
addAdvise(program);
addSearch(program);
addExport(program);
addGenerate(program);
addTrain(program);
addDrop(program);
addModels(program);
addLab(program);

// `longhand … | head` closes the pipe: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(exitCodes.done);
  throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  } else {
    const { message, exitCode } = describeFailure(program.args[0] ?? "", error);
    process.stderr.write(`${message}\n`);
    process.exitCode = exitCode;
  }
}
