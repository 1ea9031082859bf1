// From our names of weights to a checkpoint's. A family gives a map per format: template of ours → template of theirs,
// "{i}" the layer. Where a checkpoint stores it otherwise, a rule says how: rows of a fused matrix, a transposed
// (Conv1D) weight, a norm stored as weight − 1. Matrices are [out, in], as torch.nn.Linear keeps them.

import type { ModelSpec } from "./spec.ts";

/** Weights of the whole model. */
export const modelWeights = [
  "embedding.weight", // [V, E]
  "embeddingNorm.weight",
  "embeddingNorm.bias",
  "positions.weight", // [N, E], learned absolute positions
  "finalNorm.weight",
  "finalNorm.bias",
  "head.weight", // [V, E]; absent when tied
  "head.bias",
] as const;

/** Weights of a layer; in full "layers.3.query.weight". */
export const layerWeights = [
  "attentionNorm.weight",
  "attentionNorm.bias",
  "query.weight", // [H·D, E]
  "query.bias",
  "key.weight", // [K·D, E]
  "key.bias",
  "value.weight",
  "value.bias",
  "queryNorm.weight", // [D] over a head, [H·D] over the width
  "queryNorm.bias",
  "keyNorm.weight",
  "keyNorm.bias",
  "sinks", // [H]
  "attentionOutput.weight", // [E, H·D]
  "attentionOutput.bias",
  "attentionPostNorm.weight",
  "attentionPostNorm.bias",
  "mlpNorm.weight",
  "mlpNorm.bias",
  "gate.weight", // [F, E]
  "gate.bias",
  "up.weight",
  "up.bias",
  "down.weight", // [E, F]
  "down.bias",
  "mlpPostNorm.weight",
  "mlpPostNorm.bias",
  // A bias learned by distance (T5): [buckets, H].
  "relativeBias.weight",
  // KERPLE's numbers of each head, [H].
  "kerple.r1",
  "kerple.r2",
  // FIRE's: two numbers, and a network from 1 over U to H.
  "fire.c",
  "fire.threshold",
  "fire.layers.0.weight", // [U, 1]
  "fire.layers.0.bias",
  "fire.layers.1.weight", // [H, U]
  "fire.layers.1.bias",
  // A decoder layer's attention to an encoder's output.
  "crossNorm.weight",
  "crossQuery.weight", // [H·D, E]
  "crossKey.weight",
  "crossValue.weight",
  "crossOutput.weight", // [E, H·D]
] as const;

export type ModelWeight = (typeof modelWeights)[number];
export type LayerWeight = (typeof layerWeights)[number];

/** Rows [from, to) of a tensor. */
export type RowRange = readonly [from: number, to: number];

/** How a weight of ours is made of a checkpoint's tensor, in this order: transpose, choose rows, add. */
export interface WeightRule {
  /** The checkpoint's name, "{i}" the layer. */
  readonly tensor: string;
  /** Its name in files that lack `tensor` in layer 0. */
  readonly otherwise?: string;
  /** Stored [in, out] (GPT-2's Conv1D). */
  readonly transpose?: true;
  /** Rows of a fused tensor, joined in order (elements, for a bias). */
  readonly rows?: (spec: ModelSpec, layer: number) => readonly RowRange[];
  /** Added to every element: 1 for norms that store weight − 1. */
  readonly add?: number;
}

/** The map of one format. A weight that a layer of the model needs and the map lacks is an error when it is read. */
export interface NameMap {
  readonly model: { readonly [W in ModelWeight]?: string | WeightRule };
  readonly layer: { readonly [W in LayerWeight]?: string | WeightRule };
  /** The weights of the encoder that a decoder attends to; in full "encoder.layers.3.query.weight". */
  readonly encoder?: Pick<NameMap, "model" | "layer">;
  /** Tensors of the checkpoint that no map names and that mean nothing here: buffers, other modalities. */
  readonly ignored?: RegExp;
  /** Where the same names are found in other files. The first under which the embedding exists is taken. */
  readonly placements?: readonly Placement[];
}

