// The table of losses by position on the card of a built-in model (README.md beside its weights): measured when the model
// was trained, on text kept apart. `experiments/built-in.ts` writes it.

import { FormatError } from "./bytes/format-error.ts";

export interface LossByPosition {
  /** Positions from .. to, counted from 1. */
  readonly from: number;
  readonly to: number;
  /** Nats a token. */
  readonly mean: number;
  /** The 95 % interval of the mean. */
  readonly low: number;
  readonly high: number;
}

const row = /^\| (\d+) to (\d+) \| (\d+\.\d+) \((\d+\.\d+) to (\d+\.\d+)\) \|$/;

/**
 * Reads the losses by position of a card; empty where the card has no such table (a model whose positions end).
 *
 * @throws FormatError for a table whose rows are no such rows
 */
export function lossByPositionOfCard(card: string): LossByPosition[] {
  const lines = card.split(/\r?\n/);
  const head = lines.findIndex((line) => line.startsWith("| positions |"));
  if (head < 0) return [];
  const found: LossByPosition[] = [];
  for (const line of lines.slice(head + 2)) {
    if (!line.startsWith("|")) break;
    const numbers = row.exec(line)?.slice(1).map(Number);
    if (numbers === undefined) {
      throw new FormatError("README.md", `expected a row "| 1 to 256 | 1.2 (1.1 to 1.3) |", got ${line.slice(0, 80)}`);
    }
    const [from, to, mean, low, high] = numbers as [number, number, number, number, number];
    found.push({ from, to, mean, low, high });
  }
  return found;
}
