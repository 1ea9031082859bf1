// The protobuf of a SentencePiece model, by hand (sentencepiece_model.proto; fields that segmentation needs, others
// stepped over). Lengths are compared with what is left before anything is taken; the file is hostile until then.

import { FormatError } from "../../bytes/format-error.ts";
import { maxVocabulary, type TokenClass, tokenClasses } from "../vocabulary.ts";

export interface SentencePieceModel {
  readonly modelType: "unigram" | "bpe";
  readonly pieces: readonly string[];
  readonly scores: Float32Array;
  readonly classes: readonly TokenClass[];
  readonly byteFallback: boolean;
  readonly treatWhitespaceAsSuffix: boolean;
  /** What decoding writes for the unknown token. */
  readonly unknownSurface: string;
  readonly names: { readonly unknown: string; readonly bos: string; readonly eos: string; readonly pad: string };
  readonly addDummyPrefix: boolean;
  readonly removeExtraWhitespaces: boolean;
  readonly escapeWhitespaces: boolean;
  /** Empty when text is taken as it is. */
  readonly precompiledCharsmap: Uint8Array;
}

const modelTypes = [undefined, "unigram", "bpe", "word", "char"] as const;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The fields of one message. */
class Message {
  readonly bytes: Uint8Array;
  readonly file: string;
  readonly start: number;
  readonly end: number;
  at: number;
  field = 0;
  wire = 0;

  constructor(bytes: Uint8Array, file: string, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.file = file;
    this.start = start;
    this.at = start;
    this.end = end;
  }

  error(complaint: string, at: number = this.at): FormatError {
    return new FormatError(this.file, complaint, at);
  }

  /** A varint as a number; 64-bit ones keep their low 53 bits' worth or fail. */
  varint(what: string): number {
    const from = this.at;
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      if (this.at >= this.end) throw this.error(`expected ${what}, got the end of the message`, from);
      const byte = this.bytes[this.at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
      if (shift >= 63) throw this.error(`expected ${what} in at most ten bytes, got more`, from);
    }
  }

  /** A signed 32-bit varint. */
  int32(what: string): number {
    this.#expectWire(0, what);
    // Negative numbers are written in 64 bits; the low 32 are enough.
    let low = 0;
    for (let shift = 0; ; shift += 7) {
      if (this.at >= this.end) throw this.error(`expected ${what}, got the end of the message`);
      const byte = this.bytes[this.at++]!;
      if (shift < 32) low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return low;
      if (shift >= 63) throw this.error(`expected ${what} in at most ten bytes, got more`);
    }
  }

  bool(what: string): boolean {
    return this.int32(what) !== 0;
  }

  float(what: string): number {
    this.#expectWire(5, what);
    if (this.end - this.at < 4) throw this.error(`expected ${what} (4 bytes), got ${this.end - this.at}`);
    const value = new DataView(this.bytes.buffer, this.bytes.byteOffset + this.at, 4).getFloat32(0, true);
    this.at += 4;
    return value;
  }

  /** The range of a length-delimited field. */
  range(what: string): { start: number; end: number } {
    this.#expectWire(2, what);
    const length = this.varint(`the length of ${what}`);
    if (length > this.end - this.at) {
      throw this.error(`expected ${what} within the ${this.end - this.at} bytes left, got length ${length}`);
    }
    const start = this.at;
    this.at += length;
    return { start, end: this.at };
  }

  string(what: string): string {
    const { start, end } = this.range(what);
    try {
      return utf8.decode(this.bytes.subarray(start, end));
    } catch {
      throw this.error(`expected ${what} to be valid UTF-8`, start);
    }
  }

  message(what: string): Message {
    const { start, end } = this.range(what);
    return new Message(this.bytes, this.file, start, end);
  }

  #expectWire(wire: number, what: string): void {
    if (this.wire !== wire) throw this.error(`expected ${what} in wire type ${wire}, got ${this.wire}`);
  }

  /** Moves to the next field; false at the end. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const from = this.at;
    const tag = this.varint("a field");
    this.field = Math.floor(tag / 8);
    this.wire = tag % 8;
    if (this.field < 1 || this.field > 2 ** 29) throw this.error(`expected a field number, got ${this.field}`, from);
    return true;
  }

  skip(): void {
    const what = `field ${this.field}`;
    switch (this.wire) {
      case 0:
        this.varint(what);
        return;
      case 1:
      case 5: {
        const length = this.wire === 1 ? 8 : 4;
        if (this.end - this.at < length) throw this.error(`expected ${what} (${length} bytes), got the message's end`);
        this.at += length;
        return;
      }
      case 2:
        this.range(what);
        return;
      default:
        throw this.error(`expected ${what} in wire type 0, 1, 2 or 5, got ${this.wire}: is it a SentencePiece model?`);
    }
  }
}

/**
 * Reads a SentencePiece `.model`.
 *
 * @throws FormatError naming the byte: a field that runs past its message, text that is not UTF-8, a score that is not
 *   finite, an unknown class of piece, a model type other than unigram and BPE, no pieces, two unknown pieces, or none
 */
