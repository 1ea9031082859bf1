// Variable tracking, in the manner of RULER (Hsieh et al. 2024, 2404.06654), section 3.2: a value is handed from variable
// to variable through the text, and all that hold it are asked for. A second chain with another value is there to be
// confused with it.

import type { Haystack } from "./haystack.ts";
import { rivals, type SampleOptions, taskStream } from "./needles.ts";
import { answer, hide, type Placed, type RetrievalSample, type SampleContext } from "./sample.ts";
import { drawNumbers, drawVariables } from "./words.ts";

/** Hand-overs of a chain, as in RULER. */
const hops = 4;

/** The variables of one chain, in any order. */
export function variableTracking(context: SampleContext, haystack: Haystack, options: SampleOptions): RetrievalSample {
  const stream = taskStream("variable-tracking", options.seed);
  const names = drawVariables(stream, 2 * (hops + 1));
  const [value, other] = drawNumbers(stream, 2, 5);
  const chain = (variables: readonly string[], start: string, answers: boolean): Placed[] => {
    // Sorted, so that each stands behind the one it takes its value from.
    const depths = variables.map(() => stream.uniform()).sort((a, b) => a - b);
    return variables.map((name, i) => ({
      text: i === 0 ? ` VAR ${name} = ${start}.` : ` VAR ${name} = VAR ${variables[i - 1]}.`,
      depth: depths[i]!,
      answers,
    }));
  };
  const right = names.slice(0, hops + 1);
  const wrong = names.slice(hops + 1);
  const answers = right.map((text) => answer(context, text));
  return hide(context, haystack, {
    task: "variable-tracking",
    ...options,
    needles: [...chain(right, value!, true), ...chain(wrong, other!, false)],
    question: ` Which variables have the value ${value}? The variables with the value ${value} are`,
    answers,
    ordered: false,
    distractors: rivals(context, answers[0]!, wrong),
  });
}
