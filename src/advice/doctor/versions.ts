// Versions of engines: what was read, and comparison.

import type { DoctorEngine } from "./types.ts";

/** The newest version of each engine whose source was read; a month for those without numbers that last. */
export const readVersions: { readonly [E in DoctorEngine]: string } = {
  transformers: "5.24.0",
  vllm: "0.33.0",
  sglang: "0.5.23",
  "llama.cpp": "2026-08",
  ollama: "2026-08",
  "mlx-lm": "0.32.2",
  exllamav2: "0.3.2",
  exllamav3: "1.6.5",
};

/** True when version a is before b: numbers between dots, left to right; what is no number counts as 0. */
export function isBefore(a: string, b: string): boolean {
  const numbers = (text: string) =>
    text.split(/[.\-+]/).map((part) => Number.parseInt(part.replace(/^[a-z]+/i, ""), 10) || 0);
  const [left, right] = [numbers(a), numbers(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
