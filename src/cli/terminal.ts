// Colours for a terminal that wants them: picocolors follows NO_COLOR, FORCE_COLOR and whether stdout is a terminal.

import pc from "picocolors";
import type { Palette } from "../advice/chart/text.ts";

export const palette: Palette = {
  bold: pc.bold,
  dim: pc.dim,
  good: pc.green,
  bad: pc.red,
  warn: pc.yellow,
  mark: pc.magenta,
};

/** Columns to print in. */
export function terminalWidth(): number {
  return process.stdout.columns ?? 80;
}