/** Names that begin so begin otherwise: a text model inside a multimodal one, a base model saved without its head. */
export type Placement = readonly (readonly [from: string, to: string])[];

/** The map as a checkpoint spells it: its own names if they are there, else those of a placement. */
export function placedNames(map: NameMap, has: (tensor: string) => boolean): NameMap {
  return chosenNames(moveNames(map, has), has);
}

/** Each rule with the one of its two names that the file has. */
function chosenNames<M extends Pick<NameMap, "model" | "layer" | "encoder">>(
  map: M,
  has: (tensor: string) => boolean,
): M {
  const choose = <T extends object>(table: T): T =>
    Object.fromEntries(
      Object.entries<string | WeightRule>(table as Record<string, string | WeightRule>).map(([weight, entry]) => {
        const { otherwise, ...rule } = ruleOf(entry);
        const isThere = otherwise === undefined || has(rule.tensor.replaceAll("{i}", "0"));
        return [weight, isThere ? rule : { ...rule, tensor: otherwise }];
      }),
    ) as T;
  return {
    ...map,
    model: choose(map.model),
    layer: choose(map.layer),
    ...(map.encoder === undefined ? {} : { encoder: chosenNames(map.encoder, has) }),
  };
}

function moveNames(map: NameMap, has: (tensor: string) => boolean): NameMap {
  const anchor = map.model["embedding.weight"];
  if (anchor === undefined || map.placements === undefined) return map;
  const { tensor } = ruleOf(anchor);
  if (has(tensor)) return map;
  const placement = map.placements.find((one) => has(moved(tensor, one)));
  if (placement === undefined) return map;
  const move = <W extends string>(table: { readonly [K in W]?: string | WeightRule }) =>
    Object.fromEntries(
      Object.entries<string | WeightRule>(table as Record<string, string | WeightRule>).map(([weight, entry]) => {
        const rule = ruleOf(entry);
        return [weight, { ...rule, tensor: moved(rule.tensor, placement) }];
      }),
    ) as { [K in W]?: WeightRule };
  return { ...map, model: move(map.model), layer: move(map.layer) };
}

function moved(tensor: string, placement: Placement): string {
  const found = placement.find(([from]) => tensor.startsWith(from));
  return found === undefined ? tensor : found[1] + tensor.slice(found[0].length);
}

function ruleOf(entry: string | WeightRule): WeightRule {
  return typeof entry === "string" ? { tensor: entry } : entry;
}

/** "layers.3.query.weight" as its parts; layer null for a weight of the whole model. */
export function weightParts(name: string): { readonly weight: string; readonly layer: number | null } {
  const match = /^layers\.(\d+)\.(.+)$/.exec(name);
  return match === null ? { weight: name, layer: null } : { weight: match[2]!, layer: Number(match[1]) };
}

/** What our names of an encoder's weights begin with. */
export const encoderPrefix = "encoder.";

/** The rule for a weight of ours, its layer filled in; undefined when the map has none. */
export function ruleFor(map: Pick<NameMap, "model" | "layer" | "encoder">, name: string): WeightRule | undefined {
  if (name.startsWith(encoderPrefix)) {
    return map.encoder === undefined ? undefined : ruleFor(map.encoder, name.slice(encoderPrefix.length));
  }
  const { weight, layer } = weightParts(name);
  const table = (layer === null ? map.model : map.layer) as Readonly<Record<string, string | WeightRule | undefined>>;
  const entry = Object.hasOwn(table, weight) ? table[weight] : undefined;
  if (entry === undefined) return undefined;
  const rule = ruleOf(entry);
  return layer === null ? rule : { ...rule, tensor: rule.tensor.replaceAll("{i}", String(layer)) };
}

