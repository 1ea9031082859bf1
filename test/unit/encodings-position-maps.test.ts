import { describe, expect, test } from "vitest";
import { dualChunkMap } from "../../src/encodings/position-maps/dual-chunk.ts";
import type { PositionMap } from "../../src/encodings/position-maps/position-map.ts";
import { reropeMap } from "../../src/encodings/position-maps/rerope.ts";
import { selfExtendMap } from "../../src/encodings/position-maps/self-extend.ts";
import { stringMap } from "../../src/encodings/position-maps/string.ts";
import { otherEncodings } from "../support/encodings-other.ts";

const factories: Record<string, (options: never) => PositionMap> = {
  "self-extend": selfExtendMap,
  rerope: reropeMap,
  string: stringMap,
  "dual-chunk": dualChunkMap,
};

describe("position maps", () => {
  test.each(otherEncodings.positionMaps)(
    "$map $options: the matrix is the one that the authors' masks and chunks build",
    (c) => {
      const map = factories[c.map]!(c.options as never);
      const got = c.matrix.map((row, q) => row.map((_, k) => (k <= q ? map.relativePosition(q, k) : -1)));
      expect(got).toEqual(c.matrix);
    },
  );

  test("leaky ReRoPE grows past the window at 1/leak, without a jump", () => {
    const map = reropeMap({ trainedLength: 4096, window: 512, leak: 16 });
    expect(map.relativePosition(1000, 489)).toBe(511);
    expect(map.relativePosition(1000, 488)).toBe(512);
    expect(map.relativePosition(1016, 488)).toBe(513);
    expect(map.relativePosition(57840, 0)).toBe(4095);
    expect(map.maxLength).toBe(57841);
  });

  test("Self-Extend's limit is the authors' (L − W)·G + W", () => {
    expect(selfExtendMap({ trainedLength: 4096, groupSize: 8, neighborWindow: 1024 }).maxLength).toBe(
      (4096 - 1024) * 8 + 1024,
    );
  });

  test("Qwen2.5-1M's dual chunks reach one past its trained positions, ChunkLlama's never do", () => {
    const qwen = dualChunkMap({ trainedLength: 262144, chunkSize: 262144, localSize: 8192 });
    expect(qwen.largestRelativePosition(1_000_000)).toBe(262144);
    expect(qwen.maxLength).toBe(262144);
    const chunkLlama = dualChunkMap({ trainedLength: 4096, chunkSize: 3072, localSize: 256 });
    expect(chunkLlama.maxLength).toBe(Number.POSITIVE_INFINITY);
  });

  test("a key after its query has no relative position", () => {
    expect(() => reropeMap({ trainedLength: 16, window: 4 }).relativePosition(3, 4)).toThrow(
      /at most the query's, 3, got 4/,
    );
    expect(() => reropeMap({ trainedLength: 16, window: 4 }).relativePosition(3.5, 1)).toThrow(/queryPosition/);
  });

  test("settings that would leave the trained range at once are refused", () => {
    expect(() => selfExtendMap({ trainedLength: 16, groupSize: 4, neighborWindow: 16 })).toThrow(
      /below trainedLength 16/,
    );
    expect(() => reropeMap({ trainedLength: 16, window: 16 })).toThrow(/below trainedLength 16/);
    expect(() => reropeMap({ trainedLength: 16, window: 4, leak: 0.5 })).toThrow(/leak of at least 1/);
    expect(() => stringMap({ trainedLength: 16, shift: 16, localWindow: 0 })).toThrow(/shift below/);
    expect(() => stringMap({ trainedLength: 16, shift: 8, localWindow: 9 })).toThrow(/at most shift 8, got 9/);
    expect(() => dualChunkMap({ trainedLength: 16, chunkSize: 17, localSize: 1 })).toThrow(/at most trainedLength 16/);
    expect(() => dualChunkMap({ trainedLength: 16, chunkSize: 8, localSize: 8 })).toThrow(/below chunkSize 8/);
  });
});
