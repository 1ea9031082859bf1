// Builds graphs. Methods return typed handles and check shapes at once, so an error names the place in the model:
// "layers[3] > attention > matmul: expected inner sizes that agree, got 64 and 32 of …". Symbolic sizes are bound by the
// inputs that carry their bare names. `build` drops what no output and no state needs.

import { type Dtype, formatShape, fromNumbers, normalizeAxis, scalar, type Tensor } from "../tensor/index.ts";
import { canonicalDim, type Dim, dimNames, isDimName } from "./dims.ts";
import {
  type AttentionAttributes,
  type Attributes,
  type BlockFormat,
  type Graph,
  type Inputs,
  inputEntries,
  type Node,
  nodeInputs,
  type OpName,
  ops,
  type StateUpdate,
  type Value,
  type ValueType,
} from "./ops.ts";
import { inferReshape, type ShapeRule, shapeRules } from "./shapes.ts";

/** A value, or a number that becomes a scalar constant of the other side's dtype. */
export type Operand = Value | number;

interface AxesOptions {
  readonly keepDims?: boolean;
}

/** Starts a graph. `name` is what prints and profiles call it. */
export function graphBuilder(name = "graph"): GraphBuilder {
  return new GraphBuilder(name);
}

export class GraphBuilder {
  readonly name: string;
  readonly #scopes: string[] = [];
  readonly #values = new Set<Value>();
  readonly #names = new Map<string, number>();
  readonly #inputs: Value[] = [];
  readonly #parameters = new Map<string, Value>();
  readonly #states: Value[] = [];
  readonly #constants = new Map<string, { value: Value; tensor: Tensor }>();
  readonly #nodes: Node[] = [];
  readonly #outputs = new Map<string, Value>();
  readonly #updates = new Map<Value, StateUpdate>();

  constructor(name: string) {
    this.name = name;
  }

  /** The nodes so far, in the order in which they were made. */
  get nodes(): readonly Node[] {
    return this.#nodes;
  }

  // What goes in.

  /** A named input of each run. Bare names in its shape ("tokens") are bound by what is fed. */
  input(name: string, dtype: Dtype, shape: readonly Dim[]): Value {
    return this.#declare("input", this.#inputs, name, dtype, shape);
  }

