// The gradient rule of every op: against central differences on the reference kernels in float64, over the cases of
// ops.ts, and against torch (test/fixtures/gradients.json, made by reference/gradients.py), which also says what happens
// at kinks. ONNX Runtime computes the same gradients.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import {
  type Attributes,
  blockAttention,
  blockAttentionGradient,
  evaluateShape,
  type Graph,
  gradientRule,
  gradients,
  graphBuilder,
  type Inputs,
  type OpName,
  opNames,
  UnsupportedOpError,
  type Value,
} from "../../src/graph/index.ts";
import {
  type Dtype,
  elementCount,
  fromNumbers,
  isFloat,
  type Random,
  random,
  type Tensor,
  tensor,
  toNumbers,
} from "../../src/tensor/index.ts";
import { caseTensors, type OpCase, opCases } from "./ops.ts";

interface Program {
  readonly graph: Graph;
  readonly feeds: Record<string, Tensor>;
  /** Inputs whose gradients are outputs, as "d NAME". */
  readonly wanted: readonly string[];
}

/** A case with loss = Σ outputs ∘ random numbers, and the loss's gradients. */
function lossProgram(
  opCase: OpCase,
  seed: number,
  float: "f32" | "f64",
  only: (name: string) => boolean = () => true,
): Program {
  const g = graphBuilder("loss");
  const given = caseTensors(opCase, seed);
  const feeds: Record<string, Tensor> = {};
  const values: Record<string, Value> = {};
  for (const [name, spec] of Object.entries(opCase.inputs)) {
    const dtype = isFloat(spec.dtype) ? float : spec.dtype;
    feeds[name] = fromNumbers(dtype, given[name]!.shape, toNumbers(given[name]!));
    values[name] = g.input(name, dtype, spec.shape);
  }
  const built = opCase.build(g, values);
  const outputs = (Array.isArray(built) ? built : [built]) as Value[];
  const stream = random(seed + 1);
  let loss = g.scalar(float, 0);
  outputs.forEach((output, i) => {
    if (output.dtype !== float) return;
    const shape = evaluateShape(output.shape, new Map(Object.entries(opCase.sizes ?? {})));
    const weights = g.input(`weights${i}`, float, output.shape);
    feeds[`weights${i}`] = fromNumbers(float, shape, normals(stream, elementCount(shape)));
    const axes = output.shape.map((_, axis) => axis);
    const product = g.multiply(output, weights);
    loss = g.add(loss, axes.length === 0 ? product : g.sum(product, axes));
  });
  g.output("loss", loss);
  const wanted = Object.keys(values).filter((name) => values[name]!.dtype === float && only(name));
  const found = gradients(
    g,
    loss,
    wanted.map((name) => values[name]!),
  );
  wanted.forEach((name, i) => void g.output(`d ${name}`, found[i]!));
  return { graph: g.build({ boundElsewhere: true }), feeds, wanted };
}

function normals(stream: Random, count: number): Float64Array {
  return Float64Array.from({ length: count }, () => stream.normal());
}

const STEP = 1e-5;

/** Along random directions, and along some single elements: each moved in proportion to its size. */
async function expectCentralDifferences({ graph, feeds, wanted }: Program, seed: number): Promise<void> {
  await using session = await referenceBackend.load(graph);
  const analytic = await session.run(feeds);
  const lossAt = async (name: string, data: Float64Array): Promise<number> => {
    const moved = { ...feeds, [name]: tensor("f64", feeds[name]!.shape, data) };
    return toNumbers((await session.run(moved, ["loss"])).loss!)[0]!;
  };
  const stream = random(seed);
  for (const name of wanted) {
    const x = toNumbers(feeds[name]!) as Float64Array;
    const dx = toNumbers(analytic[`d ${name}`]!);
    expect(analytic[`d ${name}`]!.shape).toEqual(feeds[name]!.shape);
    const size = (i: number): number => (Number.isFinite(x[i]!) ? Math.max(Math.abs(x[i]!), 0.01) : 0);
    const directions = [normals(stream, x.length).map((v, i) => v * size(i))];
    for (let k = 0; k < Math.min(4, x.length); k++) {
      const at = stream.integer(x.length);
      directions.push(new Float64Array(x.length).map((_, i) => (i === at ? size(i) : 0)));
    }
    for (const direction of directions) {
      const moved = (step: number): Float64Array => x.map((value, i) => value + step * direction[i]!);
      const numeric = ((await lossAt(name, moved(STEP))) - (await lossAt(name, moved(-STEP)))) / (2 * STEP);
      const expected = direction.reduce((sum, v, i) => sum + (v === 0 ? 0 : v * dx[i]!), 0);
      expect(Math.abs(numeric - expected) / Math.max(1, Math.abs(expected)), `d ${name}`).toBeLessThan(2e-7);
    }
  }
}

