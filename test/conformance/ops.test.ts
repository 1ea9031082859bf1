// Every op on every backend. The reference kernels are checked against torch (test/fixtures/ops.json, made by
// reference/ops.py), the other backends against the reference kernels and against torch. Errors are relative to the
// larger of 1 and the expected number; the table holds what is allowed, with what was seen beside it.

import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { type Backend, onnxRuntimeBackend, referenceBackend } from "../../src/engine/index.ts";
import {
  type Attributes,
  decomposeAttention,
  decomposeRotary,
  type GraphBuilder,
  graphBuilder,
  type Inputs,
  type OpName,
  opNames,
  type Value,
} from "../../src/graph/index.ts";
import {
  bfloat16Bits,
  type Dtype,
  float16Bits,
  fromNumbers,
  isFloat,
  type Tensor,
  toNumbers,
} from "../../src/tensor/index.ts";
import { compareCase, toleranceOf, worstError } from "./op-graphs.ts";
import { type BackendName, opCases } from "./ops.ts";

/** The reference kernels in float64 against torch in float64; fixtures keep 11 digits. */
const exact = 6e-11;

const backends: { readonly name: BackendName; readonly backend: Backend }[] = [
  { name: "onnxruntime-node", backend: onnxRuntimeBackend({ provider: "node" }) },
  { name: "onnxruntime-wasm", backend: onnxRuntimeBackend({ provider: "wasm" }) },
];

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
  readonly outputs: FixtureTensor[];
}
const fixtures = JSON.parse(readFileSync(new URL("../fixtures/ops.json", import.meta.url), "utf8")) as {
  cases: Fixture[];
  halves: Record<"float64" | "float16" | "float32" | "bfloat16", number[]>;
};

/** A fixture's op as a graph; floats in the dtype asked for. Quantised weights become parameters. */
function fixtureGraph(
  fixture: Fixture,
  float: "f32" | "f64",
  build: (g: GraphBuilder, inputs: unknown) => Value[] = (g, inputs) =>
    g.apply(fixture.op, inputs as Inputs<OpName, Value>, fixture.attributes as Attributes[OpName]),
) {
  const g = graphBuilder(`${fixture.op}: ${fixture.name}`);
  const feeds: Record<string, Tensor> = {};
  const weights: Record<string, Tensor> = {};
  const declare = (name: string, { dtype, shape, values }: FixtureTensor): Value => {
    const type = dtype === "f32" ? float : dtype;
    // Inputs are float32 numbers, whatever they are computed in.
    const given = fromNumbers(type, shape, dtype === "f32" ? values.map(Math.fround) : values.map(Number));
    const fixed = ["blocks", "scales", "zeroPoints"].includes(name);
    (fixed ? weights : feeds)[name] = given;
    return fixed ? g.parameter(name, type, shape) : g.input(name, type, shape);
  };
  const inputs: Record<string, Value | Value[]> = {};
  for (const [name, given] of Object.entries(fixture.inputs)) {
    inputs[name] = Array.isArray(given) ? given.map((x, i) => declare(`${name}${i}`, x)) : declare(name, given);
  }
  const outputs = build(g, inputs);
  outputs.forEach((value, i) => void g.output(`out${i}`, value));
  return { graph: g.build(), feeds, weights };
}

function expectShape(got: Tensor, shape: readonly number[]): void {
  expect(got.shape).toEqual(shape);
}

