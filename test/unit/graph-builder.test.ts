import { describe, expect, test } from "vitest";
import {
  type GraphBuilder,
  gradientRule,
  graphBuilder,
  nearestName,
  printGraph,
  UnsupportedOpError,
  type Value,
} from "../../src/graph/index.ts";
import { fromNumbers } from "../../src/tensor/index.ts";

/** A layer of a small model, as a family would build it. */
function layer(g: GraphBuilder, x: Value, cos: Value, sin: Value, past: Value, index: number): Value {
  return g.scope(`layers[${index}]`, () => {
    const weight = (name: string, shape: readonly number[]): Value =>
      g.parameter(`layers.${index}.${name}`, "f32", shape);
    const attended = g.scope("attention", () => {
      const normed = g.rmsNorm(x, weight("norm.weight", [32]), 1e-5);
      const packed = g.matmul(normed, weight("qkv.weight", [64, 32]), { transposeB: true });
      const pastKey = g.state(`layers.${index}.key`, "f32", [1, 1, "capacity", 16]);
      const pastValue = g.state(`layers.${index}.value`, "f32", [1, 1, "capacity", 16]);
      const { output, newKey, newValue } = g.attention(
        { query: packed, pastKey, pastValue, pastLength: past, cos, sin },
        { numHeads: 2, numKeyValueHeads: 1, scale: 0.25, window: 8 },
      );
      g.assignRows(pastKey, newKey, 2, past);
      g.assignRows(pastValue, newValue, 2, past);
      return g.add(x, g.matmul(output, weight("o.weight", [32, 32]), { transposeB: true }));
    });
    return g.scope("mlp", () => {
      const [gate, up] = g.split(g.matmul(attended, weight("gate_up", [32, 128])), 2);
      return g.add(attended, g.matmul(g.multiply(g.silu(gate!), up!), weight("down", [64, 32])));
    });
  });
}

function smallModel() {
  const g = graphBuilder("small");
  const ids = g.input("ids", "i64", [1, "tokens"]);
  const targets = g.input("targets", "i64", [1, "tokens"]);
  const past = g.input("past", "i64", []);
  const [cos, sin] = [g.input("cos", "f32", ["positions", 8]), g.input("sin", "f32", ["positions", 8])];
  const embedding = g.parameter("embedding", "bf16", [100, 32]);
  let x = g.multiply(g.cast(g.gather(embedding, ids), "f32"), Math.sqrt(32));
  x = layer(g, x, cos, sin, past, 0);
  const logits = g.scope("head", () => g.matmul(x, g.cast(embedding, "f32"), { transposeB: true }));
  g.exp(logits); // never used
  g.output("loss", g.crossEntropy(logits, targets));
  return g.build();
}

test("a graph prints as lines with names, shapes, dtypes, and nothing that is not used", () => {
  expect(printGraph(smallModel())).toMatchInlineSnapshot(`
    "graph small
      input ids: i64[1, tokens]
      input targets: i64[1, tokens]
      input past: i64[]
      input cos: f32[positions, 8]
      input sin: f32[positions, 8]
      parameter embedding: bf16[100, 32]
      parameter layers.0.norm.weight: f32[32]
      parameter layers.0.qkv.weight: f32[64, 32]
      parameter layers.0.o.weight: f32[32, 32]
      parameter layers.0.gate_up: f32[32, 128]
      parameter layers.0.down: f32[64, 32]
      state layers.0.key: f32[1, 1, capacity, 16]
      state layers.0.value: f32[1, 1, capacity, 16]
      constant constant: f32[] = 5.656854152679443
      gather: bf16[1, tokens, 32] = gather(embedding, ids) {axis=0}
      cast: f32[1, tokens, 32] = cast(gather) {dtype=f32}
      multiply: f32[1, tokens, 32] = multiply(cast, constant)
      layers[0]/attention/rmsNorm: f32[1, tokens, 32] = rmsNorm(multiply, layers.0.norm.weight) {epsilon=0.00001}
      layers[0]/attention/matmul: f32[1, tokens, 64] = matmul(layers[0]/attention/rmsNorm, layers.0.qkv.weight) {transposeA=false transposeB=true}
      layers[0]/attention/attention: f32[1, tokens, 32], layers[0]/attention/attention#2: f32[1, 1, tokens, 16], layers[0]/attention/attention#3: f32[1, 1, tokens, 16] = attention(query=layers[0]/attention/matmul, pastKey=layers.0.key, pastValue=layers.0.value, pastLength=past, cos=cos, sin=sin) {numHeads=2 numKeyValueHeads=1 scale=0.25 softcap=0 causal=true window=8 layout=half}
      layers[0]/attention/matmul#2: f32[1, tokens, 32] = matmul(layers[0]/attention/attention, layers.0.o.weight) {transposeA=false transposeB=true}
      layers[0]/attention/add: f32[1, tokens, 32] = add(multiply, layers[0]/attention/matmul#2)
      layers[0]/mlp/matmul: f32[1, tokens, 128] = matmul(layers[0]/attention/add, layers.0.gate_up) {transposeA=false transposeB=false}
      layers[0]/mlp/split: f32[1, tokens, 64], layers[0]/mlp/split#2: f32[1, tokens, 64] = split(layers[0]/mlp/matmul) {axis=2 sizes=[64, 64]}
      layers[0]/mlp/silu: f32[1, tokens, 64] = silu(layers[0]/mlp/split)
      layers[0]/mlp/multiply: f32[1, tokens, 64] = multiply(layers[0]/mlp/silu, layers[0]/mlp/split#2)
      layers[0]/mlp/matmul#2: f32[1, tokens, 32] = matmul(layers[0]/mlp/multiply, layers.0.down) {transposeA=false transposeB=false}
      layers[0]/mlp/add: f32[1, tokens, 32] = add(layers[0]/attention/add, layers[0]/mlp/matmul#2)
      head/cast: f32[100, 32] = cast(embedding) {dtype=f32}
      head/matmul: f32[1, tokens, 100] = matmul(layers[0]/mlp/add, head/cast) {transposeA=false transposeB=true}
      crossEntropy: f32[1, tokens] = crossEntropy(head/matmul, targets)
      output loss = crossEntropy
      update layers.0.key rows from past along 2 = layers[0]/attention/attention#2
      update layers.0.value rows from past along 2 = layers[0]/attention/attention#3
    "
  `);
});

