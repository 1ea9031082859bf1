// The one error class of the file readers: a checkpoint is not what its format says. Checkpoints are hostile input, so
// every reader throws this and nothing else for bytes it cannot accept; callers catch it to report a bad file.

/** A file that breaks its format. The message reads "file: expected …, got … (byte N)". */
export class FormatError extends Error {
  override readonly name: string = "FormatError";
  /** The file, as its source is called. */
  readonly file: string;
  /** Byte from the file's start at which it happened; null when it concerns the file as a whole. */
  readonly offset: number | null;

  constructor(file: string, complaint: string, offset: number | null = null) {
    super(`${file}: ${complaint}${offset === null ? "" : ` (byte ${offset})`}`);
    this.file = file;
    this.offset = offset;
  }
}

/** A string out of a file as it may stand in a message: quoted, control characters escaped, at most 80 characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}
