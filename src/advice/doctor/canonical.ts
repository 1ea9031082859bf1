// The rotary settings of a description as transformers 5 writes them: one dict, or one entry a layer type.

import { toHuggingFace } from "../../formats/huggingface/rope-parameters.ts";
import { valueAt } from "./json-text.ts";
import { drop, set } from "./record.ts";
import type { Operation, Subject } from "./types.ts";

/** Keys of version 4 that a full rope_parameters makes superfluous, and that would be read beside it. */
const older = ["rope_scaling", "rope_theta", "rope_local_base_freq", "global_rope_theta", "local_rope_theta"];

/** Writes rope_parameters in full, by layer type where the model has several, and takes the older keys away. */
export function canonicalOperations(subject: Subject): readonly Operation[] {
  const { model, textPath } = subject;
  if (model === null) return [];
  const entries: Record<string, unknown> = {};
  for (const { position, layerType } of model.groups) {
    if (position.kind === "rope") entries[layerType ?? "full_attention"] = toHuggingFace(position.rope);
  }
  if (Object.keys(entries).length === 0) return [];
  const named = model.groups.some(({ layerType }) => layerType !== undefined);
  const value = named ? entries : Object.values(entries)[0];
  return [
    set(`${textPath}/rope_parameters`, value),
    ...older
      .filter((key) => valueAt(subject.effective, `${textPath}/${key}`) !== undefined)
      .map((key) => drop(`${textPath}/${key}`)),
  ];
}
