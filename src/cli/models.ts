// longhand models: the models that ship with the project.

import type { Command } from "commander";
import { groupTitle } from "../advice/chart/scale.ts";
import { parameters, wrap } from "../advice/chart/text.ts";
import { inspectModel } from "../advice/inspect.ts";
import { builtInModel, packagedModels } from "../formats/built-in-models.ts";
import { opened } from "../formats/model-files.ts";
import { openModel } from "../formats/open-model.ts";
import { palette, terminalWidth } from "./terminal.ts";

const help = `
Whatever takes a MODEL takes one of these names, where no file of that name exists:
  longhand inspect longhand-alibi --target 4x
  longhand score longhand-rope --text book.txt --length 4096 --scaling yarn:4
  longhand generate longhand-nope --prompt "Call me"`;

/** One model as --json prints it. */
interface Listed {
  readonly name: string;
  readonly modelType: string;
  readonly encoding: string;
  readonly trainedLength: number | null;
  readonly parameters: number | null;
  /** The first paragraph of its README.md; null without one. */
  readonly about: string | null;
}

export function addModels(program: Command): void {
  program
    .command("models")
    .summary("the models that ship with the project")
    .description("List the built-in models: their encoding, trained length, size, and what they are.")
    .option("--json", "print one JSON document")
    .addHelpText("after", help)
    .action(async ({ json }: { readonly json?: boolean }) => {
      const models = await packagedModels();
      const listed: Listed[] = [];
      for (const name of await models.names()) listed.push(await describe(name));
      if (json) process.stdout.write(`${JSON.stringify({ place: models.place, models: listed })}\n`);
      else process.stdout.write(listed.length === 0 ? `No built-in models in ${models.place}.\n` : text(listed));
    });
}

async function describe(name: string): Promise<Listed> {
  const files = await builtInModel(name);
  const model = await openModel(files);
  const { groups } = inspectModel(model);
  const hasCard = (await files.list()).includes("README.md");
  const card = hasCard
    ? await opened(files, "README.md", async (source) => new TextDecoder().decode(await source.read(0, source.size)))
    : "";
  return {
    name,
    modelType: model.modelType,
    encoding: [...new Set(groups.map(groupTitle))].join(" + "),
    trainedLength: model.trainedLength,
    parameters: model.numParameters,
    about: firstParagraph(card),
  };
}

function firstParagraph(card: string): string | null {
  const paragraph = card
    // What a model card has before its title.
    .replace(/^---\n[\s\S]*?\n---\n/, "")
    .split(/\n\s*\n/)
    .map((part) => part.replace(/\s+/g, " ").trim())
    .find((part) => part !== "" && !part.startsWith("#"));
  return paragraph ?? null;
}

function text(listed: readonly Listed[]): string {
  const { bold, dim } = palette;
  return listed
    .map(({ name, encoding, trainedLength, parameters: count, about }) => {
      const facts = [
        encoding,
        trainedLength === null ? "trained length unknown" : `trained at ${trainedLength.toLocaleString("en")} tokens`,
        ...(count === null ? [] : [`${parameters(count)} parameters`]),
      ];
      const lines = [
        bold(name),
        ...wrap(facts.join(" · "), Math.max(40, terminalWidth()) - 2).map((line) => `  ${line}`),
      ];
      if (about !== null) lines.push(...wrap(about, Math.max(40, terminalWidth()) - 2).map((line) => dim(`  ${line}`)));
      return `${lines.join("\n")}\n`;
    })
    .join("\n");
}
