// Sizes of axes that may not be known yet. A Dim is a number, or a polynomial with integer coefficients over named
// sizes, kept as its canonical text ("past+tokens", "2*tokens", "batch*tokens-1"), so that two Dims are equal exactly
// when they are === . Names are bound by the inputs of a run.

export type Dim = number | string;

/** Monomial ("", "tokens", "batch*tokens") → coefficient. */
type Polynomial = Map<string, number>;

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function parse(dim: Dim): Polynomial {
  const out: Polynomial = new Map();
  if (typeof dim === "number") {
    if (!Number.isInteger(dim)) throw new RangeError(`dim: expected an integer or a name, got ${dim}`);
    out.set("", dim);
    return out;
  }
  const terms = dim.replace(/\s+/g, "").match(/[+-]?[^+-]+/g);
  if (terms === null || terms.join("") !== dim.replace(/\s+/g, "")) throw notADim(dim);
  for (const term of terms) {
    let coefficient = term.startsWith("-") ? -1 : 1;
    const names: string[] = [];
    for (const factor of term.replace(/^[+-]/, "").split("*")) {
      if (/^\d+$/.test(factor)) coefficient *= Number(factor);
      else if (NAME.test(factor)) names.push(factor);
      else throw notADim(dim);
    }
    const monomial = names.sort().join("*");
    out.set(monomial, (out.get(monomial) ?? 0) + coefficient);
  }
  return out;
}

function notADim(dim: string): RangeError {
  return new RangeError(`dim: expected an integer, a name, or a sum of products of them, got ${JSON.stringify(dim)}`);
}

function format(polynomial: Polynomial): Dim {
  const terms = [...polynomial].filter(([, coefficient]) => coefficient !== 0);
  if (terms.length === 0) return 0;
  if (terms.length === 1 && terms[0]![0] === "") return terms[0]![1];
  // Constants last, positive terms first, so that no text begins with a minus unless every term has one.
  terms.sort(
    ([a, x], [b, y]) => Number(a === "") - Number(b === "") || Number(x < 0) - Number(y < 0) || (a < b ? -1 : 1),
  );
  let text = "";
  for (const [monomial, coefficient] of terms) {
    const size = Math.abs(coefficient);
    const body = monomial === "" ? String(size) : size === 1 ? monomial : `${size}*${monomial}`;
    text += coefficient < 0 ? `-${body}` : text === "" ? body : `+${body}`;
  }
  return text;
}

/** The canonical form of a size. Throws RangeError for text that is not one. */
export function canonicalDim(dim: Dim): Dim {
  return typeof dim === "number" ? dim : format(parse(dim));
}

/** a + b. */
export function addDims(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return a + b;
  const out = parse(a);
  for (const [monomial, coefficient] of parse(b)) out.set(monomial, (out.get(monomial) ?? 0) + coefficient);
  return format(out);
}

/** a − b. */
export function subtractDims(a: Dim, b: Dim): Dim {
  return addDims(a, multiplyDims(b, -1));
}

/** a · b. */
export function multiplyDims(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return a * b;
  const out: Polynomial = new Map();
  const right = parse(b);
  for (const [x, m] of parse(a)) {
    for (const [y, n] of right) {
      const names = [...(x === "" ? [] : x.split("*")), ...(y === "" ? [] : y.split("*"))];
      const monomial = names.sort().join("*");
      out.set(monomial, (out.get(monomial) ?? 0) + m * n);
    }
  }
  return format(out);
}

/** a / b where b is a single product that divides every term of a; undefined otherwise. */
export function divideDims(a: Dim, b: Dim): Dim | undefined {
  const divisor = [...parse(b)].filter(([, coefficient]) => coefficient !== 0);
  if (divisor.length !== 1) return a === b ? 1 : undefined;
  const [names, coefficient] = divisor[0]!;
  const out: Polynomial = new Map();
  for (const [monomial, size] of parse(a)) {
    if (size % coefficient !== 0) return undefined;
    const rest = monomial === "" ? [] : monomial.split("*");
    for (const name of names === "" ? [] : names.split("*")) {
      const at = rest.indexOf(name);
      if (at < 0) return size === 0 ? 0 : undefined;
      rest.splice(at, 1);
    }
    out.set(rest.join("*"), size / coefficient);
  }
  return format(out);
}

/** The product of sizes; 1 of none. */
export function productOfDims(dims: readonly Dim[]): Dim {
  return dims.reduce<Dim>((product, dim) => multiplyDims(product, dim), 1);
}

/** The names in a size, each once. */
export function dimNames(dim: Dim): string[] {
  if (typeof dim === "number") return [];
  return [...new Set([...parse(dim).keys()].flatMap((monomial) => (monomial === "" ? [] : monomial.split("*"))))];
}

/** True when the size is one bare name, which an input's axis can bind. */
export function isDimName(dim: Dim): dim is string {
  return typeof dim === "string" && NAME.test(dim);
}

/** The terms of a size as [coefficient, names]; what a lowering needs to compute it at run time. */
export function dimTerms(dim: Dim): [number, string[]][] {
  return [...parse(dim)]
    .filter(([, coefficient]) => coefficient !== 0)
    .map(([monomial, coefficient]) => [coefficient, monomial === "" ? [] : monomial.split("*")]);
}

/** The value of a size under bindings. Throws RangeError for a name that is not bound. */
export function evaluateDim(dim: Dim, bindings: ReadonlyMap<string, number>): number {
  if (typeof dim === "number") return dim;
  const bare = bindings.get(dim);
  if (bare !== undefined) return bare;
  let sum = 0;
  for (const [coefficient, names] of dimTerms(dim)) {
    let product = coefficient;
    for (const name of names) {
      const size = bindings.get(name);
      if (size === undefined) throw new RangeError(`dim: expected ${JSON.stringify(name)} to be bound by an input`);
      product *= size;
    }
    sum += product;
  }
  return sum;
}

/** The sizes of a shape under bindings. */
export function evaluateShape(shape: readonly Dim[], bindings: ReadonlyMap<string, number>): number[] {
  return shape.map((dim) => evaluateDim(dim, bindings));
}
