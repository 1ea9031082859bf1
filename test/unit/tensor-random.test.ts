import { describe, expect, test } from "vitest";
import { random, randomFrom } from "../../src/tensor/index.ts";

describe("xoshiro128**", () => {
  test("state 1, 2, 3, 4 gives the sequence of the authors' C code", () => {
    const stream = randomFrom([1, 2, 3, 4]);
    expect(Array.from({ length: 10 }, () => stream.bits())).toEqual([
      11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
    ]);
  });

  test("SplitMix64 from seed 1234567 fills the state with its published first outputs", () => {
    // 6457827717110365317 and 3203168211198807973, lower word first.
    const words = (x: bigint) => [Number(x & 0xffffffffn), Number(x >> 32n)];
    expect(random(1234567).state()).toEqual([...words(6457827717110365317n), ...words(3203168211198807973n)]);
  });

  test("a stream goes on from its state", () => {
    const stream = random(3);
    for (let i = 0; i < 5; i++) stream.bits();
    const copy = randomFrom(stream.state());
    expect(Array.from({ length: 8 }, () => copy.bits())).toEqual(Array.from({ length: 8 }, () => stream.bits()));
  });

  test("seeds that are not integers of at least 0, and the zero state, are errors", () => {
    expect(() => random(-1)).toThrow(/at least 0/);
    expect(() => random(0.5)).toThrow(/integer/);
    expect(() => randomFrom([0, 0, 0, 0])).toThrow(/four zeros/);
    expect(() => random(1).integer(0)).toThrow(/bound/);
  });
});

describe("distributions", () => {
  const n = 200_000;

  test("uniforms fill [0, 1) evenly", () => {
    const stream = random(1);
    const bins = new Array<number>(10).fill(0);
    for (let i = 0; i < n; i++) bins[Math.floor(stream.uniform() * 10)]!++;
    // 5 standard deviations of a bin: √(n · 0.1 · 0.9) = 134.
    for (const count of bins) expect(Math.abs(count - n / 10)).toBeLessThan(670);
  });

  test("normals have the moments and tails of the standard normal", () => {
    const stream = random(2);
    let [sum, square, fourth, past2] = [0, 0, 0, 0];
    for (let i = 0; i < n; i++) {
      const x = stream.normal();
      sum += x;
      square += x * x;
      fourth += x ** 4;
      if (Math.abs(x) > 2) past2++;
    }
    expect(Math.abs(sum / n)).toBeLessThan(5 / Math.sqrt(n));
    expect(Math.abs(square / n - 1)).toBeLessThan(5 * Math.sqrt(2 / n));
    expect(Math.abs(fourth / n - 3)).toBeLessThan(5 * Math.sqrt(96 / n));
    expect(Math.abs(past2 / n - 0.0455)).toBeLessThan(5 * Math.sqrt(0.0455 / n));
  });

  test("the logarithm inside agrees with Math.log to a few units in the last place", () => {
    // The polar method shows it: for a stream in the same state, x² + y² = −2 ln s.
    const stream = random(5);
    for (let i = 0; i < 2000; i++) {
      const copy = randomFrom(stream.state());
      let s = 0;
      do {
        const u = 2 * copy.uniform() - 1;
        const v = 2 * copy.uniform() - 1;
        s = u * u + v * v;
      } while (s === 0 || s >= 1);
      const [x, y] = [stream.normal(), stream.normal()];
      expect((x * x + y * y) / (-2 * Math.log(s))).toBeCloseTo(1, 13);
    }
  });

  test("a shuffle is a permutation, and each of the six orders of three comes up as often", () => {
    const stream = random(9);
    const counts = new Map<string, number>();
    for (let i = 0; i < 12000; i++) {
      const order = stream.shuffle([0, 1, 2]).join("");
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect(counts.size).toBe(6);
    for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(5 * 41);
  });

  test("a fork is another stream, and drawing from it leaves its parent where it was", () => {
    const [a, b] = [random(4), random(4)];
    const fork = a.fork();
    b.fork();
    for (let i = 0; i < 100; i++) fork.bits();
    expect(a.bits()).toBe(b.bits());
    expect(fork.bits()).not.toBe(a.bits());
  });
});
