// Falcon: 7B (one key/value head, attention and MLP in parallel after one norm), 40B and 11B (grouped heads, two norms or
// one), RW (ALiBi, in turn, biases). Query, key and value are fused by key/value head: its queries, its key, its value.
// transformers' FalconConfig; GGUF's "falcon" fuses all queries, then keys, then values. transformers rounds the ALiBi of
// RW to bfloat16; here it is what the slopes say.

import { decoderSpec, flagOrWeight, layerNorm, type ModelFamily } from "../family.ts";
import { fusedQueryKeyValue, ggufFusedNames, type NameMap, names, type RowRange } from "../names.ts";
import { activationOf } from "../settings.ts";
import type { ModelSpec } from "../spec.ts";

/** Rows of queries (0), keys (1) or values (2): groups of H/K + 2 heads. */
function groupedRows(index: number): (spec: ModelSpec, layer: number) => RowRange[] {
  return (spec, layer) => {
    const { numHeads, numKeyValueHeads, headDim } = spec.layers[layer]!.attention;
    const queries = numHeads / numKeyValueHeads;
    const [first, count] = index === 0 ? [0, queries] : [queries + index - 1, 1];
    return Array.from({ length: numKeyValueHeads }, (_, group): RowRange => {
      const from = (group * (queries + 2) + first) * headDim;
      return [from, from + count * headDim];
    });
  };
}

const either = (tensor: string, otherwise: string) => ({ tensor, otherwise });

const huggingFace: NameMap = {
  model: {
    "embedding.weight": "transformer.word_embeddings.weight",
    "finalNorm.weight": "transformer.ln_f.weight",
    "finalNorm.bias": "transformer.ln_f.bias",
    "head.weight": "lm_head.weight",
  },
  layer: {
    "attentionNorm.weight": either("transformer.h.{i}.input_layernorm.weight", "transformer.h.{i}.ln_attn.weight"),
    "attentionNorm.bias": either("transformer.h.{i}.input_layernorm.bias", "transformer.h.{i}.ln_attn.bias"),
    ...fusedQueryKeyValue("transformer.h.{i}.self_attention.query_key_value", groupedRows),
    "attentionOutput.weight": "transformer.h.{i}.self_attention.dense.weight",
    "attentionOutput.bias": "transformer.h.{i}.self_attention.dense.bias",
    "mlpNorm.weight": either("transformer.h.{i}.post_attention_layernorm.weight", "transformer.h.{i}.ln_mlp.weight"),
    "mlpNorm.bias": either("transformer.h.{i}.post_attention_layernorm.bias", "transformer.h.{i}.ln_mlp.bias"),
    "up.weight": "transformer.h.{i}.mlp.dense_h_to_4h.weight",
    "up.bias": "transformer.h.{i}.mlp.dense_h_to_4h.bias",
    "down.weight": "transformer.h.{i}.mlp.dense_4h_to_h.weight",
    "down.bias": "transformer.h.{i}.mlp.dense_4h_to_h.bias",
  },
  placements: [[["transformer.", ""]]],
};

/** The MLP's norm is the one that every file has; attention reads its own where there are two. */
const gguf = names(ggufFusedNames, {
  layer: {
    "attentionNorm.weight": either("blk.{i}.attn_norm_2.weight", "blk.{i}.attn_norm.weight"),
    "attentionNorm.bias": either("blk.{i}.attn_norm_2.bias", "blk.{i}.attn_norm.bias"),
    "mlpNorm.weight": "blk.{i}.attn_norm.weight",
    "mlpNorm.bias": "blk.{i}.attn_norm.bias",
  },
});

export const falcon: ModelFamily = {
  name: "falcon",
  huggingFace: ["falcon"],
  gguf: ["falcon"],
  names: { huggingFace, gguf },
  spec(settings, description) {
    const isNew = settings.flag({ huggingFace: "new_decoder_architecture" }, false);
    const isParallel = isNew || settings.flag({ huggingFace: "parallel_attn" }, true);
    const numNorms = settings.number({ huggingFace: "num_ln_in_parallel_attn" }, isNew ? 2 : 1);
    const parallel =
      settings.format === "gguf" || (isNew && numNorms === 2) ? "two-norms" : isParallel ? "one-norm" : "no";
    return decoderSpec("falcon", settings, description, {
      norm: layerNorm(settings, true),
      parallel,
      inputBias: flagOrWeight(settings, "bias", "layers.0.query.bias", false),
      outputBias: flagOrWeight(settings, "bias", "layers.0.attentionOutput.bias", false),
      mlp: {
        kind: "plain",
        bias: flagOrWeight(settings, "bias", "layers.0.up.bias", false),
        activation: activationOf(settings, { huggingFace: "activation" }, "gelu"),
        intermediateSize: settings.count(
          { huggingFace: "ffn_hidden_size", gguf: "feed_forward_length" },
          4 * description.hiddenSize,
        ),
      },
      tiedByDefault: true,
    });
  },
};
