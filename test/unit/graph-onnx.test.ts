import { describe, expect, test } from "vitest";
import {
  encodeOnnx,
  type Graph,
  type GraphBuilder,
  gradients,
  graphBuilder,
  lowerToOnnx,
  printOnnx,
  toOnnx,
  type Value,
} from "../../src/graph/index.ts";
import { fromNumbers } from "../../src/tensor/index.ts";

/** Protobuf read back without a schema: [field, wire type, value], nested bytes left as they are. */
function read(bytes: Uint8Array): [number, number | bigint | Uint8Array][] {
  const out: [number, number | bigint | Uint8Array][] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const [field, wire] = [key >> 3, key & 7];
    if (wire === 0) out.push([field, varint()]);
    else if (wire === 5) {
      out.push([field, new DataView(bytes.buffer, bytes.byteOffset + at).getFloat32(0, true)]);
      at += 4;
    } else {
      expect(wire).toBe(2);
      const length = Number(varint());
      out.push([field, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  expect(at).toBe(bytes.length);
  return out;
}
const text = (bytes: unknown): string => new TextDecoder().decode(bytes as Uint8Array);
const all = (message: ReturnType<typeof read>, field: number): unknown[] =>
  message.filter(([f]) => f === field).map(([, value]) => value);

describe("the protobuf writer", () => {
  const bytes = encodeOnnx({
    name: "g",
    opsets: { "": 23, "com.microsoft": 1 },
    irVersion: 11,
    inputs: [{ name: "x", dtype: "f32", shape: ["tokens", 300] }],
    outputs: [{ name: "y", dtype: "f32", shape: [] }],
    initializers: [
      { name: "w", dtype: "bf16", shape: [2], data: Uint8Array.of(1, 2, 3, 4) },
      { name: "e", dtype: "u8", shape: [7], data: { location: "dir/file", offset: 5_000_000_000, length: 7 } },
    ],
    nodes: [
      {
        op: "Op",
        domain: "com.microsoft",
        name: "n",
        inputs: ["x", "", "w"],
        outputs: ["y"],
        attributes: { axis: -1, alpha: { float: 1.5 }, mode: "tanh", perm: [0, 2, -3] },
      },
    ],
  });
  const model = read(bytes);
  const graph = read(all(model, 7)[0] as Uint8Array);

  test("writes versions and domains", () => {
    expect(all(model, 1)).toEqual([11n]);
    expect(
      all(model, 8)
        .map((opset) => read(opset as Uint8Array))
        .map((opset) => [text(all(opset, 1)[0]), all(opset, 2)]),
    ).toEqual([
      ["", [23n]],
      ["com.microsoft", [1n]],
    ]);
  });

  test("writes nodes: absent inputs are empty names, negative integers ten bytes of two's complement", () => {
    const node = read(all(graph, 1)[0] as Uint8Array);
    expect([all(node, 1).map(text), all(node, 2).map(text), text(all(node, 4)[0]), text(all(node, 7)[0])]).toEqual([
      ["x", "", "w"],
      ["y"],
      "Op",
      "com.microsoft",
    ]);
    const attributes = all(node, 5).map((attribute) => read(attribute as Uint8Array));
    const [axis, alpha, mode, perm] = attributes;
    expect([all(axis!, 3), all(axis!, 20)]).toEqual([[2n ** 64n - 1n], [2n]]);
    expect([all(alpha!, 2), all(alpha!, 20)]).toEqual([[1.5], [1n]]);
    expect([all(mode!, 4).map(text), all(mode!, 20)]).toEqual([["tanh"], [3n]]);
    expect([all(perm!, 8), all(perm!, 20)]).toEqual([[0n, 2n, 2n ** 64n - 3n], [7n]]);
  });

  test("writes tensors: raw bytes inside, or where they are outside", () => {
    const [w, e] = all(graph, 5).map((tensor) => read(tensor as Uint8Array));
    expect([all(w!, 1), all(w!, 2), text(all(w!, 8)[0]), [...(all(w!, 9)[0] as Uint8Array)]]).toEqual([
      [2n],
      [16n],
      "w",
      [1, 2, 3, 4],
    ]);
    const entries = all(e!, 13).map((entry) => read(entry as Uint8Array).map(([, value]) => text(value)));
    expect([entries, all(e!, 14), all(e!, 9)]).toEqual([
      [
        ["location", "dir/file"],
        ["offset", "5000000000"],
        ["length", "7"],
      ],
      [1n],
      [],
    ]);
  });

  test("writes shapes: numbers and names", () => {
    const x = read(all(graph, 11)[0] as Uint8Array);
    const tensorType = read(all(read(all(x, 2)[0] as Uint8Array), 1)[0] as Uint8Array);
    const dims = all(read(all(tensorType, 2)[0] as Uint8Array), 1).map((dim) => read(dim as Uint8Array));
    expect([all(tensorType, 1), all(dims[0]!, 2).map(text), all(dims[1]!, 1)]).toEqual([[1n], ["tokens"], [300n]]);
  });
});

function attention(options: { headDim?: number; batch?: number; bias?: boolean; read?: boolean } = {}): Graph {
  const { headDim = 16, batch = 1 } = options;
  const g = graphBuilder("attention");
  const q = g.input("q", "f32", [batch, "tokens", 2 * headDim]);
  const [k, v] = [g.input("k", "f32", [batch, "tokens", headDim]), g.input("v", "f32", [batch, "tokens", headDim])];
  const pastLength = g.input("past", "i64", []);
  const [cos, sin] = [g.input("cos", "f32", ["rows", 8]), g.input("sin", "f32", ["rows", 8])];
  const bias = options.bias ? g.input("bias", "f32", [1, 2, "tokens", "total"]) : undefined;
  const pastKey = g.state("key", "f32", [batch, 1, "capacity", headDim]);
  const pastValue = g.state("value", "f32", [batch, 1, "capacity", headDim]);
  const out = g.scope("layers[0]", () =>
    g.attention(
      { query: q, key: k, value: v, pastKey, pastValue, pastLength, cos, sin, bias },
      { numHeads: 2, numKeyValueHeads: 1, scale: 0.25, window: 9, softcap: 5, layout: "interleaved" },
    ),
  );
  g.assignRows(pastKey, out.newKey, 2, pastLength);
  g.assignRows(pastValue, out.newValue, 2, pastLength);
  g.output("out", out.output);
  if (options.read) g.output("key rows", out.newKey);
  return g.build();
}

describe("attention", () => {
  test("becomes one GroupQueryAttention that rotates, caps and windows", () => {
    expect(printOnnx(lowerToOnnx(attention()))).toMatchInlineSnapshot(`
      "onnx attention
        input q: f32[1, tokens, 32]
        input k: f32[1, tokens, 16]
        input v: f32[1, tokens, 16]
        input past: i64[]
        input cos: f32[rows, 8]
        input sin: f32[rows, 8]
        input key: f32[1, 1, capacity, 16]
        input value: f32[1, 1, capacity, 16]
        layers[0]/Reshape_1 = Reshape(past, constant_0)
        layers[0]/Shape_3 = Shape(q) {start=1 end=2}
        layers[0]/Add_4 = Add(layers[0]/Reshape_1, layers[0]/Shape_3)
        layers[0]/Squeeze_6 = Squeeze(layers[0]/Add_4, constant_5)
        layers[0]/Cast_7 = Cast(layers[0]/Squeeze_6) {to=6}
        layers[0]/Sub_8 = Sub(layers[0]/Add_4, constant_0)
        layers[0]/Cast_9 = Cast(layers[0]/Sub_8) {to=6}
        layers[0]/GroupQueryAttention_10:0, layers[0]/GroupQueryAttention_10:1, layers[0]/GroupQueryAttention_10:2 = com.microsoft.GroupQueryAttention(q, k, v, key, value, layers[0]/Cast_9, layers[0]/Cast_7, cos, sin) {num_heads=2 kv_num_heads=1 scale=0.25f causal=1 local_window_size=9 softcap=5f do_rotary=1 rotary_interleaved=1}
        layers[0]/Slice_12 = Slice(layers[0]/GroupQueryAttention_10:1, layers[0]/Reshape_1, layers[0]/Add_4, constant_11)
        layers[0]/Slice_13 = Slice(layers[0]/GroupQueryAttention_10:2, layers[0]/Reshape_1, layers[0]/Add_4, constant_11)
        Identity_14 = Identity(past)
        output layers[0]/GroupQueryAttention_10:0: f32[1, tokens, 32]
        output layers[0]/Slice_12: f32[1, 1, tokens, 16]
        output Identity_14: i64[]
        output layers[0]/Slice_13: f32[1, 1, tokens, 16]
      "
    `);
  });

  test("writes its cache in place when outputs have buffers of their own, unless somebody else reads the rows", () => {
    const own = lowerToOnnx(attention(), { ownBuffers: true });
    expect([...own.updates].map(([name, { kind }]) => [name, kind])).toEqual([
      ["key", "inPlace"],
      ["value", "inPlace"],
    ]);
    expect(own.model.outputs[0]!.name).toBe(own.stop);
    expect(own.model.nodes.some(({ op }) => op === "Slice")).toBe(false);
    const shared = lowerToOnnx(attention({ read: true }), { ownBuffers: true });
    expect([...shared.updates.values()].map(({ kind }) => kind)).toEqual(["rows", "rows"]);
    expect(lowerToOnnx(attention()).stop).toBeUndefined();
  });

  const kernels = (graph: Graph, target?: "cpu" | "webgpu"): string[] => {
    const ops = lowerToOnnx(graph, target === undefined ? {} : { target }).model.nodes.map(({ op }) => op);
    return ops.filter((op) => ["GroupQueryAttention", "RotaryEmbedding", "Softmax"].includes(op));
  };

  test("rotates before the kernel when heads are no multiple of 16, and takes a bias along", () => {
    expect(kernels(attention())).toEqual(["GroupQueryAttention"]);
    expect(kernels(attention({ headDim: 24 }))).toEqual(["RotaryEmbedding", "RotaryEmbedding", "GroupQueryAttention"]);
    expect(kernels(attention({ bias: true }))).toEqual(["GroupQueryAttention"]);
  });

  test("falls back to products and a softmax when the kernel cannot", () => {
    expect(kernels(attention({ headDim: 20 }))).toEqual(["Softmax"]);
    expect(kernels(attention({ batch: 2 }))).toEqual(["Softmax"]);
    const g = graphBuilder();
    const q = g.input("q", "f32", [1, "tokens", 32]);
    g.output("out", g.attention({ query: q, key: q, value: q }, { numHeads: 2, scale: 1, causal: false }).output);
    const graph = g.build();
    expect([kernels(graph, "cpu"), kernels(graph, "webgpu")]).toEqual([["GroupQueryAttention"], ["Softmax"]]);
  });
});

test("causal attention over whole sequences of a known length is made of blocks, but on WebGPU", () => {
  const kernels = (length: number | string, causal: boolean, target: "cpu" | "wasm" | "webgpu"): string[] => {
    const g = graphBuilder();
    const x = g.input("x", "f32", [2, length, 32]);
    g.output("out", g.attention({ query: x, key: x, value: x }, { numHeads: 2, scale: 1, causal }).output);
    const ops = lowerToOnnx(g.build(), { target }).model.nodes.map(({ op }) => op);
    return ops.filter((op) => ["GroupQueryAttention", "Softmax"].includes(op));
  };
  for (const target of ["cpu", "wasm"] as const) {
    // 150 rows: blocks of 64, 64 and 22.
    expect(kernels(150, true, target)).toEqual(["Softmax", "Softmax", "Softmax"]);
    expect(kernels("tokens", true, target)).toEqual(["GroupQueryAttention"]);
    expect(kernels(150, false, target)).toEqual(["GroupQueryAttention"]);
  }
  expect(kernels(150, true, "webgpu")).toEqual(["GroupQueryAttention"]);
});

test("what layers share is computed once", () => {
  const g = graphBuilder("shared");
  let x = g.input("x", "f32", ["batch", "tokens", 32]);
  for (let i = 0; i < 3; i++) x = g.attention({ query: x, key: x, value: x }, { numHeads: 2, scale: 1 }).output;
  g.output("x", x);
  const ops = lowerToOnnx(g.build()).model.nodes.map(({ op }) => op);
  expect(ops.filter((op) => op === "GroupQueryAttention")).toHaveLength(3);
  expect(ops.filter((op) => op === "Shape")).toHaveLength(2);
  expect(ops.filter((op) => op === "Expand")).toHaveLength(1);
});

test("shapes that a Reshape can work out cost no nodes; only products of two unknowns are computed", () => {
  const g = graphBuilder("reshapes");
  const x = g.input("x", "f32", ["batch", "tokens", 32]);
  g.output("heads", g.reshape(x, ["batch", "tokens", 2, 16]));
  g.output("flat", g.reshape(x, ["batch*tokens", 32]));
  expect(lowerToOnnx(g.build()).model.nodes.map(({ op }) => op)).toEqual(["Reshape", "Reshape"]);
});

test("a weight that is missing is named; bytes go inside the file", () => {
  const g = graphBuilder();
  g.output("y", g.add(g.input("x", "f32", [2]), g.parameter("layers.0.w", "f32", [2])));
  const graph = g.build();
  expect(() => toOnnx(graph)).toThrow("onnx: expected weights for the parameter layers.0.w, got none");
  const data = new Uint8Array(fromNumbers("f32", [2], [1.5, 2.5]).data.buffer);
  const file = toOnnx(graph, { weights: new Map([["layers.0.w", data]]) });
  expect(Buffer.from(file).includes(Buffer.from(data))).toBe(true);
});

test("on WebGPU no Split has more parts than a shader has buffers, whatever a graph asks for", () => {
  const sizes = Array.from({ length: 60 }, (_, i) => 1 + (i % 3));
  const g = graphBuilder("pieces");
  const x = g.input("x", "f32", [sizes.reduce((sum, size) => sum + size)]);
  g.split(x, sizes, 0).forEach((part, i) => void g.output(`part${i}`, part));
  const graph = g.build();
  const splits = (target: "cpu" | "webgpu") =>
    lowerToOnnx(graph, { target })
      .model.nodes.filter(({ op }) => op === "Split")
      .map(({ outputs }) => outputs.length);
  expect(splits("cpu")).toEqual([60]);
  expect(Math.max(...splits("webgpu"))).toBeLessThanOrEqual(7);
  const parts = lowerToOnnx(graph, { target: "webgpu" }).outputs;
  expect(new Set(parts.values()).size).toBe(60);
});

describe("the gradient of a norm", () => {
  const lowered = (): string[] => {
    const g = graphBuilder("norm");
    const x = g.input("x", "f32", [3, 8]);
    const y = g.rmsNorm(g.add(x, g.matmul(x, g.input("w", "f32", [8, 8]))), undefined, 1e-5);
    g.output("dx", gradients(g, g.sum(g.multiply(y, g.input("dy", "f32", [3, 8])), [0, 1]), [x])[0]!);
    return lowerToOnnx(g.build()).model.nodes.map(({ op }) => op);
  };

  test("takes 1/√(mean(x²) + ε) from the norm itself, and the sum before it from the product", () => {
    const ops = lowered();
    expect(ops.filter((op) => op === "SimplifiedLayerNormalization")).toHaveLength(1);
    expect(ops.filter((op) => op === "Gemm")).toHaveLength(2);
    expect(ops).not.toContain("SkipSimplifiedLayerNormalization");
    expect(ops).not.toContain("Sqrt");
  });

  test("works it out where the epsilon is another, the mean is of something else or not kept", () => {
    const others: ((g: GraphBuilder, x: Value) => Value)[] = [
      (g, x) => g.add(g.mean(g.multiply(x, x), -1, { keepDims: true }), 1e-6),
      (g, x) => g.add(g.mean(g.multiply(x, g.negate(x)), -1, { keepDims: true }), 1e-5),
      (g, x) => g.add(g.mean(g.multiply(x, x), 0, { keepDims: true }), 1e-5),
      (g, x) => g.add(g.mean(g.multiply(x, x), -1), 1e-5),
    ];
    for (const other of others) {
      const g = graphBuilder("norm");
      const x = g.input("x", "f32", [3, 8]);
      g.output("y", g.rmsNorm(x, undefined, 1e-5));
      g.output("r", g.rsqrt(other(g, x)));
      expect(lowerToOnnx(g.build()).model.nodes.map(({ op }) => op)).toContain("Sqrt");
    }
  });
});