export function readSentencePieceModel(bytes: Uint8Array, file: string): SentencePieceModel {
  const pieces: string[] = [];
  const scores: number[] = [];
  const classes: TokenClass[] = [];
  const trainer = {
    modelType: 1,
    byteFallback: false,
    treatWhitespaceAsSuffix: false,
    unknownSurface: " \u2047 ",
    names: { unknown: "<unk>", bos: "<s>", eos: "</s>", pad: "<pad>" },
  };
  const normalizer = {
    addDummyPrefix: true,
    removeExtraWhitespaces: true,
    escapeWhitespaces: true,
    precompiledCharsmap: new Uint8Array(0) as Uint8Array,
  };
  const model = new Message(bytes, file);
  while (model.next()) {
    if (model.field === 1) readPiece(model.message("a piece"));
    else if (model.field === 2) readTrainer(model.message("the trainer's settings"));
    else if (model.field === 3) readNormalizer(model.message("the normaliser's settings"));
    else model.skip();
  }
  const modelType = modelTypes[trainer.modelType];
  if (modelType !== "unigram" && modelType !== "bpe") {
    throw new FormatError(
      file,
      `expected a unigram or BPE model, got model type ${modelType ?? trainer.modelType}: word and char models are not supported`,
    );
  }
  if (pieces.length === 0) {
    throw new FormatError(file, "expected pieces, got none: is it a SentencePiece model?");
  }
  const unknown = classes.filter((one) => one === "unknown").length;
  if (unknown !== 1) throw new FormatError(file, `expected one unknown piece, got ${unknown}`);
  return { ...trainer, ...normalizer, modelType, pieces, scores: Float32Array.from(scores), classes };

  function readPiece(message: Message): void {
    const id = pieces.length;
    if (id >= maxVocabulary) throw message.error(`expected at most ${maxVocabulary} pieces, got more`);
    let text = "";
    let score = 0;
    let type = 1;
    while (message.next()) {
      if (message.field === 1) text = message.string(`the text of piece ${id}`);
      else if (message.field === 2) score = message.float(`the score of piece ${id}`);
      else if (message.field === 3) type = message.int32(`the class of piece ${id}`);
      else message.skip();
    }
    const known = tokenClasses[type];
    if (known === undefined) {
      throw message.error(`expected the class of piece ${id} to be 1 to ${tokenClasses.length - 1}, got ${type}`);
    }
    if (text === "") throw message.error(`expected a text for piece ${id}, got none`, message.start);
    if (!Number.isFinite(score)) throw message.error(`expected a finite score for piece ${id}, got ${score}`);
    pieces.push(text);
    scores.push(score);
    classes.push(known);
  }

  function readTrainer(message: Message): void {
    while (message.next()) {
      if (message.field === 3) trainer.modelType = message.int32("the model type");
      else if (message.field === 24) trainer.treatWhitespaceAsSuffix = message.bool("treat_whitespace_as_suffix");
      else if (message.field === 35) trainer.byteFallback = message.bool("byte_fallback");
      else if (message.field === 44) trainer.unknownSurface = message.string("unk_surface");
      else if (message.field === 45) trainer.names.unknown = message.string("unk_piece");
      else if (message.field === 46) trainer.names.bos = message.string("bos_piece");
      else if (message.field === 47) trainer.names.eos = message.string("eos_piece");
      else if (message.field === 48) trainer.names.pad = message.string("pad_piece");
      else message.skip();
    }
  }

  function readNormalizer(message: Message): void {
    while (message.next()) {
      if (message.field === 2) {
        const { start, end } = message.range("the normalisation table");
        normalizer.precompiledCharsmap = bytes.subarray(start, end);
      } else if (message.field === 3) normalizer.addDummyPrefix = message.bool("add_dummy_prefix");
      else if (message.field === 4) normalizer.removeExtraWhitespaces = message.bool("remove_extra_whitespaces");
      else if (message.field === 5) normalizer.escapeWhitespaces = message.bool("escape_whitespaces");
      else message.skip();
    }
  }
}
