// What one engine's file gives: everything that depends on the engine. index.ts adds the rest.

import type { GgufPatch } from "../../formats/gguf/patch.ts";
import type { ExportedFile, ExportedGroup } from "./types.ts";

export interface EngineWords {
  readonly engine: { readonly version: string; readonly readFrom: string };
  readonly files: readonly ExportedFile[];
  readonly patch: GgufPatch | null;
  readonly commands: readonly string[];
  readonly groups: readonly ExportedGroup[];
  readonly nearest: string | null;
  readonly notes: readonly string[];
}
