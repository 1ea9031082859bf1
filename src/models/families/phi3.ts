// Phi-3, Phi-3.5 and Phi-4 (dense): Llama with query, key and value in one matrix and gate and up in another, rows one
// after the other. transformers' Phi3Config, GGUF's "phi3".

import { decoderSpec, type ModelFamily, rmsNorm } from "../family.ts";
import {
  fusedQueryKeyValue,
  fusedRows,
  ggufNames,
  huggingFaceNames,
  type NameMap,
  names,
  queryKeyValueSizes,
} from "../names.ts";
import type { ModelSpec } from "../spec.ts";

const gateUpSizes = (spec: ModelSpec, layer: number): number[] => {
  const { intermediateSize } = spec.layers[layer]!.mlp;
  return [intermediateSize, intermediateSize];
};

function fused(base: NameMap, queryKeyValue: string, gateUp: string): NameMap {
  return names(base, {
    layer: {
      ...fusedQueryKeyValue(queryKeyValue, (index) => fusedRows(queryKeyValueSizes, index)),
      "gate.weight": { tensor: gateUp, rows: fusedRows(gateUpSizes, 0) },
      "up.weight": { tensor: gateUp, rows: fusedRows(gateUpSizes, 1) },
    },
  });
}

export const phi3: ModelFamily = {
  name: "phi3",
  huggingFace: ["phi3"],
  gguf: ["phi3"],
  names: {
    huggingFace: fused(
      huggingFaceNames,
      "model.layers.{i}.self_attn.qkv_proj",
      "model.layers.{i}.mlp.gate_up_proj.weight",
    ),
    gguf: fused(ggufNames, "blk.{i}.attn_qkv", "blk.{i}.ffn_up.weight"),
  },
  spec: (settings, description) => decoderSpec("phi3", settings, description, { norm: rmsNorm(settings, 1e-5) }),
};
