// longhand inspect: what a checkpoint's clock looks like, and what happens to it at a target length.

import type { Command } from "commander";
import { enginesText } from "../advice/chart/engines-text.ts";
import { inspectionSvg } from "../advice/chart/svg.ts";
import { inspectionText } from "../advice/chart/text.ts";
import { compareEngines } from "../advice/engines.ts";
import { inspectModel } from "../advice/inspect.ts";
import { parseStrategy } from "../advice/strategy.ts";
import { openModel } from "../formats/open-model.ts";
import { type Target, targetTokens, tokenCount, tokenCountOrMultiple } from "./options.ts";
import { palette, terminalWidth } from "./terminal.ts";

interface Options {
  readonly length?: number;
  readonly target?: Target;
  readonly trainedLength?: number;
  readonly scaling?: string;
  readonly engines?: boolean;
  readonly json?: boolean;
  readonly svg?: string;
}

const help = `
A MODEL is a folder with config.json (and safetensors), a config.json, a .gguf, or a llama2.c .bin. Only headers are read.

Examples:
  longhand inspect ./Llama-3.1-8B
  longhand inspect config.json --target 4x --scaling yarn:4
  longhand inspect model.gguf --target 128k --json
  longhand inspect config.json --engines
  longhand inspect config.json --scaling '{"rope_type":"linear","factor":8}' --svg hands.svg

--scaling takes a Hugging Face rope_parameters object, or one of
  none  drop  linear:F  ntk:F  ntk-by-parts:F  dynamic:F  yarn:F  llama3:F  gradient:F  dynamic-linear  dynamic-yarn
and replaces the file's scaling, on the layers that its rope_parameters speaks of (by layer type, if nested so).`;

export function addInspect(program: Command): void {
  program
    .command("inspect")
    .summary("show the hands of a model's position encoding")
    .description("Show every layer's position encoding, and what happens to it at a target length.")
    .argument("<model>", "a folder, config.json, .gguf or llama2.c .bin")
    .option("--length <tokens>", "sequence length that dynamic and longrope see (T5: largest distance)", tokenCount)
    .option("--target <tokens>", "length to ask about: 131072, 128k, or 4x the trained length", tokenCountOrMultiple)
    .option("--trained-length <tokens>", "length at which the frequencies were trained", tokenCount)
    .option("--scaling <form>", "a scaling in place of the file's: JSON or a short form (below)")
    .option("--engines", "also show what each engine computes from these settings, and where they differ")
    .option("--json", "print one JSON document")
    .option("--svg <file>", "also draw the chart into an SVG file")
    .addHelpText("after", help)
    .action(async (path: string, options: Options) => {
      // Wrong words are an error before any file is read.
      const strategy = options.scaling === undefined ? undefined : parseStrategy(options.scaling);
      const model = await openModel(path);
      const trainedLength = options.trainedLength ?? model.trainedLength;
      const target = options.target === undefined ? undefined : targetTokens(options.target, trainedLength);
      const inspection = inspectModel(model, {
        ...(options.length === undefined ? {} : { length: options.length }),
        ...(target === undefined ? {} : { target }),
        ...(options.trainedLength === undefined ? {} : { trainedLength: options.trainedLength }),
        ...(strategy === undefined ? {} : { strategy }),
      });
      if (options.svg !== undefined) {
        const { writeFile } = await import("node:fs/promises");
        await writeFile(options.svg, inspectionSvg(inspection));
      }
      const engines = options.engines ? compareEngines(inspection, model) : undefined;
      if (options.json) {
        process.stdout.write(`${JSON.stringify(engines === undefined ? inspection : { ...inspection, engines })}\n`);
        return;
      }
      process.stdout.write(inspectionText(inspection, palette, terminalWidth()));
      if (engines !== undefined) process.stdout.write(`\n${enginesText(engines, palette, terminalWidth())}`);
    });
}
