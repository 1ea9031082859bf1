// How a dtype's bytes become numbers. A dtype is a sequence of units (one element, or a block of a ggml type); a codec
// turns a run of units into float32, and block types also into MatMulNBits' layout. Loops allocate nothing.

export interface Codec {
  /** As files call it. */
  readonly name: string;
  /** Elements and bytes of a unit. */
  readonly unitElements: number;
  readonly unitBytes: number;
  readonly decode: Decode;
  /** NaN or infinity anywhere shows in every so-manieth element: 1 for plain numbers; for blocks the run that shares its
   *  scales, as a scale that is not finite spoils all of them. */
  readonly finiteStride: number;
  /** The bytes are the result: float32. */
  readonly identity?: true;
  readonly repack?: Repack;
}

/** Reads `units` units from the start of `bytes` and writes their elements to the start of `out`. */
export type Decode = (bytes: Uint8Array, units: number, out: Float32Array) => void;

/** A block type in MatMulNBits' layout. Zero points are the implicit 2^(bits − 1). */
export interface Repack {
  readonly bits: 4 | 8;
  /** Elements that share a scale. */
  readonly blockSize: number;
  /** Whether it needs blockMinimum; without, `run` does not touch `minimum`. */
  readonly minimum: boolean;
  /** Reads `units` units from the start of `bytes` and writes their blocks to the start of the others. */
  readonly run: (
    bytes: Uint8Array,
    units: number,
    blocks: Uint8Array,
    scales: Float32Array,
    minimum: Float32Array,
  ) => void;
}
