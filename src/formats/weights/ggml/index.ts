// The tensor types of GGUF that are read. Left out: the IQ1, IQ2 and IQ3 types, whose codes name points of large grids;
// Q8_1 and Q8_K, which stand in no file; the row-interleaved types; Q1_0 and Q2_0.

import type { Codec } from "../codec.ts";
import { plainGgmlCodecs } from "../plain.ts";
import { codebookCodecs } from "./codebooks.ts";
import { simpleCodecs } from "./simple.ts";
import { superBlockCodecs } from "./super-blocks.ts";
import { ternaryCodecs } from "./ternary.ts";

export const ggmlCodecs: ReadonlyMap<string, Codec> = new Map(
  [...plainGgmlCodecs, ...simpleCodecs, ...superBlockCodecs, ...codebookCodecs, ...ternaryCodecs].map((codec) => [
    codec.name,
    codec,
  ]),
);
