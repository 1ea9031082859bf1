// safetensors: the header of one file, and a checkpoint of one or many.

export { type SafetensorsDtype, safetensorsDtypes } from "./dtypes.ts";
export {
  maxSafetensorsHeaderBytes,
  readSafetensorsHeader,
  type SafetensorsHeader,
  type SafetensorsTensor,
} from "./header.ts";
export {
  readSafetensorsAmong,
  readSafetensorsFile,
  readSafetensorsFolder,
  readSafetensorsIndex,
  readSafetensorsShards,
  readSafetensorsSource,
  type SafetensorsCheckpoint,
  type SafetensorsIndex,
  safetensorsIndexName,
} from "./sharded.ts";
