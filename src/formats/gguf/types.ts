// The element types of GGUF: of metadata values (gguf.h) and of tensors (ggml.h, with block sizes). A quantised tensor
// is rows of blocks; a block of `blockSize` elements takes `blockBytes` bytes.

/** Metadata value types by their number in the file. */
export const ggufValueTypes = [
  "u8",
  "i8",
  "u16",
  "i16",
  "u32",
  "i32",
  "f32",
  "bool",
  "string",
  "array",
  "u64",
  "i64",
  "f64",
] as const;

export type GgufValueType = (typeof ggufValueTypes)[number];
export type GgufScalarType = Exclude<GgufValueType, "string" | "array">;

export const ggufScalarBytes: { readonly [T in GgufScalarType]: number } = {
  u8: 1,
  i8: 1,
  u16: 2,
  i16: 2,
  u32: 4,
  i32: 4,
  f32: 4,
  bool: 1,
  u64: 8,
  i64: 8,
  f64: 8,
};

export interface GgmlType {
  readonly id: number;
  readonly name: string;
  readonly blockSize: number;
  readonly blockBytes: number;
}

const row = (id: number, name: string, blockSize: number, blockBytes: number): GgmlType => ({
  id,
  name,
  blockSize,
  blockBytes,
});

/** Every tensor type that GGUF files hold or have held. Numbers 4 and 5 (Q4_2, Q4_3) were gone before GGUF existed. */
export const ggmlTypes: readonly GgmlType[] = [
  row(0, "F32", 1, 4),
  row(1, "F16", 1, 2),
  row(2, "Q4_0", 32, 18),
  row(3, "Q4_1", 32, 20),
  row(6, "Q5_0", 32, 22),
  row(7, "Q5_1", 32, 24),
  row(8, "Q8_0", 32, 34),
  // 36 bytes since its two scales became 16-bit; older tables say 40. Activations only, not found in files.
  row(9, "Q8_1", 32, 36),
  row(10, "Q2_K", 256, 84),
  row(11, "Q3_K", 256, 110),
  row(12, "Q4_K", 256, 144),
  row(13, "Q5_K", 256, 176),
  row(14, "Q6_K", 256, 210),
  row(15, "Q8_K", 256, 292),
  row(16, "IQ2_XXS", 256, 66),
  row(17, "IQ2_XS", 256, 74),
  row(18, "IQ3_XXS", 256, 98),
  row(19, "IQ1_S", 256, 50),
  row(20, "IQ4_NL", 32, 18),
  row(21, "IQ3_S", 256, 110),
  row(22, "IQ2_S", 256, 82),
  row(23, "IQ4_XS", 256, 136),
  row(24, "I8", 1, 1),
  row(25, "I16", 1, 2),
  row(26, "I32", 1, 4),
  row(27, "I64", 1, 8),
  row(28, "F64", 1, 8),
  row(29, "IQ1_M", 256, 56),
  row(30, "BF16", 1, 2),
  // 31 to 33 and 36 to 38: Q4_0 and IQ4_NL with rows interleaved for one processor; no longer written.
  row(31, "Q4_0_4_4", 32, 18),
  row(32, "Q4_0_4_8", 32, 18),
  row(33, "Q4_0_8_8", 32, 18),
  row(34, "TQ1_0", 256, 54),
  row(35, "TQ2_0", 256, 66),
  row(36, "IQ4_NL_4_4", 32, 18),
  row(37, "IQ4_NL_4_8", 32, 18),
  row(38, "IQ4_NL_8_8", 32, 18),
  row(39, "MXFP4", 32, 17),
  row(40, "NVFP4", 64, 36),
  row(41, "Q1_0", 128, 18),
  row(42, "Q2_0", 64, 18),
];

const byId = new Map(ggmlTypes.map((type) => [type.id, type]));

/**
 * The type with this number, or undefined.
 *
 * @example
 * ```ts
 * import { ggmlTypeOf } from "longhand/formats";
 * ggmlTypeOf(12); // => { id: 12, name: "Q4_K", blockSize: 256, blockBytes: 144 }
 * ```
 */
export function ggmlTypeOf(id: number): GgmlType | undefined {
  return byId.get(id);
}