/** What differences cannot check: casts to narrower floats round, losses of minus infinity have none, and long
 *  attention takes the plain kernels minutes. */
function hopeless({ graph }: Program, { name, sizes }: OpCase): boolean {
  if (/minus infinity/.test(name) || (sizes?.tokens ?? 0) > 100) return true;
  return graph.nodes.some(
    (node) => node.op === "cast" && isFloat(node.attributes.dtype) && node.attributes.dtype !== "f64",
  );
}

describe("gradients agree with central differences in float64", () => {
  const checked = new Set<OpName>();
  for (const op of opNames) {
    if (op === "attentionGradient") continue;
    opCases[op].forEach((opCase, i) => {
      const programs: [string, Program][] = [["", lossProgram(opCase, 500 + i, "f64")]];
      const tables = (name: string): boolean => name !== "cos" && name !== "sin";
      if (op === "attention" || op === "rotary") {
        programs.push([", tables fixed", lossProgram(opCase, 500 + i, "f64", tables)]);
      }
      for (const [which, program] of programs) {
        const floats = program.graph.nodes.some((node) => node.op === op && isFloat(node.outputs[0]!.dtype));
        if (!floats || program.wanted.length === 0 || hopeless(program, opCase)) continue;
        checked.add(op);
        test(`${op}: ${opCase.name}${which}`, () => expectCentralDifferences(program, 900 + i));
      }
    });
  }

  test("every op is checked, or its rule says why no gradient passes", () => {
    const rest = opNames.filter((op) => !checked.has(op));
    // cast is checked on its own below.
    expect(rest.filter((op) => op !== "attentionGradient" && gradientRule(op) !== undefined)).toEqual(["cast"]);
    expect(() => gradientRule("attentionGradient")).toThrow(UnsupportedOpError);
    for (const op of ["floor", "sign"] as const) expect(gradientRule(op)).toBeUndefined();
  });

  test("attention over several blocks of queries, with a bias, groups and a window", () => {
    const opCase: OpCase = {
      name: "blocks",
      inputs: {
        query: { dtype: "f32", shape: [1, 70, 64] },
        bias: { dtype: "f32", shape: [1, 2, 70, 70] },
        cos: { dtype: "f32", shape: [70, 4], fill: (_, j) => Math.cos(j) },
        sin: { dtype: "f32", shape: [70, 4], fill: (_, j) => Math.sin(j) },
      },
      build: (g, x) => {
        const { query, cos, sin, bias } = x as Record<"query" | "cos" | "sin" | "bias", Value>;
        const options = { numHeads: 2, numKeyValueHeads: 1, scale: 0.3, window: 40 };
        return g.attention({ query, cos, sin, bias }, options).output;
      },
    };
    return expectCentralDifferences(
      lossProgram(opCase, 7, "f64", (name) => name === "query" || name === "bias"),
      8,
    );
  });
});

interface FixtureTensor {
  readonly dtype: Dtype;
  readonly shape: number[];
  readonly values: number[];
}
interface Fixture {
  readonly op: OpName;
  readonly name: string;
  readonly attributes: object;
  readonly inputs: Record<string, FixtureTensor | FixtureTensor[]>;
  readonly outputGradients: (FixtureTensor | null)[];
  readonly gradients: Record<string, FixtureTensor | FixtureTensor[]>;
}
const fixtures = JSON.parse(readFileSync(new URL("../fixtures/gradients.json", import.meta.url), "utf8")) as {
  cases: Fixture[];
};

/** A fixture's op, loss = Σ outputs ∘ their gradients, and the loss's gradients of the inputs that the fixture has. */
function fixtureProgram(fixture: Fixture, float: "f32" | "f64"): { graph: Graph; feeds: Record<string, Tensor> } {
  const g = graphBuilder(`${fixture.op}: ${fixture.name}`);
  const feeds: Record<string, Tensor> = {};
  const declare = (name: string, { dtype, shape, values }: FixtureTensor): Value => {
    const type = dtype === "f32" ? float : dtype;
    feeds[name] = fromNumbers(
      type,
      shape,
      values.map((v) => (dtype === "f32" ? Math.fround(Number(v)) : Number(v))),
    );
    return g.input(name, type, shape);
  };
  const inputs: Record<string, Value | Value[]> = {};
  for (const [name, given] of Object.entries(fixture.inputs)) {
    inputs[name] = Array.isArray(given) ? given.map((x, i) => declare(`${name}${i}`, x)) : declare(name, given);
  }
  const outputs = g.apply(
    fixture.op,
    inputs as unknown as Inputs<OpName, Value>,
    fixture.attributes as Attributes[OpName],
  );
  let loss = g.scalar(float, 0);
  fixture.outputGradients.forEach((given, i) => {
    if (given === null) return;
    const product = g.multiply(outputs[i]!, declare(`outputGradient${i}`, given));
    const axes = product.shape.map((_, axis) => axis);
    loss = g.add(loss, axes.length === 0 ? product : g.sum(product, axes));
  });
  const names = Object.keys(fixture.gradients);
  const wanted = names.flatMap((name) => inputs[name]!);
  gradients(g, loss, wanted).forEach((value, i) => void g.output(`d ${wanted[i]!.name}`, value));
  return { graph: g.build(), feeds };
}

