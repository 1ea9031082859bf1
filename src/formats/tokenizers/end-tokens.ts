// Tokens after which generation stops. Files name EOS at most; chat models end a turn with another token, which is known
// by its text alone (llama.cpp keeps the same list).

import type { Vocabulary } from "./vocabulary.ts";

const ends = [
  ...["<|eot_id|>", "<|im_end|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|eom_id|>", "<end_of_turn>"],
  ...["<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<end_of_utterance>"],
  ...["<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>"],
];
/** Plain text in vocabularies that hold HTML. */
const endsWhenControl = ["</s>", "<eos>"];

/** The tokens named in the file, and those that a special token's text names. */
export function endTokensOf(vocabulary: Vocabulary, named: readonly (number | null)[]): number[] {
  const found = new Set(named.filter((id) => id !== null));
  const add = (text: string, classes: readonly string[]): void => {
    const id = vocabulary.id(text);
    if (id !== undefined && classes.includes(vocabulary.classes[id]!)) found.add(id);
  };
  for (const text of ends) add(text, ["control", "user-defined"]);
  for (const text of endsWhenControl) add(text, ["control"]);
  const has = (text: string): boolean => found.has(vocabulary.id(text) ?? -1);
  // Where a message may be followed by a call, its end is not the turn's.
  const end = vocabulary.id("<|end|>");
  if (end !== undefined && ((has("<|return|>") && has("<|call|>")) || (has("<|flush|>") && has("<|calls|>")))) {
    found.delete(end);
  }
  const close = vocabulary.id("</s>");
  if (close !== undefined && has("<|tool_response>") && !named.includes(close)) found.delete(close);
  return [...found].sort((a, b) => a - b);
}
