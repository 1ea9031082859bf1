// Graphs of a model with an encoder and a decoder (T5), from the blocks that decoders are made of.
//
//   tokens ─ embedding ─► hidden ─ encoderStart ─► keys and values of layer 0
//   for each encoder layer, chunk by chunk: hidden, all keys and values, bias ─► hidden, the next layer's keys and values
//   the last layer gives keys and values of every decoder layer's cross-attention instead
//   decoder: hidden, bias, states of both attentions ─► losses, logits
//
// A layer that sees both directions needs all keys of the layer before, so each encoder layer is a graph of its own that
// runs over chunks of queries: neither scores nor a bias of all queries ever exist. The embedding is a graph of its own
// too, because both stacks read it and it may be most of the weights.

import type { ModelDescription } from "../formats/model-description.ts";
import type { Value } from "../graph/index.ts";
import { type Blocks, buildProgram, type DecoderOptions, type DecoderProgram } from "./decoder.ts";
import type { AttentionSpec, LayerSpec, ModelSpec } from "./spec.ts";

export interface EncoderDecoderPrograms {
  /** tokens [tokens] → embedded [tokens, E] */
  readonly embedding: DecoderProgram;
  /** hidden [1, tokens, E] → key, value [1, H, tokens, D] */
  readonly encoderStart: DecoderProgram;
  /** hidden [1, tokens, E], key and value [1, H, keys, D], bias [1, H, tokens, keys] → hidden, key and value of the next
   *  layer; the last: crossKey.L [1, H, D, tokens] and crossValue.L [1, H, tokens, D] of every decoder layer L. */
  readonly encoderLayers: readonly DecoderProgram[];
  /**
   * Inputs as `buildDecoder` has them (pastLength, rows, targets, logitRows), with `embedded` [tokens, E] instead of
   * tokens, and `bias.B` [1, H, tokens, keys], one or one a layer. States: key.L, value.L [1, H, capacity, D], and
   * crossKey.L [1, H, D, source] and crossValue.L [1, H, source, D], which a run leaves as they are.
   */
  readonly decoder: DecoderProgram;
}

/** Whether a model is an encoder and a decoder, by its description alone. */
export function isEncoderDecoder({ groups }: ModelDescription): boolean {
  return ["encoder", "decoder"].every((type) => groups.some(({ layerType }) => layerType === type));
}

/** @throws RangeError for a spec without an encoder, or whose sizes contradict each other */
export function buildEncoderDecoder(spec: ModelSpec, options: DecoderOptions = {}): EncoderDecoderPrograms {
  const { encoder } = spec;
  if (encoder === undefined) throw new RangeError(`${spec.family}: expected a spec with an encoder, got none`);
  return {
    embedding: buildProgram(`${spec.family} embedding`, spec, options, (blocks) => embedding(blocks, spec)),
    encoderStart: buildProgram(`${spec.family} encoder start`, spec, options, (blocks) => {
      const { key, value } = keysOf(blocks, spec, blocks.g.input("hidden", "f32", [1, "tokens", spec.hiddenSize]), 0);
      blocks.g.output("key", key);
      blocks.g.output("value", value);
    }),
    encoderLayers: encoder.layers.map((layer, index) =>
      buildProgram(`${spec.family} encoder layer ${index}`, spec, options, (blocks) =>
        encoderLayer(blocks, spec, layer, index),
      ),
    ),
    decoder: buildEncoderDecoderDecoder(spec, options),
  };
}

/** The decoder's graph alone: what a second session over the same states is made of. */
export function buildEncoderDecoderDecoder(spec: ModelSpec, options: DecoderOptions = {}): DecoderProgram {
  return buildProgram(`${spec.family} decoder`, spec, options, (blocks) =>
    decoder(blocks, spec, options.losses !== false),
  );
}

function embedding({ g, rows }: Blocks, { vocabSize, hiddenSize, embedding: { scale } }: ModelSpec): void {
  const x = rows("embedding.weight", vocabSize, hiddenSize, g.input("tokens", "i64", ["tokens"]));
  g.output("embedded", scale === 1 ? x : g.multiply(x, scale));
}

const encoderName =
  (layer: number) =>
  (weight: string): string =>
    `encoder.layers.${layer}.${weight}`;
const decoderName =
  (layer: number) =>
  (weight: string): string =>
    `layers.${layer}.${weight}`;

/** Keys and values that encoder layer `index` makes of what it reads. */
function keysOf(blocks: Blocks, spec: ModelSpec, x: Value, index: number): { key: Value; value: Value } {
  const { attention, norm } = spec.encoder!.layers[index]!;
  const name = encoderName(index);
  const read = blocks.norm(x, norm, name("attentionNorm"));
  return {
    key: byHead(blocks, project(blocks, spec, read, attention, name("key")), attention),
    value: byHead(blocks, project(blocks, spec, read, attention, name("value")), attention),
  };
}

function project(
  { linear }: Blocks,
  { hiddenSize }: ModelSpec,
  x: Value,
  { numHeads, headDim, inputBias }: AttentionSpec,
  name: string,
): Value {
  return linear(x, name, numHeads * headDim, hiddenSize, inputBias);
}

/** [1, tokens, H·D] → [1, H, tokens, D] */
function byHead({ g }: Blocks, x: Value, { numHeads, headDim }: AttentionSpec): Value {
  return g.transpose(g.reshape(x, [1, "tokens", numHeads, headDim]), [0, 2, 1, 3]);
}

