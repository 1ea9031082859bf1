// What every position encoding must keep, by the site where it acts. A new encoding calls runEncodingConformance in
// encodings.test.ts and gets these for free; a law that it breaks by design is waived by name, with the reason.

import { describe, expect, test } from "vitest";
import type {
  AttentionBiasEncoding,
  EmbeddingEncoding,
  PositionEncoding,
  QueryKeyEncoding,
} from "../../src/encodings/position-encoding.ts";
import { dot, randomNumbers, rotate } from "../support/attention.ts";
import { largestError } from "../support/encodings-other.ts";

/** Laws that an encoding may break by design. */
export type WaivableLaw =
  /** Scores (or biases) of a shifted pair are the same. */
  | "relative"
  /** A vector keeps its length, up to one factor for all positions. */
  | "keeps norms"
  /** Queries and keys of one position have the same tables. */
  | "same tables for queries and keys";

export interface ConformanceOptions {
  readonly waive?: Readonly<Partial<Record<WaivableLaw, string>>>;
  /** Lengths between which a length-dependent encoding must change; 64 and 100000 when absent. */
  readonly lengths?: readonly [number, number];
}

/** Declares the tests of one encoding. */
export function runEncodingConformance(encoding: PositionEncoding, options: ConformanceOptions = {}): void {
  const law = (name: WaivableLaw, check: () => void): void => {
    const reason = options.waive?.[name];
    if (reason === undefined) test(name, check);
    // A waiver that is not needed is a mistake: the law must really be broken.
    else test.fails(`not ${name}: ${reason}`, check);
  };

  test("has a name, and a site of the union", () => {
    expect(encoding.name).toMatch(/^[a-z0-9][a-z0-9:-]*$/);
    expect(["none", "embedding", "query-key", "attention-bias"]).toContain(encoding.site);
  });

  switch (encoding.site) {
    case "none":
      break;
    case "embedding":
      describe("embedding rows", () => embeddingLaws(encoding));
      break;
    case "query-key":
      describe("query and key tables", () => queryKeyLaws(encoding, options, law));
      break;
    case "attention-bias":
      describe("attention bias", () => biasLaws(encoding, law));
      break;
  }
}

type Law = (name: WaivableLaw, check: () => void) => void;

function embeddingLaws(encoding: EmbeddingEncoding): void {
  const { hiddenSize, maxPositions } = encoding;
  const positions = [0, 2, 1, 0].map((p) => Math.min(p, maxPositions - 1));

  test("are [T, C] finite numbers, and none for no positions", () => {
    const rows = encoding.rows(positions);
    expect(rows).toBeInstanceOf(Float64Array);
    expect(rows).toHaveLength(positions.length * hiddenSize);
    expect(rows.every(Number.isFinite)).toBe(true);
    expect(encoding.rows([])).toHaveLength(0);
  });

  test("do not depend on each other, nor on the kind of array", () => {
    const rows = encoding.rows(positions);
    positions.forEach((position, t) => {
      expect(encoding.rows([position])).toEqual(rows.slice(t * hiddenSize, (t + 1) * hiddenSize));
    });
    expect(encoding.rows(Float64Array.from(positions))).toEqual(rows);
  });

  pure(() => [encoding.rows(positions)], positions);

  test("end where maxPositions says, with an error that names both numbers", () => {
    if (maxPositions === Number.POSITIVE_INFINITY) {
      expect(encoding.rows([1_000_000]).every(Number.isFinite)).toBe(true);
      return;
    }
    expect(encoding.rows([maxPositions - 1])).toHaveLength(hiddenSize);
    expect(() => encoding.rows([maxPositions])).toThrow(RangeError);
    expect(() => encoding.rows([maxPositions])).toThrow(new RegExp(`${maxPositions}.*got ${maxPositions}`));
  });
}

