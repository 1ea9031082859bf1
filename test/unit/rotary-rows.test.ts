import { expect, test } from "vitest";
import { RotaryRows } from "../../src/models/rotary-rows.ts";
import { random } from "../../src/tensor/index.ts";

const pairs = 3;
/** Values that say their row and pair. */
function rowsOf(asked: [number, number][]): RotaryRows {
  return new RotaryRows(pairs, 100, (from, to) => {
    asked.push([from, to]);
    const value = (i: number): number => from * 10 + Math.floor(i / pairs) * 10 + (i % pairs);
    const cos = Float32Array.from({ length: (to - from) * pairs }, (_, i) => value(i));
    return { cos, sin: cos.map((x) => -x) };
  });
}

function expectRows(rows: RotaryRows, first: number, end: number): void {
  const { cos, sin } = rows.from(first, end);
  const wanted = Float32Array.from(
    { length: (end - first) * pairs },
    (_, i) => (first + Math.floor(i / pairs)) * 10 + (i % pairs),
  );
  expect(cos.length % pairs).toBe(0);
  expect(cos.subarray(0, wanted.length)).toEqual(wanted);
  expect(sin.subarray(0, wanted.length)).toEqual(wanted.map((x) => -x));
}

test("rows are those of their positions, wherever they begin and in whichever order they are asked for", () => {
  const rows = rowsOf([]);
  const stream = random(4);
  let first = 0;
  for (let i = 0; i < 300; i++) {
    // Mostly onwards, as a sequence grows; now and then another sequence, or a piece taken up again.
    const jump = stream.uniform();
    first = jump < 0.05 ? 0 : jump < 0.1 ? Math.max(0, first - stream.integer(2000)) : first + stream.integer(400);
    expectRows(rows, first, first + 1 + stream.integer(900));
  }
});

test("no row is computed twice while a window moves on, and memory stays a window's", () => {
  const asked: [number, number][] = [];
  const rows = rowsOf(asked);
  let largest = 0;
  for (let end = 1; end < 20_000; end += 37) {
    const first = Math.max(0, end - 256);
    expectRows(rows, first, end);
    largest = Math.max(largest, rows.from(first, end).cos.buffer.byteLength / 4 / pairs);
  }
  for (const [i, [from]] of asked.entries()) if (i > 0) expect(from).toBe(asked[i - 1]![1]);
  expect(largest).toBeLessThan(4096);
});
