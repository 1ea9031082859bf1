// In what two runs differ, in a sentence of a language.

import type { JsonDifference } from "../run-folder/json.ts";
import type { Language } from "./markup.ts";
import { settingName } from "./setting-names.ts";

/**
 * A difference of two runs as a sentence: "seed: 1 in the first, 2 in the second".
 *
 * @example
 * ```ts
 * import { jsonDifferences, runDifferenceText } from "longhand/evaluation";
 * const [difference] = jsonDifferences({ seed: 1 }, { seed: 2 });
 * [difference.code, difference.values]; // => ["differs", { place: "seed", there: "1", here: "2" }]
 * runDifferenceText(difference, "zh-TW"); // => "亂數種子（seed）：前者是 1，後者是 2"
 * ```
 */
export function runDifferenceText({ values }: JsonDifference, language: Language): string {
  const { place, there, here } = values;
  if (language === "en") return `${place}: ${there ?? "nothing"} in the first, ${here ?? "nothing"} in the second`;
  const name = settingName(place)?.["zh-TW"];
  const side = (value: string | undefined): string => (value === undefined ? "沒有" : `是 ${value}`);
  return `${name === undefined ? place : `${name}（${place}）`}：前者${side(there)}，後者${side(here)}`;
}