test("inputs stay declared when nothing reads them, parameters and constants go", () => {
  const g = graphBuilder();
  g.input("unused", "f32", ["n"]);
  g.parameter("w", "f32", [3]);
  g.scalar("f32", 3);
  g.output("y", g.exp(g.input("x", "f32", ["n"])));
  const graph = g.build();
  expect(graph.inputs.map((value) => value.name)).toEqual(["unused", "x"]);
  expect([graph.parameters, graph.constants]).toEqual([[], []]);
});

describe("errors carry the path", () => {
  const build = (body: (g: GraphBuilder, x: Value) => unknown): (() => unknown) => {
    const g = graphBuilder();
    const x = g.input("x", "f32", ["tokens", 64]);
    return () => g.scope("layers[3]", () => g.scope("attention", () => body(g, x)));
  };

  test.each<[string, (g: GraphBuilder, x: Value) => unknown, string]>([
    [
      "inner sizes",
      (g, x) => g.matmul(x, g.parameter("w", "f32", [32, 8])),
      "layers[3] > attention > matmul: expected inner sizes that agree, got 64 and 32 of f32[tokens, 64] and f32[32, 8]",
    ],
    [
      "dtypes",
      (g, x) => g.add(x, g.parameter("w", "f16", [64])),
      "layers[3] > attention > add: expected one dtype on both sides, got f32[tokens, 64] and f16[64]; cast one",
    ],
    [
      "broadcasting",
      (g, x) => g.add(x, g.parameter("w", "f32", [32])),
      "layers[3] > attention > add: expected sizes that agree or are 1, got [tokens, 64] and [32]",
    ],
    [
      "elements",
      (g, x) => g.reshape(x, ["tokens", 4, 15]),
      "layers[3] > attention > reshape: expected a shape of 64*tokens elements for f32[tokens, 64], got [tokens, 4, 15] of 60*tokens",
    ],
    ["axes", (g, x) => g.softmax(x, 2), "layers[3] > attention > softmax: axis: expected an axis in -2 .. 1, got 2"],
    [
      "table rows",
      (g, x) => {
        const heads = g.reshape(x, [1, "tokens", 64]);
        const cos = g.numbers("f32", [2, 3], new Array(6).fill(1));
        return g.scope("rope", () => g.rotary(heads, cos, cos, { numHeads: 4, layout: "half" }));
      },
      "layers[3] > attention > rope > rotary: expected cos to have a row for each of tokens tokens, got f32[2, 3]",
    ],
    [
      "heads",
      (g, x) => {
        const q = g.reshape(x, [1, "tokens", 64]);
        return g.attention({ query: q, key: q, value: q }, { numHeads: 4, numKeyValueHeads: 3, scale: 1 });
      },
      "layers[3] > attention > attention: expected numHeads to be a multiple of numKeyValueHeads, got 4 and 3",
    ],
    [
      "a window without a mask",
      (g, x) => {
        const q = g.reshape(x, [1, "tokens", 64]);
        return g.attention({ query: q, key: q, value: q }, { numHeads: 4, scale: 1, causal: false, window: 3 });
      },
      "layers[3] > attention > attention: expected a window of at least 1 key, with causal attention, got 3",
    ],
    [
      "a cache of other heads",
      (g, x) => {
        const q = g.reshape(x, [1, "tokens", 64]);
        const pastKey = g.state("k", "f32", [1, 2, "capacity", 16]);
        return g.attention({ query: q, key: q, value: q, pastKey, pastValue: pastKey }, { numHeads: 4, scale: 1 });
      },
      "layers[3] > attention > attention: expected pastKey to be [1, 4, capacity, 16], got f32[1, 2, capacity, 16]",
    ],
    [
      "a missing input",
      (g, x) => g.apply("crossEntropy", { logits: x } as never, {}),
      "layers[3] > attention > crossEntropy: expected an input targets, got none",
    ],
    [
      "an unknown input",
      (g, x) => g.apply("exp", { x, y: x } as never, {}),
      "layers[3] > attention > exp: expected inputs x, got y",
    ],
    [
      "a value of another graph",
      (g) => g.exp(graphBuilder().input("x", "f32", [1])),
      "layers[3] > attention > exp: expected x to be a value of this graph, got one of another builder",
    ],
    [
      "a name twice",
      (g) => g.input("x", "f32", [1]),
      'layers[3] > attention > input: expected a name that is not taken, got "x"',
    ],
    [
      "a parameter of two shapes",
      (g) => [g.parameter("w", "f32", [1]), g.parameter("w", "f32", [2])],
      'layers[3] > attention > parameter: expected "w" to stay f32[1], got f32[2]',
    ],
  ])("%s", (_, body, message) => {
    expect(build(body)).toThrow(message);
  });

  test("after an error the scope is left", () => {
    const g = graphBuilder();
    expect(() => g.scope("a", () => g.scope("b", () => g.apply("exp", {} as never, {})))).toThrow(/^a > b > exp/);
    expect(() => g.apply("exp", {} as never, {})).toThrow(/^exp/);
  });
});

