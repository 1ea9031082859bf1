// The files of one model, wherever they are: a path in Node, a page's File objects, bytes in memory. Whatever opens a
// model asks these for names and for sources, so that every format is read by the same code in Node and in a browser.

import { packagedModels } from "./built-in-models.ts";
import { type ByteSource, blobSource } from "./bytes/byte-source.ts";
import { FormatError, quote } from "./bytes/format-error.ts";
import { folderFiles } from "./model-folder.ts";
import { nearest } from "./nearest.ts";

export interface ModelFiles {
  /** What messages call the model: a path, or the name again. */
  readonly path: string;
  /** What the folder of the files is called: the model's name, where its files have none. */
  readonly folder: string;
  /** The file that was named; null for a folder. */
  readonly file: string | null;
  list(): Promise<readonly string[]>;
  /** Opens a file by its name; who opens it closes it. */
  open(file: string): Promise<ByteSource>;
  /** The path of a file, where it has one. */
  locate?(file: string): string;
}

/** A model: a path, or a built-in model's name (Node), its files from anywhere (File objects of a page, sources of bytes), or ModelFiles. */
export type ModelSource = string | Iterable<ByteSource | File> | ModelFiles;

/**
 * The files of a model that are in memory, or in a browser's hands: `config.json` with safetensors (and the tokenizer's
 * files), all parts of a GGUF, or a llama2.c `.bin` with its tokenizer. They stay open when the model is closed: they are
 * the caller's.
 *
 * @param sources each under the name that it has in the model's folder
 * @param name what to call the model; the GGUF's or the `.bin`'s name, else "model", when absent
 * @throws FormatError for two files of one name, and for files of several models
 * @example
 * ```ts
 * import { memorySource, modelFiles, openModel } from "longhand/formats";
 * const config = { model_type: "llama", hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 2 };
 * const bytes = new TextEncoder().encode(JSON.stringify({ ...config, rope_theta: 10000 }));
 * const files = modelFiles([memorySource("config.json", bytes)], "tiny");
 * (await openModel(files)).name; // => "tiny"
 * ```
 */
export function modelFiles(sources: Iterable<ByteSource | File>, name?: string): ModelFiles {
  const byName = new Map<string, ByteSource>();
  for (const given of sources) {
    const source = "read" in given ? given : blobSource(given);
    if (byName.has(source.name)) {
      throw new FormatError(name ?? "model", `expected files of different names, got two called ${quote(source.name)}`);
    }
    byName.set(source.name, source);
  }
  const names = [...byName.keys()];
  const file = names.includes("config.json") ? null : mainFile(names, name ?? "model");
  const called = name ?? file ?? "model";
  return {
    path: called,
    folder: called,
    file,
    list: async () => names,
    async open(wanted) {
      const source = byName.get(wanted);
      if (source === undefined) {
        const close = nearest(wanted, names)[0] ?? (names.slice(0, 5).join(", ") || "none");
        throw new FormatError(called, `expected ${quote(wanted)} among the files, got none; there is ${close}`);
      }
      const { readInto } = source;
      return {
        name: wanted,
        size: source.size,
        read: (offset, length) => source.read(offset, length),
        ...(readInto === undefined ? {} : { readInto: (offset, target) => readInto.call(source, offset, target) }),
        async close() {},
      };
    },
  };
}

/** The file that is the model, among names without a config.json. */
function mainFile(names: readonly string[], who: string): string | null {
  if (names.length === 1) return names[0]!;
  const models = names.filter((name) => /\.gguf$/i.test(name) || (/\.bin$/i.test(name) && !/^tok/.test(name))).sort();
  const stems = new Set(models.map((name) => name.replace(/-\d{5,}-of-\d{5,}\.gguf$/i, "")));
  if (stems.size > 1) {
    throw new FormatError(who, `expected the files of one model, got ${models.slice(0, 5).join(", ")}`);
  }
  return models[0] ?? null;
}

/**
 * The files that a caller means: of a path, or of a built-in model where no such path exists.
 *
 * @param expected what a path may be, for the message
 * @throws FormatError for what is neither, naming the nearest file and the nearest built-in model
 */
export async function modelFilesOf(model: ModelSource, expected: string): Promise<ModelFiles> {
  if (typeof model !== "string") return "list" in model ? model : modelFiles(model);
  const path = model;
  const { stat, readdir } = await import("node:fs/promises");
  const { basename, dirname } = await import("node:path");
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new FormatError(path, `expected ${expected}, got ${error.code}`);
  });
  if (info !== null) {
    const isFolder = info.isDirectory();
    return folderFiles(isFolder ? path : dirname(path), isFolder ? null : basename(path), path);
  }
  const isName = !/[\\/]/.test(path);
  const builtIn = isName ? await packagedModels() : null;
  const files = await builtIn?.open(path);
  if (files != null) return files;
  const siblings = await readdir(dirname(path)).catch(() => [] as string[]);
  const close = [
    ...nearest(basename(path), siblings, 1),
    ...nearest(path, (await builtIn?.names()) ?? [], 1).map((name) => `${name} (built in)`),
  ];
  throw new FormatError(
    path,
    `expected ${expected}, got a path that does not exist${close.length === 0 ? "" : `; nearest: ${close.join(", ")}`}`,
  );
}

/** Runs `use` with one of the files open and closes it again, whatever happens. */
export async function opened<T>(
  files: Pick<ModelFiles, "open">,
  file: string,
  use: (source: ByteSource) => Promise<T>,
): Promise<T> {
  const source = await files.open(file);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}

/** A file's name after its last dot, in lower case. */
export function extensionOf(file: string): string {
  return file.slice(file.lastIndexOf(".") + 1).toLowerCase();
}