/** Part `index` of a matrix whose rows are blocks of these sizes: a fused q, k and v. */
export function fusedRows(
  sizes: (spec: ModelSpec, layer: number) => readonly number[],
  index: number,
): (spec: ModelSpec, layer: number) => RowRange[] {
  return (spec, layer) => {
    const list = sizes(spec, layer);
    const from = list.slice(0, index).reduce((sum, size) => sum + size, 0);
    return [[from, from + list[index]!]];
  };
}

/** Part `index` of `count` parts of every head, heads outermost (GPT-NeoX and BLOOM: [H, 3, D]). */
export function fusedHeads(count: number, index: number): (spec: ModelSpec, layer: number) => RowRange[] {
  return (spec, layer) => {
    const { numHeads, headDim } = spec.layers[layer]!.attention;
    return Array.from({ length: numHeads }, (_, head): RowRange => {
      const from = (head * count + index) * headDim;
      return [from, from + headDim];
    });
  };
}

/** Widths of query, key and value. */
export function queryKeyValueSizes(spec: ModelSpec, layer: number): number[] {
  const { numHeads, numKeyValueHeads, headDim } = spec.layers[layer]!.attention;
  return [numHeads * headDim, numKeyValueHeads * headDim, numKeyValueHeads * headDim];
}

/** Query, key and value out of one tensor: "attn_qkv" is the name without ".weight" and ".bias". */
export function fusedQueryKeyValue(
  tensor: string,
  rows: (index: number) => NonNullable<WeightRule["rows"]>,
  options: Pick<WeightRule, "transpose"> = {},
): NameMap["layer"] {
  return Object.fromEntries(
    ["query", "key", "value"].flatMap((name, index) => [
      [`${name}.weight`, { tensor: `${tensor}.weight`, rows: rows(index), ...options }],
      [`${name}.bias`, { tensor: `${tensor}.bias`, rows: rows(index) }],
    ]),
  );
}

/** The names that most Hugging Face decoders share (Llama's). */
export const huggingFaceNames: NameMap = {
  model: {
    "embedding.weight": "model.embed_tokens.weight",
    "finalNorm.weight": "model.norm.weight",
    "finalNorm.bias": "model.norm.bias",
    "head.weight": "lm_head.weight",
    "head.bias": "lm_head.bias",
  },
  layer: {
    "attentionNorm.weight": "model.layers.{i}.input_layernorm.weight",
    "attentionNorm.bias": "model.layers.{i}.input_layernorm.bias",
    "query.weight": "model.layers.{i}.self_attn.q_proj.weight",
    "query.bias": "model.layers.{i}.self_attn.q_proj.bias",
    "key.weight": "model.layers.{i}.self_attn.k_proj.weight",
    "key.bias": "model.layers.{i}.self_attn.k_proj.bias",
    "value.weight": "model.layers.{i}.self_attn.v_proj.weight",
    "value.bias": "model.layers.{i}.self_attn.v_proj.bias",
    "queryNorm.weight": "model.layers.{i}.self_attn.q_norm.weight",
    "queryNorm.bias": "model.layers.{i}.self_attn.q_norm.bias",
    "keyNorm.weight": "model.layers.{i}.self_attn.k_norm.weight",
    "keyNorm.bias": "model.layers.{i}.self_attn.k_norm.bias",
    sinks: "model.layers.{i}.self_attn.sinks",
    "attentionOutput.weight": "model.layers.{i}.self_attn.o_proj.weight",
    "attentionOutput.bias": "model.layers.{i}.self_attn.o_proj.bias",
    "mlpNorm.weight": "model.layers.{i}.post_attention_layernorm.weight",
    "mlpNorm.bias": "model.layers.{i}.post_attention_layernorm.bias",
    "gate.weight": "model.layers.{i}.mlp.gate_proj.weight",
    "gate.bias": "model.layers.{i}.mlp.gate_proj.bias",
    "up.weight": "model.layers.{i}.mlp.up_proj.weight",
    "up.bias": "model.layers.{i}.mlp.up_proj.bias",
    "down.weight": "model.layers.{i}.mlp.down_proj.weight",
    "down.bias": "model.layers.{i}.mlp.down_proj.bias",
  },
  ignored:
    /rotary_emb\.inv_freq$|\.masked_bias$|^(model\.)?(vision_tower|vision_model|visual|audio_tower|embed_vision|multi_modal_projector)\./,
  placements: [
    // transformers 5, transformers 4, and a base model alone.
    [["model.", "model.language_model."]],
    [
      ["model.", "language_model.model."],
      ["lm_head.", "language_model.lm_head."],
    ],
    [["model.", ""]],
  ],
};

