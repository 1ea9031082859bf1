// GET /v1/models, which every server with OpenAI's interface has: what it calls its model, and who it is.

import { isJsonObject, type JsonObject } from "../formats/bytes/index.ts";
import { listAt, objectAt, unexpected } from "./answer.ts";
import type { Ask } from "./engine.ts";

export async function servedModels(ask: Ask): Promise<readonly JsonObject[]> {
  const answer = objectAt(await ask({ path: "/v1/models" }), "/v1/models");
  return listAt(answer.data, "/v1/models: data").map((entry, i) => objectAt(entry, `/v1/models: data[${i}]`));
}

/** The entry of one model. */
export async function modelFacts(ask: Ask, model: string): Promise<JsonObject> {
  const models = await servedModels(ask);
  return models.find(({ id }) => id === model) ?? {};
}

/** The model to ask for: the one that was named, else the only one. */
export function chooseModel(models: readonly JsonObject[], wanted: string | undefined): string {
  const ids = models.map(({ id }) => id).filter((id) => typeof id === "string");
  if (wanted !== undefined) {
    if (ids.includes(wanted)) return wanted;
    throw new RangeError(`--served-model: expected ${ids.join(", ") || "a model"}, got ${JSON.stringify(wanted)}`);
  }
  // Adapters have a parent; the model itself has none.
  const own = models.filter(({ parent }) => parent === undefined || parent === null).filter(isJsonObject);
  if (own.length === 1 && typeof own[0]!.id === "string") return own[0]!.id;
  if (ids.length === 0) throw unexpected("/v1/models: data", "a model", []);
  throw new RangeError(`expected --served-model, one of ${ids.join(", ")}, since the server has several; got none`);
}
