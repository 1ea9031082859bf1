// The files of a folder on this machine (Node).

import { openFile } from "./bytes/node-file.ts";
import type { ModelFiles } from "./model-files.ts";

/**
 * @param folder its path
 * @param file the one that was named; null for the folder
 * @param path what messages call it
 * @param name what the folder is called; the last part of its path when absent
 */
export async function folderFiles(
  folder: string,
  file: string | null,
  path: string,
  name?: string,
): Promise<ModelFiles> {
  const { readdir } = await import("node:fs/promises");
  const { basename, join, resolve } = await import("node:path");
  return {
    path,
    folder: name ?? basename(resolve(folder)),
    file,
    list: () => readdir(folder),
    open: (wanted) => openFile(join(folder, wanted)),
    locate: (wanted) => join(folder, wanted),
  };
}
