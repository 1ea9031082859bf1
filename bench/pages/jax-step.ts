// The step of bench/training.ts in jax-js: the same model (Llama's blocks over bytes, RoPE, causal attention), loss,
// clipping and AdamW, compiled as one function. jax-js counts owners: an operation takes its arguments, `.ref` keeps one.

/** jax-js itself; not a dependency, so without its types. */
// biome-ignore lint/suspicious/noExplicitAny: its arrays are used as they come
type Any = any;

export interface JaxSizes {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly batchSize: number;
  readonly length: number;
}

export interface JaxStep {
  /** One update; its loss before it. */
  step(tokens: Int32Array, targets: Int32Array): Promise<number>;
}

const BETAS = [0.9, 0.95] as const;
const [RATE, DECAY, EPSILON] = [1e-3, 0.1, 1e-8];

/** @param weights by our names, float32, matrices [out, in] */
export async function jaxStep(
  jax: Any,
  sizes: JaxSizes,
  weights: ReadonlyMap<string, { readonly shape: readonly number[]; readonly data: Float32Array }>,
): Promise<JaxStep> {
  const { numpy: np, nn, jit, valueAndGrad, tree } = jax;
  await jax.init("wasm");
  jax.defaultDevice("wasm");
  const { vocabSize, hiddenSize: C, numLayers, numHeads: H, batchSize: B, length: T } = sizes;
  const D = C / H;
  const array = (name: string): Any => {
    const { data, shape } = weights.get(name)!;
    return np.array(data.slice()).reshape([...shape]);
  };
  // q, k and v as one product, gate and up as one.
  const joined = (layer: number, ...names: string[]): Any =>
    np.concatenate(names.map((name) => array(`layers.${layer}.${name}.weight`)));
  let params: Any = {
    embedding: array("embedding.weight"),
    final: array("finalNorm.weight"),
    layers: Array.from({ length: numLayers }, (_, l) => ({
      qkv: joined(l, "query", "key", "value"),
      out: joined(l, "attentionOutput"),
      gateUp: joined(l, "gate", "up"),
      down: joined(l, "down"),
      norm1: joined(l, "attentionNorm"),
      norm2: joined(l, "mlpNorm"),
    })),
  };
  const zeros = (): Any => tree.map((x: Any) => np.zeros(x.shape), params);
  let [first, second] = [zeros(), zeros()];
  const angle = (i: number): number => Math.floor(i / (D / 2)) * 10000 ** ((-2 * (i % (D / 2))) / D);
  const table = (of: (x: number) => number): Any =>
    np.array(Float32Array.from({ length: (T * D) / 2 }, (_, i) => of(angle(i)))).reshape([T, 1, D / 2]);
  const [cos, sin] = [table(Math.cos), table(Math.sin)];

  const norm = (x: Any, weight: Any): Any => {
    const scale = np.reciprocal(np.sqrt(np.mean(np.square(x.ref), -1, { keepdims: true }).add(EPSILON_NORM)));
    return x.mul(scale).mul(weight);
  };
  const linear = (x: Any, weight: Any): Any => np.matmul(x, np.transpose(weight));
  const rotate = (x: Any, c: Any, s: Any): Any => {
    const [a, b] = np.split(x, 2, -1);
    const left = a.ref.mul(c.ref).sub(b.ref.mul(s.ref));
    return np.concatenate([left, b.mul(c).add(a.mul(s))], -1);
  };
  const loss = (p: Any, tokens: Any, targets: Any, c: Any, s: Any): Any => {
    let x = np.matmul(nn.oneHot(tokens, vocabSize), p.embedding.ref);
    for (const layer of p.layers) {
      const [q, k, v] = np.split(linear(norm(x.ref, layer.norm1), layer.qkv).reshape([B, T, 3 * H, D]), 3, 2);
      const mixed = nn.dotProductAttention(rotate(q, c.ref, s.ref), rotate(k, c.ref, s.ref), v, { isCausal: true });
      x = x.add(linear(mixed.reshape([B * T, C]), layer.out));
      const [gate, up] = np.split(linear(norm(x.ref, layer.norm2), layer.gateUp), 2, -1);
      x = x.add(linear(nn.silu(gate).mul(up), layer.down));
    }
    c.dispose();
    s.dispose();
    const logits = linear(norm(x, p.final), p.embedding);
    const chosen = np.sum(nn.logSoftmax(logits, -1).mul(nn.oneHot(targets, vocabSize)), -1);
    return np.mean(chosen).mul(-1);
  };
  const whole = jit((p: Any, m: Any, v: Any, tokens: Any, targets: Any, c: Any, s: Any, size: Any, epsilon: Any) => {
    const [value, grads] = valueAndGrad(loss)(tree.ref(p), tokens, targets, c, s);
    const squares = tree.leaves(tree.ref(grads)).map((g: Any) => np.sum(np.square(g)));
    const length = np.sqrt(squares.reduce((a: Any, b: Any) => a.add(b)));
    const factor = np.minimum(np.reciprocal(length.add(1e-6)), 1);
    const [ps, treedef] = tree.flatten(p);
    const [gs, ms, vs] = [grads, m, v].map((one) => tree.leaves(one));
    const out = ps.map((w: Any, i: number) => {
      const g = gs[i].mul(factor.ref);
      const moment = ms[i].mul(BETAS[0]).add(g.ref.mul(1 - BETAS[0]));
      const square = vs[i].mul(BETAS[1]).add(np.square(g).mul(1 - BETAS[1]));
      const update = moment.ref.mul(size.ref).div(np.sqrt(square.ref).add(epsilon.ref));
      const kept = w.shape.length >= 2 ? w.mul(1 - RATE * DECAY) : w;
      return [kept.add(update), moment, square];
    });
    factor.dispose();
    size.dispose();
    epsilon.dispose();
    const [next, moments, seconds] = [0, 1, 2].map((i) =>
      tree.unflatten(
        treedef,
        out.map((one: Any) => one[i]),
      ),
    );
    return [value, next, moments, seconds];
  });
  let steps = 0;
  return {
    async step(tokens, targets) {
      steps++;
      const [one, two] = [1 - BETAS[0] ** steps, Math.sqrt(1 - BETAS[1] ** steps)];
      const ids = (x: Int32Array): Any => np.array(x, { dtype: np.int32 });
      const size = np.array((-RATE * two) / one);
      const epsilon = np.array(EPSILON * two);
      const [value, ...rest] = whole(params, first, second, ids(tokens), ids(targets), cos.ref, sin.ref, size, epsilon);
      [params, first, second] = rest;
      return Number(await value.jsAsync());
    },
  };
}

const EPSILON_NORM = 1e-5;
