// The doctor of long-context configurations.

export { applyFixes, type Fixed, type Repaired, repair } from "./apply-fixes.ts";
export { type Flag, isModelfile, type ParsedCommand, parseCommand } from "./command.ts";
export { diagnose } from "./diagnose.ts";
export { findingRecords, recordOf } from "./findings/index.ts";
export { doctorText } from "./text.ts";
export {
  type Both,
  type Broken,
  type DiagnoseInput,
  type Diagnosis,
  type DoctorEngine,
  type DoctorFinding,
  doctorEngines,
  type FindingRecord,
  type Language,
  type Operation,
} from "./types.ts";
