// The dict of rotary settings and its spellings: two names of the type, two of the dict, keys that nothing reads.

import { isObject } from "../../../formats/huggingface/values.ts";
import { pointerOf, valueAt } from "../json-text.ts";
import { both, drop, nameOf, parentOf, ropeDict, set } from "../record.ts";
import type { FindingRecord } from "../types.ts";
import { gemma3, llama2, llama31, llama31Dict, phiLists, qwen3, qwenVl, qwenYarn } from "./base.ts";

/** Values that mean the same as none. */
const yarnDefaults: Readonly<Record<string, readonly unknown[]>> = {
  beta_fast: [32],
  beta_slow: [1],
  mscale: [0, 1],
  // 1 beside mscale 1, as Hunyuan-A13B has it.
  mscale_all_dim: [0, 1],
  factor: [1],
};

export const spelling: readonly FindingRecord[] = [
  {
    code: "legacy-type-lost",
    severity: "warning",
    engines: ["transformers"],
    title: both("A scaling under the older key type is dropped", "寫在舊鍵 type 底下的縮放會被丟掉"),
    why: both(
      "Gemma 3 and OLMo 3 preset rope_type for each layer type in transformers 5, so that type loses and the model runs unscaled.",
      "Gemma 3 與 OLMo 3 在 transformers 5 裡為每種層預設了 rope_type，因此 type 落敗，模型不會縮放。",
    ),
    fix: both('Write "rope_type" instead of "type".', '把 "type" 改寫成 "rope_type"。'),
    references: ["https://github.com/lablup/mlxcel/issues/1355"],
    broken: { config: gemma3({ rope_scaling: { type: "linear", factor: 8.0 } }) },
    repair: ({ where, got }) => {
      const pointer = pointerOf(where);
      return [drop(pointer), set(`${parentOf(pointer)}/rope_type`, got)];
    },
  },
  {
    code: "type-conflict",
    severity: "warning",
    engines: [],
    title: both("type and rope_type disagree", "type 與 rope_type 互相矛盾"),
    why: both(
      "transformers 5 reads rope_type; a loader of the older schema reads type and computes another encoding; vLLM refuses the file.",
      "transformers 5 讀 rope_type；讀舊格式的程式讀 type，算出另一種編碼；vLLM 則拒絕載入。",
    ),
    fix: both('Remove "type".', '刪掉 "type"。'),
    references: ["https://github.com/vllm-project/vllm/issues/10293"],
    broken: { config: llama31({ rope_scaling: llama31Dict({ type: "linear" }) }) },
    repair: ({ where }) => [drop(pointerOf(where))],
  },
  {
    code: "legacy-type",
    severity: "warning",
    engines: ["transformers"],
    title: both("su is longrope's older name", "su 是 longrope 的舊名"),
    why: both(
      "transformers 5 knows su for Phi-3 only and raises KeyError in every other class.",
      "transformers 5 只在 Phi-3 認得 su，其他類別會丟出 KeyError。",
    ),
    fix: both('Write "rope_type": "longrope".', '改寫成 "rope_type": "longrope"。'),
    references: ["https://github.com/huggingface/transformers/pull/39847"],
    broken: {
      config: {
        ...llama2({ hidden_size: 128, num_attention_heads: 8, num_key_value_heads: 8, head_dim: 16 }),
        max_position_embeddings: 131072,
        rope_scaling: phiLists({ type: "su", original_max_position_embeddings: 4096 }),
      },
    },
    repair: ({ where }) => {
      const pointer = pointerOf(where);
      if (nameOf(pointer) === "rope_type") return [set(pointer, "longrope")];
      return [drop(pointer), set(`${parentOf(pointer)}/rope_type`, "longrope")];
    },
  },
  {
    code: "foreign-rope-type",
    severity: "warning",
    engines: ["transformers"],
    title: both("A rope type that transformers does not know", "transformers 不認得的 rope 類型"),
    why: both(
      "transformers 5 raises KeyError when the model is built; other engines have formulas of their own under the name.",
      "transformers 5 建立模型時會丟出 KeyError；其他引擎用同一個名字算自己的公式。",
    ),
    fix: both(
      "Use a type that transformers knows: NTK-aware scaling is a larger rope_theta.",
      "改用 transformers 認得的類型：NTK-aware 縮放等於較大的 rope_theta。",
    ),
    references: ["https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/modeling_rope_utils.py"],
    broken: { config: llama2({ rope_scaling: { rope_type: "ntk", factor: 4.0 } }) },
  },
  {
    code: "unknown-rope-type",
    severity: "error",
    engines: [],
    title: both("An unknown rope type", "未知的 rope 類型"),
    why: both(
      "Some loaders stop at an unknown type, others compute unscaled positions without a word.",
      "遇到未知類型，有些程式停下來，有些不吭一聲就用未縮放的位置計算。",
    ),
    fix: both("Write the nearest known type, if that is what was meant.", "若最接近的已知類型正是原意，就寫它。"),
    references: ["https://github.com/jundot/omlx/pull/3594"],
    broken: { config: qwen3({ rope_scaling: qwenYarn({ rope_type: "yarm" }) }) },
  },
  {
    code: "unused-key",
    severity: "warning",
    engines: [],
    title: both("A key that this rope type does not read", "這個 rope 類型不讀的鍵"),
    why: both("The key belongs to another type, so it changes nothing.", "這個鍵屬於另一種類型，寫了也沒有作用。"),
    fix: both(
      "Remove the key, or set rope_type to the type that was meant.",
      "刪掉這個鍵，或把 rope_type 設成原本想用的類型。",
    ),
    references: ["https://github.com/ROCm/aiter/issues/4742"],
    broken: { config: qwen3({ rope_scaling: { rope_type: "linear", factor: 4.0, beta_fast: 32 } }) },
    // HunYuan ships YaRN's defaults beside dynamic: they would change nothing under YaRN either.
    isHarmless: ({ where, got }) => {
      const name = nameOf(pointerOf(where));
      return Object.hasOwn(yarnDefaults, name) && yarnDefaults[name]!.includes(got);
    },
    repair: ({ where }) => [drop(pointerOf(where))],
  },
  {
    code: "both-rope-dicts",
    severity: "warning",
    engines: ["transformers"],
    title: both("rope_scaling and rope_parameters in one file", "同一個檔案裡有 rope_scaling 也有 rope_parameters"),
    why: both(
      "In transformers 5 rope_scaling replaces rope_parameters whole, its rope_theta included; other loaders take the other one.",
      "transformers 5 會用 rope_scaling 整個取代 rope_parameters，連其中的 rope_theta 也一起；其他程式可能取另一個。",
    ),
    fix: both(
      "Write all of it in rope_parameters and remove rope_scaling.",
      "全部寫進 rope_parameters，刪掉 rope_scaling。",
    ),
    references: ["https://github.com/huggingface/transformers/pull/39847"],
    broken: {
      config: qwen3({
        max_position_embeddings: 131072,
        rope_theta: undefined,
        rope_parameters: { rope_type: "default", rope_theta: 1000000 },
        rope_scaling: qwenYarn(),
      }),
    },
    repair: ({ severity }, subject) => {
      const legacy = valueAt(subject.effective, `${subject.textPath}/rope_scaling`);
      const current = valueAt(subject.effective, `${subject.textPath}/rope_parameters`);
      if (!isObject(legacy) || !isObject(current) || severity === "note") return [];
      if (Object.values(current).some(isObject) || Object.values(legacy).some(isObject)) return [];
      const { type, ...rest } = legacy;
      const ropeType = rest.rope_type ?? type;
      const kept = current.rope_theta === undefined ? {} : { rope_theta: current.rope_theta };
      return [
        set(`${subject.textPath}/rope_parameters`, {
          ...(ropeType === undefined ? {} : { rope_type: ropeType }),
          ...kept,
          ...rest,
        }),
        drop(`${subject.textPath}/rope_scaling`),
      ];
    },
  },
  {
    code: "outside-text-config",
    severity: "warning",
    engines: [],
    title: both("Rotary settings outside the text model", "旋轉設定寫在文字模型之外"),
    why: both(
      "A multimodal file's text model is read from text_config; the same key outside it changes nothing.",
      "多模態檔案的文字模型讀自 text_config；寫在外面的同名鍵沒有作用。",
    ),
    fix: both("Move it into text_config.", "移到 text_config 裡。"),
    references: ["https://github.com/Blaizzy/mlx-vlm/issues/1710"],
    broken: { config: qwenVl({ rope_theta: undefined }, { rope_theta: 1000000.0 }) },
    repair: ({ where, got }, subject) => [set(`${subject.textPath}${pointerOf(where)}`, got), drop(pointerOf(where))],
  },
  {
    code: "misspelt-key",
    severity: "error",
    engines: [],
    title: both("A misspelt key", "拼錯的鍵"),
    why: both(
      "Nothing reads it, so the setting is lost without a word.",
      "沒有程式會讀它，這個設定就無聲無息地消失了。",
    ),
    fix: both("Write the key as it is known.", "照正確的拼法寫。"),
    references: ["https://github.com/unslothai/unsloth/issues/6197"],
    broken: { config: llama31({ rope_scaling: undefined, rope_scalling: llama31Dict() }) },
    repair: ({ where, got, expected }, subject) => {
      const wrong = pointerOf(where);
      const right = `${parentOf(wrong)}/${expected}`;
      return valueAt(subject.effective, right) === undefined ? [drop(wrong), set(right, got)] : [drop(wrong)];
    },
  },
  {
    code: "unread-key",
    severity: "warning",
    engines: [],
    title: both("A key that looks like a rotary setting", "看起來像旋轉設定的鍵"),
    why: both(
      "Neither this reader nor transformers' own classes read it; custom code may.",
      "這裡的讀取程式和 transformers 的類別都不讀它；自訂程式碼也許會讀。",
    ),
    fix: both("Check the model's own code for it.", "請查這個模型自己的程式碼。"),
    references: ["https://github.com/vllm-project/vllm/issues/10293"],
    broken: { config: llama2({ rope_percent: 0.5 }) },
  },
  {
    code: "unknown-model-type",
    severity: "warning",
    engines: [],
    title: both("A model type that is not known here", "這裡不認得的 model_type"),
    why: both(
      "The file is read by its ordinary keys; the model's own code may rotate otherwise.",
      "只能照一般的鍵來讀；模型自己的程式碼可能另有算法。",
    ),
    fix: both("Check the model's own code.", "請查這個模型自己的程式碼。"),
    references: ["https://github.com/huggingface/transformers/tree/v5.24.0/src/transformers/models"],
    broken: { config: llama2({ model_type: "my_llama" }) },
  },
  {
    code: "number-in-quotes",
    severity: "error",
    engines: [],
    title: both("A number in quotes", "加了引號的數字"),
    why: both(
      "A string is no number: transformers raises TypeError when it computes with it.",
      "字串不是數字：transformers 用它計算時會丟出 TypeError。",
    ),
    fix: both("Take the quotes away.", "拿掉引號。"),
    references: ["https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/modeling_rope_utils.py"],
    broken: { config: llama31({ rope_scaling: llama31Dict({ factor: "8.0" }) }) },
  },
  {
    code: "missing-rope-key",
    severity: "error",
    engines: [],
    title: both("A key that the rope type requires is missing", "缺了這個 rope 類型必要的鍵"),
    why: both(
      "transformers raises KeyError while it reads the file; other loaders assume a value of their own.",
      "transformers 讀檔時會丟出 KeyError；其他程式會自行假設一個值。",
    ),
    fix: both("Write the key.", "補上這個鍵。"),
    references: ["https://github.com/huggingface/transformers/issues/32167"],
    broken: { config: llama31({ rope_scaling: llama31Dict({ factor: undefined }) }) },
  },
  {
    code: "factor-list-length",
    severity: "error",
    engines: [],
    title: both("A list of factors of the wrong length", "因子列表的長度不對"),
    why: both(
      "longrope needs one factor a rotated pair; transformers fails when the model is built.",
      "longrope 需要每一對旋轉通道一個因子；transformers 建立模型時會失敗。",
    ),
    fix: both("Use the lists that were made for this head width.", "使用為這個 head 寬度製作的列表。"),
    references: ["https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/modeling_rope_utils.py"],
    broken: {
      config: {
        model_type: "phi3",
        hidden_size: 128,
        num_hidden_layers: 4,
        num_attention_heads: 8,
        max_position_embeddings: 131072,
        original_max_position_embeddings: 4096,
        rope_theta: 10000.0,
        rope_scaling: phiLists({ short_factor: [1, 1, 1, 1] }),
      },
    },
  },
  {
    code: "unreadable",
    severity: "error",
    engines: [],
    title: both("A file that cannot be read as a configuration", "無法當作設定檔讀取"),
    why: both("Nothing can be said about positions before the file can be read.", "檔案讀不懂，就無從判斷位置編碼。"),
    fix: both("Repair the place that is named.", "請修正指出的位置。"),
    references: ["https://www.rfc-editor.org/rfc/rfc8259"],
    broken: { config: llama2({ rope_scaling: "yarn:4" }) },
  },
  {
    code: "legacy-flag",
    severity: "warning",
    engines: ["transformers"],
    title: both("A number where a flag is expected", "該寫 true 或 false 的地方寫了數字"),
    why: both(
      "The first releases of Llama 4 wrote a number for it; transformers 5 refuses the file.",
      "Llama 4 最早的版本寫數字；transformers 5 會拒絕這個檔案。",
    ),
    fix: both("Write true or false.", "改寫 true 或 false。"),
    references: [
      "https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/llama4/configuration_llama4.py",
    ],
    broken: {
      config: {
        model_type: "llama4_text",
        hidden_size: 5120,
        num_hidden_layers: 8,
        num_attention_heads: 40,
        num_key_value_heads: 8,
        head_dim: 128,
        max_position_embeddings: 10485760,
        rope_theta: 500000.0,
        attention_chunk_size: 8192,
        attn_scale: 0.1,
        floor_scale: 8192,
        attn_temperature_tuning: 4,
      },
    },
    repair: ({ where, got }) => [set(pointerOf(where), Boolean(got))],
  },
  {
    code: "head-dim-null",
    severity: "warning",
    engines: ["transformers"],
    title: both("head_dim null under a scaling that computes with it", "head_dim 是 null，而縮放要用它計算"),
    why: both(
      "The class leaves it null, and transformers 5 raises TypeError when it computes yarn, dynamic or longrope.",
      "類別會讓它保持 null，transformers 5 計算 yarn、dynamic 或 longrope 時丟出 TypeError。",
    ),
    fix: both("Write the width of a head.", "寫出 head 的寬度。"),
    references: ["https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/modeling_rope_utils.py"],
    broken: {
      config: {
        ...qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn() }),
        model_type: "qwen2",
        head_dim: null,
      },
    },
    repair: ({ where, expected }) => [set(pointerOf(where), Number.parseInt(expected, 10))],
  },
  {
    code: "scaled-null-dict",
    severity: "note",
    engines: [],
    title: both("A rope type without a scaling", "只有類型、沒有縮放"),
    why: both(
      "transformers 5 writes a dict into every file, scaled or not; a program that only asks whether there is one treats this model as scaled.",
      "transformers 5 會在每個檔案寫出這個 dict，不論有沒有縮放；只看有沒有 dict 的程式會把這個模型當成已縮放。",
    ),
    fix: both("Nothing, with loaders of version 5.", "用版本 5 的程式讀取時不必處理。"),
    references: ["https://github.com/ROCm/aiter/issues/4742"],
    broken: { config: llama2({ rope_scaling: { rope_type: "default", rope_theta: 10000.0 }, rope_theta: undefined }) },
    *check(subject) {
      const found = ropeDict(subject);
      if (found === null || !found.path.endsWith("/rope_scaling")) return;
      const type = found.dict.rope_type ?? found.dict.type;
      if (type !== "default") return;
      if (found.dict.mrope_section !== undefined) return;
      yield {
        where: found.path,
        got: found.dict,
        expected: both("null, where nothing is scaled", "沒有縮放時寫 null"),
      };
    },
  },
];
