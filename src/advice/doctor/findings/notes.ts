// What the reader assumed where a configuration is silent: worth knowing, nothing to repair.

import { canonicalOperations } from "../canonical.ts";
import { both } from "../record.ts";
import type { FindingRecord } from "../types.ts";
import { gptOss, llama2, qwenVl } from "./base.ts";

export const notes: readonly FindingRecord[] = [
  {
    code: "class-default",
    severity: "note",
    engines: [],
    title: both("A default of the class", "類別的預設值"),
    why: both(
      "The file does not say it; transformers' class assumes it, another program may not.",
      "檔案沒有寫；transformers 的類別這樣假設，別的程式未必。",
    ),
    fix: both("Write the key where other programs read the file.", "若其他程式也要讀，就寫出來。"),
    references: ["https://github.com/paiml/realizar/issues/78"],
    broken: { config: llama2({ max_position_embeddings: undefined }) },
  },
  {
    code: "class-preset",
    severity: "warning",
    engines: ["transformers"],
    title: both("The class has rotary settings of its own", "類別自帶旋轉設定"),
    why: both(
      "gpt-oss, Ministral 3 and others carry a scaling in their class: a file that writes null is computed with it all the same, and other engines do not know it.",
      "gpt-oss、Ministral 3 等模型的類別自帶縮放：檔案寫 null 也照樣套用，其他引擎卻不知道。",
    ),
    fix: both("Write rope_parameters in full.", "完整寫出 rope_parameters。"),
    references: ["https://github.com/vllm-project/vllm/issues/27722"],
    broken: { config: gptOss({ rope_scaling: null }) },
    repair: ({ severity }, subject) => (severity === "warning" ? canonicalOperations(subject) : []),
  },
  {
    code: "mrope-section-assumed",
    severity: "note",
    engines: [],
    title: both("How pairs are shared among axes is not written", "沒有寫出各軸如何分配通道對"),
    why: both(
      "Text does not depend on it, pictures do: a wrong layout reads text well and pictures as garbage.",
      "文字不受影響，圖片會：排列錯了，文字讀得好好的，圖片卻成了亂碼。",
    ),
    fix: both("Write mrope_section.", "寫出 mrope_section。"),
    references: ["https://github.com/alibaba/MNN/issues/4133"],
    broken: { config: qwenVl({ rope_scaling: null }) },
  },
  {
    code: "t5-bias-shared",
    severity: "note",
    engines: [],
    title: both("One bias table for all layers", "所有層共用一張偏置表"),
    why: both(
      "T5 learns its bias in the first layer and uses it in all; scores are not divided by √d, cross-attention has no bias.",
      "T5 在第一層學偏置，各層共用；分數不除以 √d，交叉注意力沒有偏置。",
    ),
    fix: both("Nothing.", "不必處理。"),
    references: ["https://github.com/huggingface/candle/issues/899"],
    broken: { config: t5("t5") },
  },
  {
    code: "t5-bias-every-layer",
    severity: "note",
    engines: [],
    title: both("A bias table in every layer", "每一層各有一張偏置表"),
    why: both(
      "UMT5 learns a bias in every layer; cross-attention has none.",
      "UMT5 每一層各學一張偏置表；交叉注意力沒有。",
    ),
    fix: both("Nothing.", "不必處理。"),
    references: ["https://github.com/huggingface/candle/issues/899"],
    broken: { config: t5("umt5") },
  },
];

function t5(modelType: string) {
  return {
    model_type: modelType,
    d_model: 512,
    d_kv: 64,
    num_heads: 8,
    num_layers: 6,
    relative_attention_num_buckets: 32,
    relative_attention_max_distance: 128,
  };
}
