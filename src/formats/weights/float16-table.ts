// Every binary16 number as float32: 65,536 entries, 256 KB, built at the first use. A look-up beats arithmetic, as
// scripts have no float16 instruction.

let table: Float32Array | undefined;

/** float32 values by the 16 bits of a binary16; exact, NaN bits included (read them through a Uint32Array). */
export function float16Table(): Float32Array {
  if (table !== undefined) return table;
  const values = new Float32Array(65_536);
  const bits = new Uint32Array(values.buffer);
  for (let i = 0; i < 65_536; i++) {
    const sign = (i & 0x8000) << 16;
    const exponent = (i >> 10) & 31;
    const fraction = i & 1023;
    if (exponent === 0) values[i] = (sign === 0 ? fraction : -fraction) * 2 ** -24;
    else bits[i] = sign | ((exponent === 31 ? 255 : exponent + 112) << 23) | (fraction << 13);
  }
  table = values;
  return values;
}
