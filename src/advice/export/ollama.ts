// Ollama: a Modelfile, FROM a GGUF with PARAMETER num_ctx. It has no parameter for the rotation, so that is written into
// a copy of the file. Its own engine (model/models/*/model.go at 02e2ab647 and 0312c5abc) does not read rope.scaling for
// every architecture; llama.cpp inside Ollama does.

import { exportGguf } from "./gguf.ts";
import { architectureOf, textClassOf } from "./hugging-face.ts";
import { exportNote } from "./notes.ts";
import type { ExportContext } from "./types.ts";
import type { Wanted } from "./wanted.ts";
import { shellLine } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

/** OllamaEngineRequired in fs/ggml/ggml.go, as far as these have rotary scalings here. */
const ownEngine: ReadonlySet<string> = new Set(
  (
    "deepseek2 gemma3 gemma3n gemma4 gptoss gpt-oss laguna llama4 mistral3 olmo3 qwen25vl qwen3 qwen3moe qwen35 " +
    "qwen35moe qwen3next qwen3vl qwen3vlmoe lfm2 lfm2moe"
  ).split(" "),
);

export function exportOllama(context: ExportContext, wanted: readonly Wanted[]): EngineWords {
  const { folder, length, version } = context;
  const gguf = exportGguf(context, wanted);
  const architecture = architectureOf(context.model, textClassOf(context.model, context.options.config));
  const notes = [
    ...gguf.notes,
    exportNote("modelfile-length"),
    ...(architecture !== null && ownEngine.has(architecture)
      ? [exportNote("ollama-own-engine", { architecture })]
      : []),
  ];
  const common = {
    ...gguf,
    engine: { version: version ?? "any", readFrom: `${gguf.engine.readFrom}, which Ollama runs` },
    notes,
  };
  if (gguf.patch === null) return { ...common, files: [], commands: [] };
  const modelfile = `FROM ./${gguf.file}\nPARAMETER num_ctx ${length}\n`;
  const name = `${gguf.file.replace(/\.gguf$/, "").toLowerCase()}`;
  return {
    ...common,
    files: [...gguf.files, { path: "Modelfile", content: modelfile }],
    commands: [shellLine(["ollama", "create", name, "-f", `${folder}/Modelfile`]), shellLine(["ollama", "run", name])],
  };
}
