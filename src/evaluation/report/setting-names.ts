// What the keys of a run's identity are called, in both languages; keys that this version has no words for are shown as
// they are.

import { type Both, both } from "./markup.ts";

const names: Readonly<Record<string, Both<string>>> = {
  kind: both("Kind", "種類"),
  longhand: both("Longhand's version", "Longhand 版本"),
  files: both("Model's files (SHA-256)", "模型檔案（SHA-256）"),
  endpoints: both("Servers that scored", "計分的伺服器"),
  precision: both("Precision", "精度"),
  protocol: both("Protocol's version", "協定版本"),
  model: both("Model", "模型"),
  trainedLength: both("Trained length", "訓練長度"),
  target: both("Target length", "目標長度"),
  bos: both("BOS token", "BOS token"),
  texts: both("Texts (SHA-256, tokens)", "文字（SHA-256、token 數）"),
  windows: both("Windows (text: first token)", "視窗（文字：起始 token）"),
  strategies: both("Strategies, as computed", "策略的實際設定"),
  leftOut: both("What was not run", "沒有執行的"),
  lengths: both("Lengths", "長度"),
  stride: both("Stride of the windows (null: side by side)", "視窗步距（null：首尾相接）"),
  numWindows: both("Windows of all strategies", "所有策略的視窗總數"),
  needles: both("Passkeys a length", "每個長度的通關密語數"),
  needleLengths: both("Lengths of the passkeys' texts", "通關密語文字的長度"),
  haystack: both("Haystack", "乾草堆（填充文字）"),
  seed: both("Seed", "亂數種子"),
  recipe: both("Recipe", "訓練設定"),
};

/** The words for a key, or for a place below it, as "windows[0].start"; null where there are none. */
export function settingName(place: string): Both<string> | null {
  const key = /^[^.[]*/.exec(place)![0];
  return Object.hasOwn(names, key) ? names[key]! : null;
}
