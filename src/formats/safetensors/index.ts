// safetensors: the header of one file, and a checkpoint of one or many.

export { type SafetensorsDtype, safetensorsDtypes } from "./dtypes.ts";
export {
  maxSafetensorsHeaderBytes,
  readSafetensorsHeader,
  type SafetensorsHeader,
  type SafetensorsTensor,
} from "./header.ts";
export {
  readSafetensorsFile,
  readSafetensorsFolder,
  readSafetensorsIndex,
  readSafetensorsShards,
  type SafetensorsCheckpoint,
  type SafetensorsIndex,
  safetensorsIndexName,
} from "./sharded.ts";
