// Tensor bytes out of a source, in pieces: beside the result a reader holds two buffers of a megabyte, one being filled
// while the other is decoded.

import type { ByteSource } from "../bytes/byte-source.ts";

/** Large enough to make the call to the system cheap, small enough that decoding finds the bytes in the cache. */
const pieceBytes = 2 ** 20;

/**
 * Reads `byteLength` bytes from `offset` in whole units of `unitBytes` and hands them on in order: the bytes, and the
 * number of the first unit in them. The bytes are only valid during the call.
 */
export async function readUnits(
  source: ByteSource,
  offset: number,
  byteLength: number,
  unitBytes: number,
  use: (bytes: Uint8Array, units: number, firstUnit: number) => void,
): Promise<void> {
  const unitsAPiece = Math.max(1, Math.floor(pieceBytes / unitBytes));
  const totalUnits = byteLength / unitBytes;
  const buffers: Uint8Array[] = [];
  const fetchPiece = async (first: number, turn: number): Promise<Uint8Array> => {
    const length = Math.min(unitsAPiece, totalUnits - first) * unitBytes;
    const at = offset + first * unitBytes;
    if (source.readInto === undefined) {
      const bytes = await source.read(at, length);
      // A Buffer's slice would be a view where decoders count on a copy.
      return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    buffers[turn] ??= new Uint8Array(length);
    const target = buffers[turn].subarray(0, length);
    await source.readInto(at, target);
    return target;
  };
  let turn = 0;
  let next = totalUnits > 0 ? fetchPiece(0, turn) : null;
  for (let first = 0; next !== null; first += unitsAPiece) {
    const bytes = await next;
    turn ^= 1;
    const following = first + unitsAPiece;
    next = following < totalUnits ? fetchPiece(following, turn) : null;
    try {
      use(bytes, bytes.byteLength / unitBytes, first);
    } catch (error) {
      // No read may go on behind the error.
      await next?.catch(() => {});
      throw error;
    }
  }
}

/** Fills bytes from a source. */
export async function readBytes(source: ByteSource, offset: number, target: Uint8Array): Promise<void> {
  if (source.readInto !== undefined) return source.readInto(offset, target);
  for (let done = 0; done < target.length; done += pieceBytes) {
    const length = Math.min(pieceBytes, target.length - done);
    target.set(await source.read(offset + done, length), done);
  }
}

/** Index of the first NaN or infinity in values[from .. to), looking at every `stride`-th; −1 when there is none. */
export function findNotFinite(values: Float32Array, from: number, to: number, stride: number): number {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = from; i < to; i += stride) if ((bits[i]! & 0x7f800000) === 0x7f800000) return i;
  return -1;
}