/** Largest |a − b| / max(1, |b|). */
function error(got: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(got.length).toBe(expected.length);
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    const difference = Math.abs(got[i]! - expected[i]!) / Math.max(1, Math.abs(expected[i]!));
    worst = Math.max(worst, Number.isNaN(difference) ? Infinity : difference);
  }
  return worst;
}

async function expectFixture(fixture: Fixture, float: "f32" | "f64", tolerance: number): Promise<void> {
  const { graph, feeds } = fixtureProgram(fixture, float);
  const backend = float === "f64" ? referenceBackend : onnxRuntimeBackend({ provider: "node" });
  await using session = await backend.load(graph);
  const got = await session.run(feeds);
  for (const [name, expected] of Object.entries(fixture.gradients)) {
    const list = Array.isArray(expected) ? expected : [expected];
    list.forEach((one, i) => {
      const output = got[`d ${name}${Array.isArray(expected) ? i : ""}`]!;
      expect(output.shape).toEqual(one.shape);
      expect(error(toNumbers(output), one.values), `d ${name}`).toBeLessThan(tolerance);
    });
  }
}

describe("gradients agree with torch", () => {
  const named = fixtures.cases.map((fixture) => [`${fixture.op}: ${fixture.name}`, fixture] as const);
  // Fixtures keep 11 digits.
  test.each(named)("in float64, reference kernels: %s", (_, fixture) => expectFixture(fixture, "f64", 6e-11));
  test.each(named)("in float32, onnxruntime-node: %s", (_, fixture) => expectFixture(fixture, "f32", 4e-6));

  test("fixtures have every op that has a rule and is more than a movement of elements", () => {
    const covered = new Set(fixtures.cases.map(({ op }) => op));
    const ruled = opNames.filter((op) => op !== "attentionGradient" && gradientRule(op) !== undefined);
    expect(ruled.filter((op) => !covered.has(op))).toEqual([
      "reshape",
      "transpose",
      "broadcast",
      "slice",
      "dynamicSlice",
      "updateSlice",
      "split",
      "pad",
      "cast",
      "quantizedMatmul",
      "dequantize",
      "rotary", // within attention
    ]);
  });
});

describe("attention in blocks agrees with the reference kernels in float64", () => {
  test.each(opCases.attentionGradient.map((opCase, i) => [opCase.name, opCase, i] as const))(
    "%s",
    async (_, opCase, i) => {
      const g = graphBuilder("blocks");
      const values: Record<string, Value> = {};
      const feeds: Record<string, Tensor> = {};
      const given = caseTensors(opCase, 60 + i);
      for (const [name, spec] of Object.entries(opCase.inputs)) {
        values[name] = g.input(name, "f64", spec.shape);
        feeds[name] = fromNumbers("f64", given[name]!.shape, toNumbers(given[name]!));
      }
      const [output, ...kernels] = opCase.build(g, values) as Value[];
      const { attributes } = g.nodes.find((node) => node.op === "attentionGradient")!;
      const { dy, ...x } = values;
      const inputs = x as unknown as Inputs<"attention", Value>;
      const options = attributes as Attributes["attentionGradient"];
      const blocks = [
        blockAttention(g, inputs, options).output,
        ...blockAttentionGradient(g, { ...inputs, output: output!, outputGradient: dy! }, options),
      ];
      [output!, ...kernels].forEach((value, j) => void g.output(`kernel${j}`, value));
      blocks.forEach((value, j) => void g.output(`block${j}`, value));
      await using session = await referenceBackend.load(g.build());
      const got = await session.run(feeds);
      blocks.forEach((_value, j) => {
        expect(error(toNumbers(got[`block${j}`]!), toNumbers(got[`kernel${j}`]!))).toBeLessThan(1e-12);
      });
    },
  );
});

