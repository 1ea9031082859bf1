// The engines that can be asked, as one total table, and which one a server is.

import type { JsonObject } from "../formats/bytes/index.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { Ask, Engine, EngineName } from "./engine.ts";
import { llamaCppPython } from "./llama-cpp-python.ts";
import { llamaServer } from "./llama-server.ts";
import { openai } from "./openai.ts";
import { sglang } from "./sglang.ts";
import { vllm } from "./vllm.ts";

export const engines: Readonly<Record<EngineName, Engine>> = {
  vllm,
  sglang,
  openai,
  "llama-cpp-python": llamaCppPython,
  "llama-server": llamaServer,
};

/** What each engine writes as the owner of its models in /v1/models. */
const owners: Readonly<Record<string, EngineName | "ollama">> = {
  vllm: "vllm",
  sglang: "sglang",
  me: "llama-cpp-python",
  llamacpp: "llama-server",
  library: "ollama",
};

/**
 * Which engine a server is, by what it says of its models; an unknown one is asked OpenAI's way.
 *
 * @throws EndpointError for Ollama, which gives no log-probabilities of a prompt and cuts long ones without a word
 */
export async function identifyEngine(models: readonly JsonObject[], ask: Ask): Promise<EngineName> {
  const owner = models[0]?.owned_by;
  const found = typeof owner === "string" && Object.hasOwn(owners, owner) ? owners[owner]! : "openai";
  if (found !== "ollama") return found;
  const version = await ask({ path: "/api/version" }).catch(() => null);
  throw new EndpointError(
    `endpoint: expected a server that gives log-probabilities of a prompt, got Ollama${
      typeof version === "object" && version !== null ? ` ${String((version as JsonObject).version)}` : ""
    }, which gives those of generated tokens alone, reads 4,096 tokens unless told otherwise by its own settings, and cuts ` +
      "what is longer without saying so; serve the same GGUF file with llama-server or llama-cpp-python, or give the " +
      "file itself without --endpoint",
  );
}