function queryKeyLaws(encoding: QueryKeyEncoding, options: ConformanceOptions, law: Law): void {
  const { headDim, rotaryDim, layout } = encoding;
  const numPairs = rotaryDim / 2;
  const positions = [0, 1, 5, 63, 40];
  const length = 64;

  test("have an even width of at most the head's, and a known layout", () => {
    expect(Number.isInteger(numPairs) && numPairs >= 1 && rotaryDim <= headDim).toBe(true);
    expect(["half", "interleaved"]).toContain(layout);
  });

  test("are [T, P] finite numbers, and none for no positions", () => {
    for (const tables of [encoding.queryTables(positions, length), encoding.keyTables(positions, length)]) {
      for (const table of [tables.cos, tables.sin]) {
        expect(table).toBeInstanceOf(Float64Array);
        expect(table).toHaveLength(positions.length * numPairs);
        expect(table.every(Number.isFinite)).toBe(true);
      }
    }
    expect(encoding.queryTables([], length).cos).toHaveLength(0);
  });

  test("hold a row a position, the same alone or among others: a cached step is a row of the whole", () => {
    const whole = encoding.keyTables(Float64Array.from(positions), length);
    positions.forEach((position, t) => {
      const alone = encoding.keyTables([position], length);
      expect(alone.cos).toEqual(whole.cos.slice(t * numPairs, (t + 1) * numPairs));
      expect(alone.sin).toEqual(whole.sin.slice(t * numPairs, (t + 1) * numPairs));
    });
  });

  pure(() => {
    const [q, k] = [encoding.queryTables(positions, length), encoding.keyTables(positions, length)];
    return [q.cos, q.sin, k.cos, k.sin];
  }, positions);

  test(`change with the length: ${encoding.dependsOnLength}, as dependsOnLength says`, () => {
    const [a, b] = options.lengths ?? [64, 100_000];
    const changed =
      largestError(encoding.keyTables(positions, a).cos, encoding.keyTables(positions, b).cos) > 0 ||
      largestError(encoding.queryTables(positions, a).sin, encoding.queryTables(positions, b).sin) > 0;
    expect(changed).toBe(encoding.dependsOnLength);
  });

  law("same tables for queries and keys", () => {
    expect(encoding.keyTables(positions, length)).toEqual(encoding.queryTables(positions, length));
  });

  const random = randomNumbers(headDim);
  const q = Float64Array.from({ length: headDim }, random);
  const k = Float64Array.from({ length: headDim }, random);

  law("keeps norms", () => {
    const tables = encoding.queryTables(positions, length);
    const norm = (vector: Float64Array) => dot(vector.slice(0, rotaryDim), vector.slice(0, rotaryDim));
    const factors = positions.map((_, t) => norm(rotate(q, tables, t, numPairs, layout)) / norm(q));
    expect(
      largestError(
        factors,
        factors.map(() => factors[0]!),
      ),
    ).toBeLessThan(1e-12);
  });

  law("relative", () => {
    const total = 6000;
    const score = (queryPosition: number, keyPosition: number) =>
      dot(
        rotate(q, encoding.queryTables([queryPosition], total), 0, numPairs, layout),
        rotate(k, encoding.keyTables([keyPosition], total), 0, numPairs, layout),
      );
    for (const difference of [0, 1, 77, 900]) {
      const expected = score(difference, 0);
      for (const shift of [1, 512, 5000]) {
        expect(Math.abs(score(difference + shift, shift) - expected)).toBeLessThan(1e-10 * headDim);
      }
    }
  });
}

function biasLaws(encoding: AttentionBiasEncoding, law: Law): void {
  const { numHeads } = encoding;
  const keys = Array.from({ length: 40 }, (_, j) => j);
  const queries = [39, 0, 17];
  const ofHead = (bias: Float64Array, head: number) =>
    bias.slice((head * bias.length) / numHeads, ((head + 1) * bias.length) / numHeads);

  test("is [H, T, S] finite numbers, and none for no queries or no keys", () => {
    const bias = encoding.bias(queries, keys);
    expect(Number.isInteger(numHeads) && numHeads >= 1).toBe(true);
    expect(bias).toBeInstanceOf(Float64Array);
    expect(bias).toHaveLength(numHeads * queries.length * keys.length);
    expect(bias.every(Number.isFinite)).toBe(true);
    expect(encoding.bias([], keys)).toHaveLength(0);
    expect(encoding.bias(queries, [])).toHaveLength(0);
  });

  test("takes rows at absolute positions: a cached step is a row of the whole", () => {
    const whole = encoding.bias(keys, keys);
    for (const query of queries) {
      const step = encoding.bias([query], keys);
      for (let head = 0; head < numHeads; head++) {
        expect(ofHead(step, head)).toEqual(ofHead(whole, head).slice(query * keys.length, (query + 1) * keys.length));
      }
    }
    expect(encoding.bias(Int32Array.from(queries), Float64Array.from(keys))).toEqual(encoding.bias(queries, keys));
  });

  pure(() => [encoding.bias(queries, keys)], queries, keys);

  test("refuses positions that are not integers of at least 0", () => {
    for (const bad of [-1, 0.5, Number.NaN]) {
      expect(() => encoding.bias([bad], keys)).toThrow(RangeError);
      expect(() => encoding.bias(queries, [bad])).toThrow(RangeError);
    }
  });

  law("relative", () => {
    const bias = encoding.bias(queries, keys);
    for (const shift of [1, 1000, 123_456]) {
      const shifted = encoding.bias(
        queries.map((p) => p + shift),
        keys.map((p) => p + shift),
      );
      expect(shifted).toEqual(bias);
    }
  });
}

/** The same call gives the same numbers in new memory, and leaves its arguments alone. */
function pure(call: () => readonly Float64Array[], ...inputs: readonly (readonly number[])[]): void {
  test("is pure: the same numbers again, in memory of its own, and arguments untouched", () => {
    const before = inputs.map((input) => [...input]);
    const first = call();
    const copies = first.map((array) => array.slice());
    for (const array of first) array.fill(Number.NaN);
    expect(call()).toEqual(copies);
    expect(inputs).toEqual(before);
  });
}