describe("the reference kernels agree with torch in float64", () => {
  test.each(fixtures.cases.map((fixture) => [`${fixture.op}: ${fixture.name}`, fixture] as const))(
    "%s",
    async (_, fixture) => {
      const { graph, feeds, weights } = fixtureGraph(fixture, "f64");
      await using session = await referenceBackend.load(graph, weights);
      const got = await session.run(feeds);
      fixture.outputs.forEach((expected, i) => {
        const output = got[`out${i}`]!;
        expectShape(output, expected.shape);
        const values = expected.values.map(Number);
        if (isFloat(output.dtype)) expect(worstError(toNumbers(output), values)).toBeLessThan(exact);
        else expect(Array.from(toNumbers(output))).toEqual(values);
      });
    },
  );

  test("float64 rounds to float16 as numpy does, float32 to bfloat16 as torch does", () => {
    expect(fixtures.halves.float64.map(float16Bits)).toEqual(fixtures.halves.float16);
    expect(fixtures.halves.float32.map(bfloat16Bits)).toEqual(fixtures.halves.bfloat16);
  });

  test("every op is in the fixtures, but those that only move elements or count", () => {
    const covered = new Set(fixtures.cases.map((fixture) => fixture.op));
    const left = opNames.filter((op) => !covered.has(op));
    // attentionGradient is checked with the gradients (gradients.test.ts).
    expect(left).toEqual(["reshape", "dimension", "iota", "attentionGradient"]);
  });
});

describe("attention and rotary from smaller ops agree with torch in float64", () => {
  const fused = fixtures.cases.filter(({ op }) => op === "attention" || op === "rotary");
  test.each(fused.map((fixture) => [`${fixture.op}: ${fixture.name}`, fixture] as const))("%s", async (_, fixture) => {
    const build = (g: GraphBuilder, inputs: unknown): Value[] => {
      if (fixture.op === "rotary") {
        return [decomposeRotary(g, inputs as Inputs<"rotary", Value>, fixture.attributes as Attributes["rotary"])];
      }
      const attributes = fixture.attributes as Attributes["attention"];
      const out = decomposeAttention(g, inputs as Inputs<"attention", Value>, attributes);
      return [out.output, out.newKey, out.newValue];
    };
    const { graph, feeds } = fixtureGraph(fixture, "f64", build);
    expect(graph.nodes.map(({ op }) => op)).not.toContain(fixture.op);
    await using session = await referenceBackend.load(graph);
    const got = await session.run(feeds);
    fixture.outputs.forEach((expected, i) => {
      expectShape(got[`out${i}`]!, expected.shape);
      expect(worstError(toNumbers(got[`out${i}`]!), expected.values.map(Number))).toBeLessThan(exact);
    });
  });
});

describe.each(backends)("$name", ({ name, backend }) => {
  const seen = new Map<OpName, number>();
  const check = (op: OpName, got: Tensor, expected: ArrayLike<number>): void => {
    if (!isFloat(got.dtype)) {
      expect(Array.from(toNumbers(got))).toEqual(Array.from(expected));
      return;
    }
    const worst = worstError(toNumbers(got), expected);
    seen.set(op, Math.max(seen.get(op) ?? 0, worst));
    expect(worst).toBeLessThanOrEqual(toleranceOf(op));
  };

  describe.each(opNames)("%s", (op) => {
    opCases[op].forEach((opCase, i) => {
      const reason = opCase.skip?.[name];
      test.skipIf(reason !== undefined)(
        `${opCase.name}${reason === undefined ? "" : ` (skipped: ${reason})`}`,
        async () => {
          const worst = await compareCase(op, opCase, 1000 + i, backend, referenceBackend);
          seen.set(op, Math.max(seen.get(op) ?? 0, worst));
          expect(worst).toBeLessThanOrEqual(toleranceOf(op));
        },
      );
    });

    test.each(fixtures.cases.filter((fixture) => fixture.op === op).map((fixture) => [fixture.name, fixture] as const))(
      "torch: %s",
      async (_, fixture) => {
        const { graph, feeds, weights } = fixtureGraph(fixture, "f32");
        await using session = await backend.load(graph, weights);
        const got = await session.run(feeds);
        fixture.outputs.forEach((expected, i) => {
          expectShape(got[`out${i}`]!, expected.shape);
          check(op, got[`out${i}`]!, expected.values.map(Number));
        });
      },
    );
  });

  afterAll(() => {
    if (process.env.OPS_ERRORS)
      console.log(name, Object.fromEntries([...seen].map(([op, worst]) => [op, worst.toExponential(1)])));
  });
});
