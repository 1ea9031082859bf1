// What one engine's file gives: everything that depends on the engine. index.ts adds the rest.

import type { GgufPatch } from "../../formats/gguf/patch.ts";
import type { ExportNote } from "./notes.ts";
import type { ExportedFile, ExportedGroup } from "./types.ts";

export interface EngineWords {
  readonly engine: { readonly version: string; readonly readFrom: string };
  readonly files: readonly ExportedFile[];
  readonly patch: GgufPatch | null;
  /** Of config.json, where a file is written from it; null for a key that goes. */
  readonly changes?: Readonly<Record<string, unknown>>;
  readonly commands: readonly string[];
  readonly groups: readonly ExportedGroup[];
  readonly nearest: ExportNote | null;
  readonly notes: readonly ExportNote[];
}
