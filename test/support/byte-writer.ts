// Grows a little-endian byte string: the base of the header writers that tests build files with.

export class ByteWriter {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  length = 0;

  #room(count: number): number {
    while (this.length + count > this.#bytes.length) {
      const bigger = new Uint8Array(this.#bytes.length * 2);
      bigger.set(this.#bytes);
      this.#bytes = bigger;
      this.#view = new DataView(bigger.buffer);
    }
    const at = this.length;
    this.length += count;
    return at;
  }

  u8(value: number): this {
    const at = this.#room(1);
    this.#view.setUint8(at, value);
    return this;
  }
  u16(value: number): this {
    const at = this.#room(2);
    this.#view.setUint16(at, value, true);
    return this;
  }
  u32(value: number): this {
    const at = this.#room(4);
    this.#view.setUint32(at, value, true);
    return this;
  }
  u64(value: number | bigint): this {
    const at = this.#room(8);
    this.#view.setBigUint64(at, BigInt(value), true);
    return this;
  }
  f32(value: number): this {
    const at = this.#room(4);
    this.#view.setFloat32(at, value, true);
    return this;
  }
  f64(value: number): this {
    const at = this.#room(8);
    this.#view.setFloat64(at, value, true);
    return this;
  }
  bytes(value: Uint8Array): this {
    const at = this.#room(value.length);
    this.#bytes.set(value, at);
    return this;
  }
  zeros(count: number): this {
    this.#room(count);
    return this;
  }
  padTo(multiple: number): this {
    return this.zeros((multiple - (this.length % multiple)) % multiple);
  }
  done(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.length);
  }
}

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