test("a size that no input binds is an error of build", () => {
  const g = graphBuilder();
  const x = g.input("x", "f32", ["2*tokens"]);
  g.output("y", g.exp(x));
  expect(() => g.build()).toThrow('build: expected an input or state with an axis "tokens", which exp has');
  expect(() => graphBuilder().build()).toThrow(/expected at least one output/);
});

test("a number becomes a constant of the other side's dtype, and equal ones are one; 0 and -0 are two", () => {
  const g = graphBuilder();
  const x = g.input("x", "f16", [2]);
  const n = g.input("n", "i64", [2]);
  g.output("y", g.add(g.multiply(x, 0.5), g.multiply(x, 0.5)));
  g.output("z", g.add(n, 1));
  g.output("w", g.add(g.add(x, 0), -0));
  expect(g.build().constants.map(({ value }) => `${value.dtype}[${value.shape}]`)).toEqual([
    "f16[]",
    "i64[]",
    "f16[]",
    "f16[]",
  ]);
  expect(() => g.add(n, 0.5)).toThrow(/integers/);
});

test("reshape works out one size", () => {
  const g = graphBuilder();
  const x = g.input("x", "f32", ["batch", "tokens", 64]);
  expect(g.reshape(x, ["batch", "tokens", -1, 16]).shape).toEqual(["batch", "tokens", 4, 16]);
  expect(g.reshape(x, [-1, 64]).shape).toEqual(["batch*tokens", 64]);
  expect(() => g.reshape(x, [-1, 48])).toThrow(/expected sizes that divide/);
});

test("concatenation adds symbolic sizes, slicing subtracts them", () => {
  const g = graphBuilder();
  const [a, b] = [g.input("a", "f32", ["past", 4]), g.input("b", "f32", ["tokens", 4])];
  const all = g.concat([a, b], 0);
  expect(all.shape).toEqual(["past+tokens", 4]);
  expect(g.slice(all, 0, 1, "past+tokens").shape).toEqual(["past+tokens-1", 4]);
  expect(g.pad(b, 0, 1, 1).shape).toEqual(["tokens+2", 4]);
});

test("a state has one update, of its own shape", () => {
  const g = graphBuilder();
  const state = g.state("s", "f32", [3]);
  expect(() => g.assign(state, g.numbers("f32", [2], [1, 2]))).toThrow(/expected f32\[3\] for s, got f32\[2\]/);
  g.assign(state, g.add(state, 1));
  expect(() => g.assign(state, state)).toThrow(/one update a state/);
  expect(() => g.assign(g.input("x", "f32", [3]), state)).toThrow(/expected a state, got x/);
});

test("an op without a gradient rule says which, and where", () => {
  const ask = () => gradientRule("attentionGradient", "layers[0]");
  expect(ask).toThrow(UnsupportedOpError);
  expect(ask).toThrow(/^layers\[0\] > attentionGradient: expected an op with a gradient rule/);
});

test("the nearest name is within a few edits, or none", () => {
  expect(nearestName("logits", ["loss", "logit", "ids"])).toBe("logit");
  expect(nearestName("logits", ["embedding"])).toBeUndefined();
});

test("constants print their numbers, long ones shortened", () => {
  const g = graphBuilder("constants");
  g.output("y", g.constant(fromNumbers("i64", [12], [...Array(12).keys()])));
  expect(printGraph(g.build())).toContain("constant: i64[12] = 0, 1, 2, 3, 4, 5, 6, 7, …");
});
