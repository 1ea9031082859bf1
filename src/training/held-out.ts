// A text's documents, parted into what is trained on and what is kept for validation.

/** Every so-maniest document is kept; of a text of fewer documents, the last such part of each. */
const validationPart = 20;

export interface PartedText {
  /** UTF-8. */
  readonly train: Uint8Array;
  readonly validation: Uint8Array;
}

/** A document's bytes, in UTF-8: it ends in one line break, whatever its file does. */
export function textDocument(text: string): Uint8Array {
  return new TextEncoder().encode(`${text.trimEnd()}\n`);
}

/**
 * Keeps a twentieth of a text for validation: whole documents where there are 20 of them.
 *
 * @param documents in their order, UTF-8
 * @example
 * ```ts
 * import { partText } from "longhand/training";
 * const { train, validation } = partText([new Uint8Array(100)]);
 * [train.length, validation.length]; // => [95, 5]
 * ```
 */
export function partText(documents: readonly Uint8Array[]): PartedText {
  const train: Uint8Array[] = [];
  const validation: Uint8Array[] = [];
  if (documents.length >= validationPart) {
    documents.forEach((document, i) => {
      (i % validationPart === validationPart - 1 ? validation : train).push(document);
    });
  } else {
    for (const document of documents) {
      const cut = document.length - Math.floor(document.length / validationPart);
      train.push(document.subarray(0, cut));
      validation.push(document.subarray(cut));
    }
  }
  return { train: joined(train), validation: joined(validation) };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
