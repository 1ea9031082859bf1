// MPT: ALiBi, layer norms, no biases, query, key and value fused one after the other, all three clamped where clip_qkv
// says so. transformers' MptConfig and MosaicML's own code; GGUF's "mpt".
//
// transformers reads less of the file than MosaicML's code: alibi_bias_max, expansion_ratio, no_bias, qk_ln, kv_n_heads
// and logit_scale mean nothing to it, and its slopes are always those of 8. Here the file's meaning is followed, and the
// description's findings say where transformers would compute something else.

import { decoderSpec, keys, layerNorm, type ModelFamily } from "../family.ts";
import { fusedQueryKeyValue, fusedRows, ggufFusedNames, type NameMap, queryKeyValueSizes } from "../names.ts";

const huggingFace: NameMap = {
  model: {
    "embedding.weight": "transformer.wte.weight",
    "positions.weight": "transformer.wpe.weight",
    "finalNorm.weight": "transformer.norm_f.weight",
    "finalNorm.bias": "transformer.norm_f.bias",
    "head.weight": "lm_head.weight",
  },
  layer: {
    "attentionNorm.weight": "transformer.blocks.{i}.norm_1.weight",
    "attentionNorm.bias": "transformer.blocks.{i}.norm_1.bias",
    ...fusedQueryKeyValue("transformer.blocks.{i}.attn.Wqkv", (index) => fusedRows(queryKeyValueSizes, index)),
    "queryNorm.weight": "transformer.blocks.{i}.attn.q_ln.weight",
    "queryNorm.bias": "transformer.blocks.{i}.attn.q_ln.bias",
    "keyNorm.weight": "transformer.blocks.{i}.attn.k_ln.weight",
    "keyNorm.bias": "transformer.blocks.{i}.attn.k_ln.bias",
    "attentionOutput.weight": "transformer.blocks.{i}.attn.out_proj.weight",
    "attentionOutput.bias": "transformer.blocks.{i}.attn.out_proj.bias",
    "mlpNorm.weight": "transformer.blocks.{i}.norm_2.weight",
    "mlpNorm.bias": "transformer.blocks.{i}.norm_2.bias",
    "up.weight": "transformer.blocks.{i}.ffn.up_proj.weight",
    "up.bias": "transformer.blocks.{i}.ffn.up_proj.bias",
    "down.weight": "transformer.blocks.{i}.ffn.down_proj.weight",
    "down.bias": "transformer.blocks.{i}.ffn.down_proj.bias",
  },
  placements: [[["transformer.", ""]]],
};

export const mpt: ModelFamily = {
  name: "mpt",
  huggingFace: ["mpt"],
  gguf: ["mpt"],
  names: { huggingFace, gguf: ggufFusedNames },
  spec(settings, description) {
    const { hiddenSize, headDim } = description;
    const has = (weight: string): boolean => settings.hasWeight(`layers.0.${weight}`);
    const norm = layerNorm(settings, has("attentionNorm.bias"));
    // 0 and null both mean that nothing is clamped.
    const clip = settings.number({ huggingFace: "attn_config.clip_qkv", gguf: "attention.clamp_kqv" }, 0);
    const ratio = settings.number({ huggingFace: "expansion_ratio" }, 4);
    return decoderSpec("mpt", settings, description, {
      norm,
      inputBias: has("query.bias"),
      outputBias: has("attentionOutput.bias"),
      queryKeyNorm: has("queryNorm.weight") ? { over: "width", norm: { ...norm, bias: has("queryNorm.bias") } } : null,
      scale: settings.number({ huggingFace: "attn_config.softmax_scale" }, 1 / Math.sqrt(headDim)),
      clip: clip === 0 ? null : clip,
      mlp: {
        kind: "plain",
        bias: has("up.bias"),
        activation: "gelu",
        intermediateSize:
          settings.format === "gguf" ? settings.count(keys.intermediateSize) : Math.trunc(ratio * hiddenSize),
      },
      head: { scale: settings.number({ huggingFace: "logit_scale" }, 1) },
      tiedByDefault: true,
    });
  },
};
