// Memory of arrays, given back at once. Arrays that nobody knows any more wait for the garbage collector, which is in no
// hurry: a model's weights would lie beside ONNX Runtime's copy of them through the first calls.

/** Smaller ones are not worth it, and may be parts of a pool that others use (Node's is of 8 KiB). */
const LEAST_BYTES = 64 * 1024;

/** Frees the buffers of arrays; every view of them has no elements afterwards. */
export function freeArrays(arrays: Iterable<ArrayBufferView>): void {
  const buffers = new Set<ArrayBuffer>();
  for (const { buffer } of arrays) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength >= LEAST_BYTES) buffers.add(buffer);
  }
  // They go along with a message that is dropped: ArrayBuffer.prototype.transfer is younger than Node 20.
  const { port1, port2 } = new MessageChannel();
  try {
    port1.postMessage(null, [...buffers]);
  } finally {
    port1.close();
    port2.close();
  }
}
