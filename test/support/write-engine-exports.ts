// Writes the exported configurations for reference/exports.py: node --import ./scripts/ts-hook.mjs
// test/support/write-engine-exports.ts FILE

import { writeFileSync } from "node:fs";
import { engineExportCases } from "./engine-export-cases.ts";

const written = engineExportCases().map(({ name, made }) => ({
  name,
  length: made.length,
  config: made.files[0]?.content ?? null,
}));
writeFileSync(process.argv[2]!, JSON.stringify(written));