describe("gradients", () => {
  test("of a value that is used twice add up, and of one that is not used are zeros", async () => {
    const g = graphBuilder("twice");
    const x = g.input("x", "f64", [2]);
    const unused = g.input("unused", "f64", [3]);
    const loss = g.sum(g.add(g.multiply(x, 3), g.multiply(x, x)), 0);
    const [dx, zero] = gradients(g, loss, [x, unused]);
    g.output("dx", dx!);
    g.output("zero", zero!);
    await using session = await referenceBackend.load(g.build());
    const got = await session.run({ x: fromNumbers("f64", [2], [1, 5]), unused: fromNumbers("f64", [3], [1, 1, 1]) });
    expect(Array.from(toNumbers(got.dx!))).toEqual([5, 13]);
    expect(Array.from(toNumbers(got.zero!))).toEqual([0, 0, 0]);
  });

  test("of gradients: the second derivative of a polynomial", async () => {
    const g = graphBuilder("second");
    const x = g.input("x", "f64", [3]);
    const cube = g.sum(g.multiply(x, g.multiply(x, x)), 0);
    const [first] = gradients(g, cube, [x]);
    const [second] = gradients(g, g.sum(first!, 0), [x]);
    g.output("second", second!);
    await using session = await referenceBackend.load(g.build());
    const { second: got } = await session.run({ x: fromNumbers("f64", [3], [1, 2, -3]) });
    expect(Array.from(toNumbers(got!))).toEqual([6, 12, -18]);
  });

  test("pass casts between floats, and stop at integers", async () => {
    const g = graphBuilder("casts");
    const x = g.input("x", "f32", [3]);
    const w = g.input("w", "f64", [3]);
    const loss = g.sum(g.multiply(g.add(g.cast(x, "f64"), g.cast(g.cast(x, "i64"), "f64")), w), 0);
    g.output("dx", gradients(g, loss, [x])[0]!);
    await using session = await referenceBackend.load(g.build());
    const { dx } = await session.run({
      x: fromNumbers("f32", [3], [1.5, 2, -3]),
      w: fromNumbers("f64", [3], [0.1, 2, 3]),
    });
    expect(dx!.dtype).toBe("f32");
    expect(Array.from(toNumbers(dx!))).toEqual([0.1, 2, 3].map(Math.fround));
  });

  test("of a log-sum-exp over nothing but minus infinity are zeros, where torch gives NaN", async () => {
    const g = graphBuilder("nothing");
    const x = g.input("x", "f64", [2, 2]);
    const rows = g.logSumExp(x);
    g.output("dx", gradients(g, g.sum(g.where(g.equal(rows, -Infinity), 0, rows), 0), [x])[0]!);
    await using session = await referenceBackend.load(g.build());
    const { dx } = await session.run({ x: fromNumbers("f64", [2, 2], [-Infinity, -Infinity, 0, 0]) });
    expect(Array.from(toNumbers(dx!))).toEqual([0, 0, 0.5, 0.5]);
  });

  test("carry the scope of what they belong to", () => {
    const g = graphBuilder("scopes");
    const x = g.input("x", "f32", [3]);
    const y = g.scope("layers[0]", () => g.exp(x));
    g.output("dx", gradients(g, g.sum(y, 0), [x])[0]!);
    expect(g.build().nodes.at(-1)!.path).toBe("gradients > layers[0]");
  });

  test("refuse what cannot be differentiated, saying where", () => {
    const g = graphBuilder("refused");
    const x = g.input("x", "f32", [3]);
    const n = g.input("n", "i64", []);
    expect(() => gradients(g, x, [x])).toThrow(/expected a scalar to differentiate, got f32\[3\]/);
    expect(() => gradients(g, g.sum(x, 0), [n])).toThrow(/expected floats, got n: i64\[\]/);
    const query = g.input("query", "f32", [1, 4, 24]);
    const { output } = g.scope("layers[1]", () => g.attention({ query }, { numHeads: 1, scale: 1 }));
    const [first] = gradients(g, g.sum(output, [0, 1, 2]), [query]);
    const second = (): unknown => gradients(g, g.sum(first!, [0, 1, 2]), [query]);
    expect(second).toThrow(/gradients > layers\[1\] > attentionGradient: expected an op with a gradient rule/);
  });

  test("two attentions of the same inputs keep one set of probabilities", () => {
    const softmaxes = async (recomputeAttention: boolean): Promise<number> => {
      const { lowerToOnnx } = await import("../../src/graph/index.ts");
      const g = graphBuilder("kept");
      const query = g.input("query", "f32", [2, 128, 48]);
      const { output } = g.attention({ query }, { numHeads: 2, scale: 1 });
      g.output("out", output);
      g.output("d", gradients(g, g.sum(output, [0, 1, 2]), [query], { recomputeAttention })[0]!);
      const { model } = lowerToOnnx(g.build());
      expect(model.nodes.some((node) => node.op === "GroupQueryAttention")).toBe(recomputeAttention);
      return model.nodes.filter((node) => node.op === "Softmax").length;
    };
    return Promise.all([softmaxes(false), softmaxes(true)]).then((counts) => expect(counts).toEqual([2, 2]));
  });
});
