// Bytes in, checked numbers out: what every checkpoint reader stands on.

export { type ByteSource, blobSource, expectRange, memorySource } from "./byte-source.ts";
export { FormatError } from "./format-error.ts";
export { HeaderReader, type HeaderReaderOptions } from "./header-reader.ts";
export { isJsonObject, type JsonObject, type JsonValue, parseJson } from "./json.ts";
export { openFile, withFile } from "./node-file.ts";
