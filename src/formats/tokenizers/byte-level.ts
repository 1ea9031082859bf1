// GPT-2's way of writing bytes as printable characters, in which byte-level vocabularies and their merges are stored:
// the 188 printable bytes of Latin-1 stand for themselves, the others for U+0100 onward in order (Radford et al. 2019,
// encoder.py). A space reads "Ġ", a line feed "Ċ".

const characters: readonly string[] = (() => {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

const bytesByCharacter: ReadonlyMap<string, number> = new Map(characters.map((one, byte) => [one, byte]));

/** The character that stands for a byte. */
export function byteCharacter(byte: number): string {
  return characters[byte]!;
}

/** Bytes as byte-level text. */
export function byteLevelText(bytes: Uint8Array, length: number = bytes.length): string {
  let text = "";
  for (let i = 0; i < length; i++) text += characters[bytes[i]!]!;
  return text;
}

/** The bytes of byte-level text, or undefined when a character of it stands for no byte. */
export function byteLevelBytes(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const byte = bytesByCharacter.get(text[i]!);
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