/** The names that GGUF gives to every architecture; a family may change some. */
export const ggufNames: NameMap = {
  model: {
    "embedding.weight": "token_embd.weight",
    "embeddingNorm.weight": "token_embd_norm.weight",
    "embeddingNorm.bias": "token_embd_norm.bias",
    "positions.weight": "position_embd.weight",
    "finalNorm.weight": "output_norm.weight",
    "finalNorm.bias": "output_norm.bias",
    "head.weight": "output.weight",
    "head.bias": "output.bias",
  },
  layer: {
    "attentionNorm.weight": "blk.{i}.attn_norm.weight",
    "attentionNorm.bias": "blk.{i}.attn_norm.bias",
    "query.weight": "blk.{i}.attn_q.weight",
    "query.bias": "blk.{i}.attn_q.bias",
    "key.weight": "blk.{i}.attn_k.weight",
    "key.bias": "blk.{i}.attn_k.bias",
    "value.weight": "blk.{i}.attn_v.weight",
    "value.bias": "blk.{i}.attn_v.bias",
    "queryNorm.weight": "blk.{i}.attn_q_norm.weight",
    "queryNorm.bias": "blk.{i}.attn_q_norm.bias",
    "keyNorm.weight": "blk.{i}.attn_k_norm.weight",
    "keyNorm.bias": "blk.{i}.attn_k_norm.bias",
    sinks: "blk.{i}.attn_sinks.weight",
    "attentionOutput.weight": "blk.{i}.attn_output.weight",
    "attentionOutput.bias": "blk.{i}.attn_output.bias",
    "attentionPostNorm.weight": "blk.{i}.post_attention_norm.weight",
    "mlpNorm.weight": "blk.{i}.ffn_norm.weight",
    "mlpNorm.bias": "blk.{i}.ffn_norm.bias",
    "gate.weight": "blk.{i}.ffn_gate.weight",
    "gate.bias": "blk.{i}.ffn_gate.bias",
    "up.weight": "blk.{i}.ffn_up.weight",
    "up.bias": "blk.{i}.ffn_up.bias",
    "down.weight": "blk.{i}.ffn_down.weight",
    "down.bias": "blk.{i}.ffn_down.bias",
    "mlpPostNorm.weight": "blk.{i}.post_ffw_norm.weight",
  },
  ignored: /^rope_(freqs|factors_(long|short))\.weight$|\.attn_rot_embd$/,
};

/** GGUF's names where query, key and value are one tensor: all rows of one, then of the next. */
export const ggufFusedNames: NameMap = names(ggufNames, {
  layer: fusedQueryKeyValue("blk.{i}.attn_qkv", (index) => fusedRows(queryKeyValueSizes, index)),
});

/** A map with some entries of its own. */
export function names(base: NameMap, own: Partial<NameMap>): NameMap {
  return {
    model: { ...base.model, ...own.model },
    layer: { ...base.layer, ...own.layer },
    ...(own.ignored !== undefined
      ? { ignored: own.ignored }
      : base.ignored !== undefined
        ? { ignored: base.ignored }
        : {}),
    ...(own.placements !== undefined
      ? { placements: own.placements }
      : base.placements !== undefined
        ? { placements: base.placements }
        : {}),
  };
}
