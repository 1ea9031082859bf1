// Several things under way at once, taken up in order.

import { expect, test } from "vitest";
import { inOrder } from "../../src/evaluation/in-order.ts";

/** Work that ends when it is told to. */
function controlled() {
  const begun = new Map<number, { end: (error?: Error) => void; signal: AbortSignal }>();
  const work = (item: number, signal: AbortSignal): Promise<number> =>
    new Promise((resolve, reject) => {
      begun.set(item, { end: (error) => (error === undefined ? resolve(10 * item) : reject(error)), signal });
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  return { begun, work };
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

test("so many at once, results in the items' order, nothing begun before there is room", async () => {
  const { begun, work } = controlled();
  const got: [number, number][] = [];
  const all = inOrder([1, 2, 3, 4], 2, work, async (item, result) => void got.push([item, result]));
  await turn();
  expect([...begun.keys()]).toEqual([1, 2]);
  begun.get(2)!.end();
  await turn();
  expect(got).toEqual([]);
  begun.get(1)!.end();
  await turn();
  expect(got).toEqual([
    [1, 10],
    [2, 20],
  ]);
  expect([...begun.keys()]).toEqual([1, 2, 3, 4]);
  begun.get(4)!.end();
  begun.get(3)!.end();
  await all;
  expect(got.map(([item]) => item)).toEqual([1, 2, 3, 4]);
});

test("an error comes when it is its turn: what lies before is kept, what is under way is stopped", async () => {
  const { begun, work } = controlled();
  const got: number[] = [];
  const all = inOrder([1, 2, 3, 4, 5], 3, work, async (item) => void got.push(item));
  await turn();
  begun.get(2)!.end(new Error("broken"));
  await turn();
  expect(begun.get(3)!.signal.aborted).toBe(false);
  begun.get(1)!.end();
  await expect(all).rejects.toThrow("broken");
  expect(got).toEqual([1]);
  expect(begun.get(3)!.signal.aborted).toBe(true);
  expect(begun.has(5)).toBe(false);
});

test("a row that cannot be written stops the rest", async () => {
  const { begun, work } = controlled();
  const all = inOrder([1, 2], 2, work, async () => {
    throw new Error("disk full");
  });
  await turn();
  begun.get(1)!.end();
  await expect(all).rejects.toThrow("disk full");
  expect(begun.get(2)!.signal.aborted).toBe(true);
});

test("a concurrency that is none is an error", async () => {
  await expect(
    inOrder(
      [1],
      0,
      async () => 1,
      async () => {},
    ),
  ).rejects.toThrow(/at least 1, got 0/);
});
