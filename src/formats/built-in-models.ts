// Models that ship with the project, by name: folders in Hugging Face's form under `models/`. In Node they lie beside the
// package; in a browser they are fetched from an address, when a caller says which. A name is resolved by whatever
// implements BuiltInModels.

import { type ByteSource, memorySource } from "./bytes/byte-source.ts";
import { FormatError } from "./bytes/format-error.ts";
import type { ModelFiles } from "./model-files.ts";
import { folderFiles } from "./model-folder.ts";
import { nearest } from "./nearest.ts";

/** A place of built-in models. */
export interface BuiltInModels {
  /** What messages call it. */
  readonly place: string;
  names(): Promise<readonly string[]>;
  /** The files of a model; null when it has none of this name. */
  open(name: string): Promise<ModelFiles | null>;
}

/** The models that the project trains, one an encoding. */
export const builtInNames: readonly string[] = [
  "longhand-rope",
  "longhand-nope",
  "longhand-alibi",
  "longhand-t5",
  "longhand-learned",
  "longhand-sinusoidal",
  "longhand-drope",
];

/** What a folder of a built-in model holds. README.md's first paragraph says what the model is. */
const fetchedFiles = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md"];

/**
 * Built-in models under an address: for a page, which serves the package's `models` folder.
 *
 * @param base of the folder that holds the models' folders
 * @param names of the models there; the project's when absent
 * @param get in place of `fetch`
 * @example
 * ```ts
 * import { builtInModelsAt } from "longhand/formats";
 * const models = builtInModelsAt("https://example.org/models/");
 * (await models.names())[0]; // => "longhand-rope"
 * ```
 */
export function builtInModelsAt(
  base: string | URL,
  names: readonly string[] = builtInNames,
  get: typeof fetch = fetch,
): BuiltInModels {
  const root = String(base).replace(/\/?$/, "/");
  return {
    place: root,
    names: async () => names,
    open: async (name) => (names.includes(name) ? fetchedModel(`${root}${name}/`, name, get) : null),
  };
}

function fetchedModel(address: string, name: string, get: typeof fetch): ModelFiles {
  const known = new Map<string, Promise<Uint8Array>>();
  const bytesOf = async (file: string): Promise<Uint8Array> => {
    const answer = await get(address + file);
    if (!answer.ok) throw new FormatError(address + file, `expected a file, got HTTP ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  };
  return {
    path: name,
    folder: name,
    file: null,
    list: async () => fetchedFiles,
    async open(file): Promise<ByteSource> {
      let bytes = known.get(file);
      if (bytes === undefined) {
        bytes = bytesOf(file);
        known.set(file, bytes);
        // A failure is not kept: the next call asks again.
        bytes.catch(() => known.delete(file));
      }
      return memorySource(file, await bytes);
    },
  };
}

/** Built-in models in a folder of this machine (Node): every folder in it that has a config.json. */
export function builtInModelsIn(folder: string): BuiltInModels {
  const names = async (): Promise<string[]> => {
    const { readdir, stat } = await import("node:fs/promises");
    const { join } = await import("node:path");
    const entries = await readdir(folder).catch(() => [] as string[]);
    const isModel = (name: string): Promise<boolean> =>
      stat(join(folder, name, "config.json")).then(
        () => true,
        () => false,
      );
    const found: string[] = [];
    for (const name of entries.sort()) if (await isModel(name)) found.push(name);
    // In the project's own order, then whatever else there is.
    return [
      ...builtInNames.filter((name) => found.includes(name)),
      ...found.filter((name) => !builtInNames.includes(name)),
    ];
  };
  return {
    place: folder,
    names,
    async open(name) {
      if (!(await names()).includes(name)) return null;
      const { join } = await import("node:path");
      return folderFiles(join(folder, name), null, name, name);
    },
  };
}

/** The models beside this package (Node); those of the folder LONGHAND_MODELS where it is set. */
export async function packagedModels(): Promise<BuiltInModels> {
  const override = process.env.LONGHAND_MODELS;
  if (override !== undefined && override !== "") return builtInModelsIn(override);
  const { readFile } = await import("node:fs/promises");
  const { dirname, join } = await import("node:path");
  const { fileURLToPath } = await import("node:url");
  // The sources and the built package are at different depths.
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
    if ((JSON.parse(text) as { name?: unknown }).name === "longhand") return builtInModelsIn(join(folder, "models"));
    if (dirname(folder) === folder) return { place: "no folder", names: async () => [], open: async () => null };
  }
}

/**
 * The files of a built-in model, for whatever takes a model.
 *
 * @param from where it is looked for; beside the package (Node) when absent
 * @throws FormatError for an unknown name, naming the nearest
 */
export async function builtInModel(name: string, from?: BuiltInModels): Promise<ModelFiles> {
  const models = from ?? (await packagedModels());
  const files = await models.open(name);
  if (files !== null) return files;
  const names = await models.names();
  const near = nearest(name, names);
  const known = names.length === 0 ? `none in ${models.place}` : `there are ${names.join(", ")}`;
  throw new FormatError(
    name,
    `expected the name of a built-in model, got another; ${near.length === 0 ? known : `nearest: ${near[0]}`}`,
  );
}
