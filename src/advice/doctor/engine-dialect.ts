// Which dialect of encodings/rope/dialects speaks for an engine at a version.

import type { Dialect } from "../../encodings/rope/dialects/index.ts";
import type { DoctorEngine } from "./types.ts";
import { isBefore } from "./versions.ts";

/** The dialect nearest to this version; Ollama runs llama.cpp's rotation. */
export function dialectOf(engine: DoctorEngine, version: string): Dialect {
  switch (engine) {
    case "transformers":
      return isBefore(version, "5") ? "transformers-4" : "transformers-5";
    case "vllm":
      return isBefore(version, "0.12") ? "vllm-0.11" : "vllm";
    case "ollama":
      return "llama.cpp";
    default:
      return engine;
  }
}
