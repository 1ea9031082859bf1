// The files of a checkpoint by the names that its headers use.

import type { ByteSource } from "../bytes/byte-source.ts";

/** A file of a checkpoint. */
export interface StoredFile {
  /** What messages call it. */
  readonly name: string;
  /** What `location.source` says: a path, or the name again. */
  readonly location: string;
  /** As its header was read; another size at opening is an error. */
  readonly size: number;
  open(): Promise<ByteSource>;
}

/** How to get at a checkpoint's files. */
export interface FileAccess {
  /** Opens a file by its name in the headers. The weights close it. */
  open(file: string): Promise<ByteSource>;
  /** Its path, where it has one. */
  locate?(file: string): string;
}

/** Looks up files by name. */
export function filesOf(
  files: readonly { readonly file: string; readonly fileSize: number }[],
  access: FileAccess,
): (name: string) => StoredFile {
  const byName = new Map(
    files.map(({ file, fileSize }): [string, StoredFile] => [
      file,
      { name: file, location: access.locate?.(file) ?? file, size: fileSize, open: () => access.open(file) },
    ]),
  );
  return (name) => {
    const file = byName.get(name);
    if (file === undefined) throw new Error(`internal: expected a header of ${name}, got none`);
    return file;
  };
}
