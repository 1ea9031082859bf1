// Findings in a GGUF header: keys that llama.cpp does not read, tensors that are missing, what it hard-codes.

import { both } from "../record.ts";
import type { FindingRecord } from "../types.ts";
import { ggufLlama } from "./base.ts";

const ARCH = "https://github.com/ggml-org/llama.cpp/blob/master/src/llama-model.cpp";

export const gguf: readonly FindingRecord[] = [
  {
    code: "gguf-llama3-divisors-missing",
    severity: "warning",
    engines: ["llama.cpp", "ollama"],
    title: both("A Llama 3.1 file without rope_freqs.weight", "Llama 3.1 的檔案沒有 rope_freqs.weight"),
    why: both(
      "GGUF keeps the llama3 scaling in this tensor alone; a file at 131,072 tokens and base 500000 without it runs unscaled, degraded from the first thousands of tokens on.",
      "GGUF 只用這個張量保存 llama3 縮放；長度 131,072、底數 500000 卻沒有它的檔案，會以未縮放的方式執行，從幾千個 token 起就變差。",
    ),
    fix: both(
      "Convert the model again with a current converter, or patch the file: longhand export --to gguf.",
      "用新版轉換程式重新轉換，或以 longhand export --to gguf 修補檔案。",
    ),
    references: ["https://github.com/ikawrakow/ik_llama.cpp/issues/402"],
    broken: { gguf: ggufLlama(["llama.context_length", "u32", 131072]) },
    *check({ model }) {
      if (model?.format !== "gguf" || model.modelType !== "llama" || (model.maxPositionEmbeddings ?? 0) < 131072)
        return;
      for (const { position } of model.groups) {
        if (position.kind !== "rope" || position.rope.ropeType !== "default" || position.rope.ropeTheta !== 500000)
          continue;
        yield {
          where: "tensor rope_freqs.weight",
          got: null,
          expected: both(
            `${position.headDim / 2} divisors, as Llama 3.1, 3.2 and 3.3 need them`,
            `${position.headDim / 2} 個除數，Llama 3.1、3.2、3.3 都需要`,
          ),
        };
        return;
      }
    },
  },
  {
    code: "ignored-by-llama.cpp",
    severity: "warning",
    engines: ["llama.cpp", "ollama"],
    title: both("A key that llama.cpp does not read", "llama.cpp 不讀的鍵"),
    why: both(
      "The converter wrote the model's own value; llama.cpp computes with its default.",
      "轉換程式寫了模型自己的值；llama.cpp 卻用預設值計算。",
    ),
    fix: both(
      "Give the value on the command line, where a flag exists (--yarn-beta-fast, --yarn-beta-slow).",
      "有對應旗標時（--yarn-beta-fast、--yarn-beta-slow），在命令列指定。",
    ),
    references: ["https://github.com/ggml-org/llama.cpp/issues/7118"],
    broken: {
      gguf: ggufLlama(
        ["llama.rope.scaling.type", "string", "yarn"],
        ["llama.rope.scaling.factor", "f32", 4],
        ["llama.rope.scaling.original_context_length", "u32", 8192],
        ["llama.rope.scaling.yarn_beta_fast", "f32", 64],
      ),
    },
  },
  {
    code: "sliding-window-ignored-by-llama.cpp",
    severity: "warning",
    engines: ["llama.cpp", "ollama"],
    title: both("A window that llama.cpp does not apply", "llama.cpp 不套用的視窗"),
    why: both(
      "The model was made to see a window only; llama.cpp lets it see everything.",
      "模型本來只看一個視窗；llama.cpp 讓它看到全部。",
    ),
    fix: both("Stay within the window, or run it elsewhere.", "不要超過視窗長度，或改用其他引擎。"),
    references: [ARCH],
    broken: { gguf: ggufLlama(["llama.attention.sliding_window", "u32", 4096]) },
  },
  {
    code: "scaling-factor-unused",
    severity: "warning",
    engines: ["llama.cpp", "ollama"],
    title: both("A factor beside the type none", "類型是 none，卻寫了因子"),
    why: both("The type switches scaling off, so the factor has no effect.", "這個類型會關閉縮放，因子沒有作用。"),
    fix: both("Set the type to linear or yarn, or remove the factor.", "把類型設成 linear 或 yarn，或拿掉因子。"),
    references: [ARCH],
    broken: { gguf: ggufLlama(["llama.rope.scaling.type", "string", "none"], ["llama.rope.scaling.factor", "f32", 4]) },
  },
  {
    code: "unknown-rope-key",
    severity: "warning",
    engines: [],
    title: both("A rope key that is not known", "未知的 rope 鍵"),
    why: both("A setting of the rotation that is not read here may change it.", "這裡不讀的旋轉設定可能會改變結果。"),
    fix: both("Check what wrote the file.", "請查是什麼程式寫出這個檔案。"),
    references: ["https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"],
    broken: { gguf: ggufLlama(["llama.rope.scaling.factr", "f32", 4]) },
  },
  {
    code: "rope-key-unused",
    severity: "warning",
    engines: [],
    title: both("A key that this scaling has no place for", "這種縮放用不到的鍵"),
    why: both(
      "Readers differ on it: llama.cpp multiplies by an attention factor even where the type has none.",
      "各家讀法不同：即使類型沒有注意力係數，llama.cpp 也會乘上去。",
    ),
    fix: both("Remove it.", "拿掉它。"),
    references: ["https://github.com/ggml-org/llama.cpp/issues/17945"],
    broken: { gguf: ggufLlama(["llama.rope.scaling.attn_factor", "f32", 1.2]) },
  },
  {
    code: "assumed-yarn-factor",
    severity: "warning",
    engines: ["llama.cpp", "ollama"],
    title: both("YaRN without a factor", "YaRN 沒有因子"),
    why: both(
      "llama.cpp then scales by 1; the ratio of the two lengths was meant.",
      "llama.cpp 會以 1 縮放；原意是兩個長度的比。",
    ),
    fix: both("Give it on the command line: --rope-scale.", "在命令列用 --rope-scale 指定。"),
    references: [ARCH],
    broken: {
      gguf: ggufLlama(
        ["llama.context_length", "u32", 32768],
        ["llama.rope.scaling.type", "string", "yarn"],
        ["llama.rope.scaling.original_context_length", "u32", 8192],
      ),
    },
  },
  {
    code: "assumed-attention-factor",
    severity: "warning",
    engines: ["llama.cpp", "ollama"],
    title: both("longrope without its attention factor", "longrope 沒有注意力係數"),
    why: both(
      "llama.cpp then multiplies by 1, the model's own code by √(1 + ln s / ln L).",
      "llama.cpp 會乘 1；模型自己的程式碼乘 √(1 + ln s / ln L)。",
    ),
    fix: both("Convert the model again, or patch the key.", "重新轉換模型，或補上這個鍵。"),
    references: ["https://github.com/ggml-org/llama.cpp/issues/24875"],
    broken: null,
  },
  {
    code: "rope-divisors-as-table",
    severity: "note",
    engines: [],
    title: both("Divisors that no known scaling gives", "沒有任何已知縮放能得出的除數"),
    why: both("They are used as they are; the original length stays unknown.", "照樣使用；原始長度不得而知。"),
    fix: both("Nothing.", "不必處理。"),
    references: [ARCH],
    broken: null,
  },
  {
    code: "inferred-llama3-scaling",
    severity: "note",
    engines: [],
    title: both("llama3 scaling, told from the divisors", "從除數推知的 llama3 縮放"),
    why: both(
      "GGUF keeps only the divisors; these settings reproduce every one of them.",
      "GGUF 只保存除數；這組設定能重現每一個。",
    ),
    fix: both("Nothing.", "不必處理。"),
    references: [ARCH],
    broken: null,
  },
  {
    code: "inferred-proportional-rope",
    severity: "note",
    engines: [],
    title: both("Proportional rotation, told from the divisors", "從除數推知的 proportional 旋轉"),
    why: both("GGUF says with huge divisors which channels must not turn.", "GGUF 用極大的除數表示哪些通道不轉。"),
    fix: both("Nothing.", "不必處理。"),
    references: [ARCH],
    broken: null,
  },
  {
    code: "heads-vary-by-layer",
    severity: "note",
    engines: [],
    title: both("The number of heads varies by layer", "每層的 head 數不同"),
    why: both("The largest is shown.", "顯示的是最大的數目。"),
    fix: both("Nothing.", "不必處理。"),
    references: [ARCH],
    broken: null,
  },
  {
    code: "assumed-*",
    severity: "note",
    engines: [],
    title: both("What a GGUF or llama2.c file leaves to its reader", "GGUF 或 llama2.c 檔案留給讀取程式決定的事"),
    why: both(
      "The format has no key for it, or the file leaves it out, and llama.cpp hard-codes a value; a reader without that table computes otherwise.",
      "格式沒有這個鍵，或檔案沒有寫，llama.cpp 就用寫死的值；沒有這張表的程式會算出別的結果。",
    ),
    fix: both("Nothing, with llama.cpp.", "用 llama.cpp 時不必處理。"),
    references: [ARCH, "https://github.com/pytorch/executorch/issues/22043"],
    broken: { gguf: ggufLlama() },
  },
  {
    code: "tensor-outside-index",
    severity: "note",
    engines: [],
    title: both("Tensors that the index does not name", "索引沒有列出的張量"),
    why: both("Loaders go by the index and skip them.", "載入程式依索引讀取，會略過它們。"),
    fix: both("Write the index again, if they matter.", "若有用，請重寫索引。"),
    references: ["https://huggingface.co/docs/safetensors"],
    broken: null,
  },
];