function encoderLayer(blocks: Blocks, spec: ModelSpec, layer: LayerSpec, index: number): void {
  const { g, norm, linear, mlp } = blocks;
  const { attention } = layer;
  const { numHeads, headDim, scale } = attention;
  const { hiddenSize } = spec;
  const name = encoderName(index);
  const x = g.input("hidden", "f32", [1, "tokens", hiddenSize]);
  const keys = [1, numHeads, "keys", headDim] as const;
  const pastKey = g.input("key", "f32", keys);
  const pastValue = g.input("value", "f32", keys);
  const bias = g.input("bias", "f32", [1, numHeads, "tokens", "keys"]);
  const query = project(blocks, spec, norm(x, layer.norm, name("attentionNorm")), attention, name("query"));
  const none = g.slice(query, 1, 0, 0);
  const { output } = g.attention(
    { query, key: none, value: none, pastKey, pastValue, bias },
    { numHeads, scale, causal: false },
  );
  const attended = linear(output, name("attentionOutput"), hiddenSize, numHeads * headDim, attention.outputBias);
  const middle = g.add(x, attended);
  const out = g.add(middle, mlp(norm(middle, layer.norm, name("mlpNorm")), layer.mlp, name));
  if (index + 1 < spec.encoder!.layers.length) {
    const next = keysOf(blocks, spec, out, index + 1);
    g.output("hidden", out);
    g.output("key", next.key);
    g.output("value", next.value);
    return;
  }
  const encoded = norm(out, spec.encoder!.finalNorm, "encoder.finalNorm");
  spec.layers.forEach((one, at) => {
    const rows = (which: string): Value =>
      byHead(blocks, project(blocks, spec, encoded, one.attention, decoderName(at)(which)), one.attention);
    g.output(`crossKey.${at}`, g.transpose(rows("crossKey")));
    g.output(`crossValue.${at}`, rows("crossValue"));
  });
}

function decoder(blocks: Blocks, spec: ModelSpec, withLosses: boolean): void {
  const { g, norm, linear, mlp } = blocks;
  const { hiddenSize } = spec;
  const embedded = g.input("embedded", "f32", ["tokens", hiddenSize]);
  const pastLength = g.input("pastLength", "i64", []);
  const asked = withLosses
    ? { rows: g.input("rows", "i64", ["rows"]), targets: g.input("targets", "i64", ["rows"]) }
    : undefined;
  const logitRows = g.input("logitRows", "i64", ["logitRows"]);
  const biases = biasInputs(spec).map((name, index) =>
    g.input(name, "f32", [1, spec.layers[index]!.attention.numHeads, "tokens", "keys"]),
  );
  let x = g.reshape(embedded, [1, "tokens", hiddenSize]);
  spec.layers.forEach((layer, index) => {
    const name = decoderName(index);
    const { attention } = layer;
    const { numHeads, headDim, scale, outputBias } = attention;
    const width = numHeads * headDim;
    const cache = [1, numHeads, "capacity", headDim] as const;
    x = g.scope(`layers[${index}]`, () => {
      const y = norm(x, layer.norm, name("attentionNorm"));
      const pastKey = g.state(`key.${index}`, "f32", cache);
      const pastValue = g.state(`value.${index}`, "f32", cache);
      const self = g.attention(
        {
          query: project(blocks, spec, y, attention, name("query")),
          key: project(blocks, spec, y, attention, name("key")),
          value: project(blocks, spec, y, attention, name("value")),
          pastKey,
          pastValue,
          pastLength,
          bias: biases[index] ?? biases[0]!,
          sinks: blocks.sinks(attention, name("sinks")),
        },
        { numHeads, scale },
      );
      g.assignRows(pastKey, self.newKey, 2, pastLength);
      g.assignRows(pastValue, self.newValue, 2, pastLength);
      const middle = g.add(x, linear(self.output, name("attentionOutput"), hiddenSize, width, outputBias));

      const query = project(blocks, spec, norm(middle, layer.norm, name("crossNorm")), attention, name("crossQuery"));
      const cross = crossAttention(blocks, query, index, attention);
      const after = g.add(middle, linear(cross, name("crossOutput"), hiddenSize, width, outputBias));
      return g.add(after, mlp(norm(after, layer.norm, name("mlpNorm")), layer.mlp, name));
    });
  });
  g.scope("head", () => {
    const hidden = spec.finalNorm === null ? x : norm(x, spec.finalNorm, "finalNorm");
    const flat = g.reshape(hidden, ["tokens", hiddenSize]);
    blocks.outputs(flat, asked, logitRows);
  });
}

/**
 * softmax(scale · q·k) · v over all of the source. Products and not the fused attention: keys that lie by channel are
 * read in a stream by one query, five times as fast at 8,192 of them, and many queries are no slower. Its scores
 * [H, tokens, source] are what keeps chunks small.
 */
function crossAttention(
  { g }: Blocks,
  query: Value,
  layer: number,
  { numHeads, headDim, scale }: AttentionSpec,
): Value {
  const key = g.state(`crossKey.${layer}`, "f32", [1, numHeads, headDim, "source"]);
  const value = g.state(`crossValue.${layer}`, "f32", [1, numHeads, "source", headDim]);
  const queries = g.transpose(g.reshape(query, [1, "tokens", numHeads, headDim]), [0, 2, 1, 3]);
  const scores = g.matmul(scale === 1 ? queries : g.multiply(queries, scale), key);
  const mixed = g.transpose(g.matmul(g.softmax(scores), value), [0, 2, 1, 3]);
  return g.reshape(mixed, [1, "tokens", numHeads * headDim]);
}

/** The decoder's bias inputs: one that all layers share, or one a layer. */
export function biasInputs({ layers, encoder }: ModelSpec): string[] {
  return encoder?.ownBias === "every-layer" ? layers.map((_, index) => `bias.${index}`) : ["bias.0"];
}
