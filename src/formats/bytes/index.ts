// Bytes in, checked numbers out: what every checkpoint reader stands on.

export { type ByteSource, blobSource, expectRange, memorySource } from "./byte-source.ts";
export { FormatError, quote } from "./format-error.ts";
export { HeaderReader, type HeaderReaderOptions } from "./header-reader.ts";
export { isJsonObject, type JsonObject, type JsonValue, parseJson } from "./json.ts";
export { joinPath, openFile, splitPath, withFile } from "./node-file.ts";