  /** A weight, given by name when the graph is loaded. Asking again for the same name gives the same handle. */
  parameter(name: string, dtype: Dtype, shape: readonly number[]): Value {
    const known = this.#parameters.get(name);
    if (known !== undefined) {
      if (known.dtype !== dtype || formatShape(known.shape) !== formatShape(shape)) {
        this.#fail(
          "parameter",
          `expected ${JSON.stringify(name)} to stay ${known.dtype}${formatShape(known.shape)}, got ${dtype}${formatShape(shape)}`,
        );
      }
      return known;
    }
    const list: Value[] = [];
    const value = this.#declare("parameter", list, name, dtype, shape);
    this.#parameters.set(name, value);
    return value;
  }

  /** A tensor that lives in the session between runs: a cache, weights in training. Zero at first. Its symbolic sizes
   *  are set when the graph is loaded and changed by the session's `resize`. */
  state(name: string, dtype: Dtype, shape: readonly Dim[]): Value {
    return this.#declare("state", this.#states, name, dtype, shape);
  }

  /** A fixed tensor that is part of the program. Equal scalars are one constant. */
  constant(tensor: Tensor): Value {
    const key =
      tensor.data.length <= 16
        ? `${tensor.dtype}${formatShape(tensor.shape)}${tensor.data}`
        : `#${this.#constants.size}`;
    // "-0" and "0" print alike, and are not the same number.
    const exact = Array.from(tensor.data as ArrayLike<number>).some((x) => Object.is(x, -0)) ? `${key}-` : key;
    const known = this.#constants.get(exact);
    if (known !== undefined) return known.value;
    const value = this.#value(this.#unique("constant"), tensor);
    this.#constants.set(exact, { value, tensor });
    return value;
  }

  /** A scalar constant, shape []. */
  scalar(dtype: Dtype, value: number): Value {
    return this.constant(scalar(dtype, value));
  }

  /** A constant vector or tensor from numbers. */
  numbers(dtype: Dtype, shape: readonly number[], values: ArrayLike<number>): Value {
    return this.constant(fromNumbers(dtype, shape, values));
  }

  // What comes out.

  /** Names a value as an output of a run. */
  output(name: string, value: Value): void {
    this.#own("output", name, value);
    if (this.#outputs.has(name)) this.#fail("output", `expected a name not taken, got ${JSON.stringify(name)}`);
    this.#outputs.set(name, value);
  }

  /** After a run the state holds this value. */
  assign(state: Value, value: Value): void {
    this.#ownState("assign", state);
    this.#own("assign", "value", value);
    if (state.dtype !== value.dtype || formatShape(state.shape) !== formatShape(value.shape)) {
      this.#fail(
        "assign",
        `expected ${state.dtype}${formatShape(state.shape)} for ${state.name}, got ${value.dtype}${formatShape(value.shape)}`,
      );
    }
    this.#updates.set(state, { kind: "replace", state, value });
  }

  /** After a run the state's rows start .. start + count − 1 along the axis are these: how a cache grows. The run itself
   *  reads the state as it was before. */
  assignRows(state: Value, rows: Value, axis: number, start: Value): void {
    this.#ownState("assignRows", state);
    this.#own("assignRows", "rows", rows);
    this.#own("assignRows", "start", start);
    const attributes = { axis: this.#axis("assignRows", axis, state) };
    this.#rule("updateSlice", { x: state, rows, start }, attributes, "assignRows");
    this.#updates.set(state, { kind: "rows", state, rows, axis: attributes.axis, start });
  }

  /** Runs `build` inside a scope: names and errors of what it makes begin with it. */
  scope<T>(name: string, build: () => T): T {
    this.#scopes.push(name);
    try {
      return build();
    } finally {
      this.#scopes.pop();
    }
  }

  // Arithmetic.

  add(a: Operand, b: Operand): Value {
    return this.#binary("add", a, b);
  }
  subtract(a: Operand, b: Operand): Value {
    return this.#binary("subtract", a, b);
  }
  multiply(a: Operand, b: Operand): Value {
    return this.#binary("multiply", a, b);
  }
  /** a / b; integers are divided towards zero. */
  divide(a: Operand, b: Operand): Value {
    return this.#binary("divide", a, b);
  }
  power(a: Operand, b: Operand): Value {
    return this.#binary("power", a, b);
  }
  minimum(a: Operand, b: Operand): Value {
    return this.#binary("minimum", a, b);
  }
  maximum(a: Operand, b: Operand): Value {
    return this.#binary("maximum", a, b);
  }

  // Elementwise functions.

  negate(x: Value): Value {
    return this.#one("negate", { x }, {});
  }
  absolute(x: Value): Value {
    return this.#one("absolute", { x }, {});
  }
  sign(x: Value): Value {
    return this.#one("sign", { x }, {});
  }
  floor(x: Value): Value {
    return this.#one("floor", { x }, {});
  }
  exp(x: Value): Value {
    return this.#one("exp", { x }, {});
  }
  log(x: Value): Value {
    return this.#one("log", { x }, {});
  }
  sqrt(x: Value): Value {
    return this.#one("sqrt", { x }, {});
  }
  /** 1 / √x. */
  rsqrt(x: Value): Value {
    return this.#one("rsqrt", { x }, {});
  }
  reciprocal(x: Value): Value {
    return this.#one("reciprocal", { x }, {});
  }
  sin(x: Value): Value {
    return this.#one("sin", { x }, {});
  }
  cos(x: Value): Value {
    return this.#one("cos", { x }, {});
  }
  tanh(x: Value): Value {
    return this.#one("tanh", { x }, {});
  }
  erf(x: Value): Value {
    return this.#one("erf", { x }, {});
  }
  relu(x: Value): Value {
    return this.#one("relu", { x }, {});
  }
  sigmoid(x: Value): Value {
    return this.#one("sigmoid", { x }, {});
  }
  /** x · sigmoid(x), also called swish. */
  silu(x: Value): Value {
    return this.#one("silu", { x }, {});
  }
  /** ln(1 + e^x). */
  softplus(x: Value): Value {
    return this.#one("softplus", { x }, {});
  }
  /** x · Φ(x) exactly, or by the tanh approximation that checkpoints call gelu_new and gelu_pytorch_tanh. */
  gelu(x: Value, approximate: "none" | "tanh" = "none"): Value {
    return this.#one("gelu", { x }, { approximate });
  }

  // Comparison and selection.

  equal(a: Operand, b: Operand): Value {
    return this.#binary("equal", a, b);
  }
  less(a: Operand, b: Operand): Value {
    return this.#binary("less", a, b);
  }
  lessEqual(a: Operand, b: Operand): Value {
    return this.#binary("lessEqual", a, b);
  }
  and(a: Value, b: Value): Value {
    return this.#one("and", { a, b }, {});
  }
  or(a: Value, b: Value): Value {
    return this.#one("or", { a, b }, {});
  }
  not(x: Value): Value {
    return this.#one("not", { x }, {});
  }
  /** a where condition holds, b elsewhere. */
  where(condition: Value, a: Operand, b: Operand): Value {
    const [x, y] = this.#operands("where", a, b);
    return this.#one("where", { condition, a: x, b: y }, {});
  }

  // Reductions. Axes may count from the end; one number stands for a list of one.

  sum(x: Value, axes: number | readonly number[] = -1, options: AxesOptions = {}): Value {
    return this.#reduce("reduceSum", x, axes, options);
  }
  mean(x: Value, axes: number | readonly number[] = -1, options: AxesOptions = {}): Value {
    return this.#reduce("reduceMean", x, axes, options);
  }
  max(x: Value, axes: number | readonly number[] = -1, options: AxesOptions = {}): Value {
    return this.#reduce("reduceMax", x, axes, options);
  }
  /** ln Σ e^x, shifted by the maximum so that nothing overflows. */
  logSumExp(x: Value, axes: number | readonly number[] = -1, options: AxesOptions = {}): Value {
    return this.#reduce("logSumExp", x, axes, options);
  }
  /** The index of the first largest element. */
  argMax(x: Value, axis = -1, options: AxesOptions = {}): Value {
    return this.#one("argMax", { x }, { axis: this.#axis("argMax", axis, x), keepDims: options.keepDims ?? false });
  }
  cumulativeSum(
    x: Value,
    axis = -1,
    options: { readonly exclusive?: boolean; readonly reverse?: boolean } = {},
  ): Value {
    const attributes = {
      axis: this.#axis("cumulativeSum", axis, x),
      exclusive: options.exclusive ?? false,
      reverse: options.reverse ?? false,
    };
    return this.#one("cumulativeSum", { x }, attributes);
  }

  // Movement.

  /** The same elements in another shape; one size may be −1. */
  reshape(x: Value, shape: readonly Dim[]): Value {
    const full = this.#guard("reshape", () => inferReshape(x, this.#dims(shape)));
    return this.#one("reshape", { x }, { shape: full });
  }
  /** Axis i of the result is axis permutation[i] of x; without a permutation the last two are exchanged. */
  transpose(x: Value, permutation?: readonly number[]): Value {
    const last = x.shape.length - 1;
    const swapped = x.shape.map((_, axis) => (axis === last ? last - 1 : axis === last - 1 ? last : axis));
    return this.#one("transpose", { x }, { permutation: permutation ?? swapped });
  }
  broadcast(x: Value, shape: readonly Dim[]): Value {
    return this.#one("broadcast", { x }, { shape: this.#dims(shape) });
  }
  concat(values: readonly Value[], axis: number): Value {
    const first = values[0];
    if (first === undefined) return this.#fail("concat", "expected at least one value, got none");
    return this.#one("concat", { values }, { axis: this.#axis("concat", axis, first) });
  }
  /** Elements start .. end − 1 along an axis, each step-th. */
  slice(x: Value, axis: number, start: number, end: Dim, step = 1): Value {
    const attributes = { axis: this.#axis("slice", axis, x), start, end: canonicalDim(end), step };
    return this.#one("slice", { x }, attributes);
  }
  /** `size` elements along an axis from a start (i64 []) that a run decides. */
  dynamicSlice(x: Value, axis: number, start: Value, size: Dim): Value {
    const attributes = { axis: this.#axis("dynamicSlice", axis, x), size: canonicalDim(size) };
    return this.#one("dynamicSlice", { x, start }, attributes);
  }
  /** x with rows written over it along an axis from start (i64 []) on. */
  updateSlice(x: Value, rows: Value, axis: number, start: Value): Value {
    return this.#one("updateSlice", { x, rows, start }, { axis: this.#axis("updateSlice", axis, x) });
  }
  /** Parts of these sizes along an axis; a number of parts splits evenly. */
  split(x: Value, sizes: readonly number[] | number, axis = -1): Value[] {
    const at = this.#axis("split", axis, x);
    const list =
      typeof sizes === "number" ? new Array<number>(sizes).fill((x.shape[at] as number) / sizes) : [...sizes];
    return this.apply("split", { x }, { axis: at, sizes: list });
  }
  /** `before` and `after` elements of `value` added along an axis. */
  pad(x: Value, axis: number, before: number, after: number, value = 0): Value {
    return this.#one("pad", { x }, { axis: this.#axis("pad", axis, x), before, after, value });
  }
  /** Slices of x along an axis by indices (i64): rows of an embedding for axis 0. */
  gather(x: Value, indices: Value, axis = 0): Value {
    return this.#one("gather", { x, indices }, { axis: this.#axis("gather", axis, x) });
  }
  /** out[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis. */
  gatherElements(x: Value, indices: Value, axis = -1): Value {
    return this.#one("gatherElements", { x, indices }, { axis: this.#axis("gatherElements", axis, x) });
  }
  /** x with rows added at indices along axis 0; rows of one index add up. */
  scatterAdd(x: Value, indices: Value, rows: Value): Value {
    return this.#one("scatterAdd", { x, indices, rows }, {});
  }
  /** The size of an axis as an i64 scalar. */
  dimension(x: Value, axis: number): Value {
    return this.#one("dimension", { x }, { axis: this.#axis("dimension", axis, x) });
  }
  /** 0, 1, 2, … (i64), as long as an axis of x. */
  iota(x: Value, axis: number): Value {
    return this.#one("iota", { x }, { axis: this.#axis("iota", axis, x) });
  }
  /** x as another dtype; x itself when it is that already. Floats become integers by dropping the fraction. */
  cast(x: Value, dtype: Dtype): Value {
    return x.dtype === dtype ? x : this.#one("cast", { x }, { dtype });
  }

  // Matrix products.

  /** a · b over the last two axes, batched and broadcast over the others. */
  matmul(a: Value, b: Value, options: { readonly transposeA?: boolean; readonly transposeB?: boolean } = {}): Value {
    const attributes = { transposeA: options.transposeA ?? false, transposeB: options.transposeB ?? false };
    return this.#one("matmul", { a, b }, attributes);
  }
  /** x [.., K] times a quantised weight of N rows: [.., N]. */
  quantizedMatmul(
    x: Value,
    weight: { readonly blocks: Value; readonly scales: Value; readonly zeroPoints?: Value | undefined },
    format: BlockFormat & { readonly accuracyLevel?: 0 | 4 },
  ): Value {
    const attributes = { bits: format.bits, blockSize: format.blockSize, accuracyLevel: format.accuracyLevel ?? 0 };
    return this.#one("quantizedMatmul", { x, ...weight }, attributes);
  }
  /** Blocks [.., nBlocks, bytes] as numbers [.., nBlocks · blockSize]. */
  dequantize(
    weight: { readonly blocks: Value; readonly scales: Value; readonly zeroPoints?: Value | undefined },
    format: BlockFormat,
  ): Value {
    return this.#one("dequantize", { ...weight }, { bits: format.bits, blockSize: format.blockSize });
  }

  // Normalisation and losses.

  layerNorm(x: Value, weight: Value, bias: Value | undefined, epsilon: number): Value {
    return this.#one("layerNorm", { x, weight, bias }, { epsilon });
  }
  /** x / √(mean(x²) + epsilon) · weight, over the last axis; without a weight, as if it were ones. */
  rmsNorm(x: Value, weight: Value | undefined, epsilon: number): Value {
    return this.#one("rmsNorm", { x, weight }, { epsilon });
  }
  softmax(x: Value, axis = -1): Value {
    return this.#one("softmax", { x }, { axis: this.#axis("softmax", axis, x) });
  }
  logSoftmax(x: Value, axis = -1): Value {
    return this.#one("logSoftmax", { x }, { axis: this.#axis("logSoftmax", axis, x) });
  }
  /** −ln softmax(logits)[target] for each target (i64): logits [.., V], targets [..]. */
  crossEntropy(logits: Value, targets: Value): Value {
    return this.#one("crossEntropy", { logits, targets }, {});
  }

  // Attention.

  /** Turns the first 2P channels of each head of x [B, T, H·D] by tables cos and sin [T, P]. Pair p holds channels
   *  (p, p + P) in layout "half", (2p, 2p + 1) in "interleaved"; (a, b) becomes (a·cos − b·sin, b·cos + a·sin). */
  rotary(x: Value, cos: Value, sin: Value, options: Attributes["rotary"]): Value {
    return this.#one("rotary", { x, cos, sin }, options);
  }
  /** The whole of attention (see `ops` for shapes). newKey and newValue [B, K, N, D] are the rows that a cache keeps:
   *  keys rotated already. */
  attention(
    inputs: Inputs<"attention", Value>,
    options: Pick<AttentionAttributes, "numHeads" | "scale"> & Partial<AttentionAttributes>,
  ): { output: Value; newKey: Value; newValue: Value } {
    const [output, newKey, newValue] = this.apply("attention", inputs, {
      numHeads: options.numHeads,
      numKeyValueHeads: options.numKeyValueHeads ?? options.numHeads,
      scale: options.scale,
      softcap: options.softcap ?? 0,
      causal: options.causal ?? true,
      window: options.window ?? null,
      layout: options.layout ?? "half",
    });
    return { output: output!, newKey: newKey!, newValue: newValue! };
  }

  /** Any op by name, with its attributes in full; what the methods above call. */
  apply<O extends OpName>(op: O, inputs: Inputs<O, Value>, attributes: Attributes[O]): Value[] {
    const types = this.#rule(op, inputs, attributes, op);
    const path = this.#scopes.join(" > ");
    const base = [...this.#scopes, op].join("/");
    const outputs = types.map((type) => this.#value(this.#unique(base), type));
    this.#nodes.push({ op, path, inputs, attributes, outputs } as unknown as Node);
    return outputs;
  }

  /**
   * The finished graph: nodes that some output or state needs, in order; inputs and parameters stay as declared.
   * @param options boundElsewhere: this graph is a part of one whose inputs bind its sizes
   * @throws RangeError without an output, or for a symbolic size that no input or state binds
   */
  build(options: { readonly boundElsewhere?: boolean } = {}): Graph {
    if (this.#outputs.size === 0 && this.#updates.size === 0) {
      this.#fail("build", "expected at least one output or state update, got none");
    }
    const needed = new Set<Value>(this.#outputs.values());
    for (const update of this.#updates.values()) {
      needed.add(update.kind === "replace" ? update.value : update.rows);
      if (update.kind === "rows") needed.add(update.start);
    }
    const nodes: Node[] = [];
    for (let i = this.#nodes.length - 1; i >= 0; i--) {
      const node = this.#nodes[i]!;
      if (!node.outputs.some((output) => needed.has(output))) continue;
      nodes.push(node);
      for (const input of nodeInputs(node)) needed.add(input);
    }
    nodes.reverse();
    const bound = new Set([...this.#inputs, ...this.#states].flatMap((value) => value.shape.filter(isDimName)));
    for (const value of options.boundElsewhere === true ? [] : needed) {
      for (const name of value.shape.flatMap(dimNames)) {
        if (!bound.has(name)) {
          this.#fail(
            "build",
            `expected an input or state with an axis ${JSON.stringify(name)}, which ${value.name} has`,
          );
        }
      }
    }
    return {
      name: this.name,
      inputs: [...this.#inputs],
      parameters: [...this.#parameters.values()].filter((value) => needed.has(value)),
      states: [...this.#states],
      constants: [...this.#constants.values()].filter(({ value }) => needed.has(value)),
      nodes,
      outputs: [...this.#outputs].map(([name, value]) => ({ name, value })),
      updates: [...this.#updates.values()],
    };
  }

  #declare(who: string, list: Value[], name: string, dtype: Dtype, shape: readonly Dim[]): Value {
    if (name === "" || this.#names.has(name)) {
      this.#fail(who, `expected a name that is not taken, got ${JSON.stringify(name)}`);
    }
    const dims = this.#guard(who, () => this.#dims(shape));
    this.#names.set(name, 1);
    const value = this.#value(name, { dtype, shape: dims });
    list.push(value);
    return value;
  }

  #dims(shape: readonly Dim[]): Dim[] {
    return shape.map(canonicalDim);
  }

  #value(name: string, type: ValueType): Value {
    const value: Value = { name, dtype: type.dtype, shape: type.shape };
    this.#values.add(value);
    return value;
  }

  /** base, then base#2, base#3. */
  #unique(base: string): string {
    const count = (this.#names.get(base) ?? 0) + 1;
    this.#names.set(base, count);
    const name = count === 1 ? base : `${base}#${count}`;
    return count > 1 && this.#names.has(name) ? this.#unique(base) : name;
  }

  #one<O extends OpName>(op: O, inputs: Inputs<O, Value>, attributes: Attributes[O]): Value {
    return this.apply(op, inputs, attributes)[0]!;
  }

  #binary(
    op: "add" | "subtract" | "multiply" | "divide" | "power" | "minimum" | "maximum" | "equal" | "less" | "lessEqual",
    a: Operand,
    b: Operand,
  ): Value {
    const [x, y] = this.#operands(op, a, b);
    return this.#one(op, { a: x, b: y }, {});
  }

  #operands(op: OpName, a: Operand, b: Operand): [Value, Value] {
    if (typeof a === "number" && typeof b === "number") this.#fail(op, "expected at least one value, got two numbers");
    const dtype = (typeof a === "number" ? (b as Value) : a).dtype;
    const value = (x: Operand): Value => (typeof x === "number" ? this.#guard(op, () => this.scalar(dtype, x)) : x);
    return [value(a), value(b)];
  }

  #reduce(
    op: "reduceSum" | "reduceMean" | "reduceMax" | "logSumExp",
    x: Value,
    axes: number | readonly number[],
    options: AxesOptions,
  ): Value {
    const list = (typeof axes === "number" ? [axes] : axes).map((axis) => this.#axis(op, axis, x));
    return this.#one(op, { x }, { axes: list, keepDims: options.keepDims ?? false });
  }

  #axis(who: string, axis: number, x: Value): number {
    return this.#guard(who, () => normalizeAxis("axis", axis, x.shape.length));
  }

  #rule<O extends OpName>(op: O, inputs: Inputs<O, Value>, attributes: Attributes[O], who: string): ValueType[] {
    const probe = { op, inputs } as unknown as Node;
    const entries = inputEntries(probe);
    for (const [name, value] of entries) this.#own(who, name, value);
    const names = new Set<string>(ops[op].inputs.map((entry) => entry.replace(/\?$|\.\.\.$/, "")));
    for (const entry of ops[op].inputs) {
      if (/\?$|\.\.\.$/.test(entry)) continue;
      if (!entries.some(([name]) => name === entry)) this.#fail(who, `expected an input ${entry}, got none`);
    }
    for (const name of Object.keys(inputs)) {
      if (!names.has(name)) this.#fail(who, `expected inputs ${[...names].join(", ")}, got ${name}`);
    }
    return this.#guard(who, () => (shapeRules[op] as unknown as ShapeRule<O>)(inputs, attributes));
  }

  #own(who: string, name: string, value: Value): void {
    if (!this.#values.has(value)) {
      this.#fail(who, `expected ${name} to be a value of this graph, got one of another builder`);
    }
  }

  #ownState(who: string, state: Value): void {
    if (!this.#states.includes(state)) this.#fail(who, `expected a state, got ${state.name}`);
    if (this.#updates.has(state)) this.#fail(who, `expected one update a state, got a second for ${state.name}`);
  }

  /** Puts where we are in front of an error's message. */
  #guard<T>(who: string, body: () => T): T {
    try {
      return body();
    } catch (error) {
      if (error instanceof TypeError) throw new TypeError(this.#where(who, error.message));
      if (error instanceof RangeError) throw new RangeError(this.#where(who, error.message));
      throw error;
    }
  }

  #where(who: string, message: string): string {
    return `${[...this.#scopes, who].join(" > ")}: ${message}`;
  }

  #fail(who: string, message: string): never {
    throw new RangeError(this.#where(who, message));
  }
}
