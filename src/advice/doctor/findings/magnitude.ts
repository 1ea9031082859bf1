// Factors on scores: YaRN's magnitude, DeepSeek's softmax factor, temperatures, ALiBi.

import { pointerOf, valueAt } from "../json-text.ts";
import { both, code, drop, parentOf, ropeDict, set } from "../record.ts";
import type { FindingRecord } from "../types.ts";
import { deepseek, deepseekYarn, gptOss, llama31, llama31Dict, ministral3, qwen3, qwenYarn } from "./base.ts";

export const magnitude: readonly FindingRecord[] = [
  {
    code: "mscale-alone",
    severity: "warning",
    engines: [],
    title: both("One of mscale and mscale_all_dim", "mscale 與 mscale_all_dim 只寫了一個"),
    why: both(
      "With one alone transformers 5 ignores it; DeepSeek's code, vLLM and mlx-lm take a default for the other, and every score differs.",
      "只寫一個時 transformers 5 會忽略；DeepSeek 的程式碼、vLLM 與 mlx-lm 會替另一個補預設值，每個分數都不同。",
    ),
    fix: both("Write both, or attention_factor.", "兩個都寫，或寫 attention_factor。"),
    references: [
      "https://github.com/vllm-project/vllm/issues/48621",
      "https://github.com/turboderp-org/exllamav3/issues/259",
    ],
    broken: { config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn({ mscale: 0.707 }) }) },
  },
  {
    code: "attention-factor-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("A magnitude under a key of vLLM's", "用了 vLLM 專用鍵的係數"),
    why: both(
      "transformers 5 does not know attn_factor and apply_yarn_scaling, and computes another factor on every score.",
      "transformers 5 不認得 attn_factor 與 apply_yarn_scaling，每個分數都用了別的係數。",
    ),
    fix: both('Write "attention_factor".', '改寫 "attention_factor"。'),
    references: ["https://github.com/ikawrakow/ik_llama.cpp/issues/1298"],
    broken: { config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn({ attn_factor: 0.5 }) }) },
    repair: ({ where, expected }, subject) => {
      const dict = parentOf(pointerOf(where));
      const value = Number(/: ([\d.e+-]+)$/.exec(expected)?.[1]);
      const keys = ["attn_factor", "apply_yarn_scaling"].filter(
        (key) => valueAt(subject.effective, `${dict}/${key}`) !== undefined,
      );
      return [set(`${dict}/attention_factor`, value), ...keys.map((key) => drop(`${dict}/${key}`))];
    },
  },
  {
    code: "betas-reversed",
    severity: "warning",
    engines: [],
    title: both("beta_fast below beta_slow", "beta_fast 小於 beta_slow"),
    why: both(
      "The ramp runs backwards: fast pairs are interpolated and slow ones are not; llama.cpp makes a step of it.",
      "斜坡反過來了：快的成對通道被內插，慢的反而沒有；llama.cpp 則變成一個階梯。",
    ),
    fix: both("Exchange the two.", "把兩者對調。"),
    references: ["https://arxiv.org/abs/2309.00071"],
    broken: {
      config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn({ beta_fast: 1, beta_slow: 32 }) }),
    },
    repair: ({ where }, subject) => {
      const dict = parentOf(pointerOf(where));
      const fast = valueAt(subject.effective, `${dict}/beta_fast`);
      const slow = valueAt(subject.effective, `${dict}/beta_slow`);
      if (typeof fast !== "number" || typeof slow !== "number") return [];
      return [set(`${dict}/beta_fast`, slow), set(`${dict}/beta_slow`, fast)];
    },
  },
  {
    code: "llama3-bands",
    severity: "warning",
    engines: [],
    title: both("high_freq_factor below low_freq_factor", "high_freq_factor 小於 low_freq_factor"),
    why: both(
      "The two bands are the wrong way round, so the blend runs backwards.",
      "兩個頻帶顛倒，混合也跟著反過來。",
    ),
    fix: both("Exchange the two; Llama 3.1 ships 1 and 4.", "把兩者對調；Llama 3.1 是 1 與 4。"),
    references: ["https://github.com/jmaczan/tiny-vllm/issues/1"],
    broken: { config: llama31({ rope_scaling: llama31Dict({ low_freq_factor: 4.0, high_freq_factor: 1.0 }) }) },
    repair: ({ where }, subject) => {
      const dict = parentOf(pointerOf(where));
      const low = valueAt(subject.effective, `${dict}/low_freq_factor`);
      const high = valueAt(subject.effective, `${dict}/high_freq_factor`);
      return [set(`${dict}/low_freq_factor`, high), set(`${dict}/high_freq_factor`, low)];
    },
  },
  {
    code: "llama3-step",
    severity: "note",
    engines: [],
    title: both("A step without a blend", "沒有混合區的階梯"),
    why: both(
      "Both bands end at the same frequency; Llama 4 Scout ships so.",
      "兩個頻帶在同一個頻率相接；Llama 4 Scout 就是這樣。",
    ),
    fix: both("Nothing, if it was meant.", "若是有意的，就不必處理。"),
    references: ["https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/modeling_rope_utils.py"],
    broken: { config: llama31({ rope_scaling: llama31Dict({ high_freq_factor: 1.0 }) }) },
  },
  {
    code: "softmax-factor",
    severity: "note",
    engines: [],
    title: both("The softmax scale has a factor of its own", "softmax 的縮放另有係數"),
    why: both(
      "DeepSeek's latent attention multiplies the softmax scale by m(factor, mscale_all_dim)² besides the tables; engines that leave it out score otherwise from the second token on.",
      "DeepSeek 的潛在注意力除了表以外，還把 softmax 的縮放乘上 m(factor, mscale_all_dim)²；少了它的引擎從第二個 token 起分數就不同。",
    ),
    fix: both("Nothing here; compare engines with longhand diff.", "這裡不必處理；用 longhand diff 比較引擎。"),
    references: [
      "https://github.com/huggingface/transformers/issues/47435",
      "https://github.com/onnxruntime/mobius/issues/548",
      "https://github.com/NVIDIA/Megatron-LM/issues/1429",
    ],
    broken: { config: deepseek() },
  },
  {
    code: "softmax-factor-missing",
    severity: "warning",
    engines: [],
    title: both("Latent attention under YaRN without mscale_all_dim", "潛在注意力用 YaRN，卻沒有 mscale_all_dim"),
    why: both(
      "DeepSeek's models were trained with the factor m² on the softmax scale (1.87 for V3), which comes from this key alone; without it every score is too small.",
      "DeepSeek 的模型訓練時 softmax 的縮放乘了 m²（V3 是 1.87），只由這個鍵決定；少了它，每個分數都太小。",
    ),
    fix: both(
      "Write mscale and mscale_all_dim of the training: 1 and 1 for V3, 0.707 and 0.707 for V2 Lite.",
      "寫出訓練時的 mscale 與 mscale_all_dim：V3 是 1 與 1，V2 Lite 是 0.707 與 0.707。",
    ),
    references: [
      "https://github.com/onnxruntime/mobius/issues/548",
      "https://github.com/ggml-org/llama.cpp/issues/17945",
    ],
    broken: { config: deepseek({ rope_scaling: deepseekYarn({ mscale: undefined, mscale_all_dim: undefined }) }) },
    *check(subject) {
      if (!/^(deepseek_v[23]|deepseek_v32|kimi_k2\w*)$/.test(subject.model?.modelType ?? "")) return;
      const found = ropeDict(subject);
      const position = subject.model?.groups.find((group) => group.position.kind === "rope")?.position;
      if (
        found === null ||
        position?.kind !== "rope" ||
        position.rope.ropeType !== "yarn" ||
        position.rope.mscaleAllDim
      )
        return;
      yield {
        where: `${found.path}/mscale_all_dim`,
        got: found.dict.mscale_all_dim ?? null,
        expected: code('"mscale": 1.0, "mscale_all_dim": 1.0'),
        operations:
          subject.model?.modelType === "deepseek_v3" && found.dict.mscale === undefined
            ? [set(`${found.path}/mscale`, 1.0), set(`${found.path}/mscale_all_dim`, 1.0)]
            : [],
      };
    },
  },
  {
    code: "truncate-missing",
    severity: "warning",
    engines: [],
    title: both("gpt-oss without truncate false", "gpt-oss 沒有寫 truncate false"),
    why: both(
      "gpt-oss was trained with an unrounded ramp (8.09 to 17.40); rounding its ends changes middle frequencies by up to 27 % and was seen as wrong log probabilities.",
      "gpt-oss 訓練時斜坡兩端不取整（8.09 到 17.40）；取整會讓中間的頻率差到 27 %，曾造成 log 機率錯誤。",
    ),
    fix: both('Write "truncate": false.', '寫出 "truncate": false。'),
    references: [
      "https://github.com/vllm-project/vllm/issues/27722",
      "https://github.com/sgl-project/sglang/issues/14270",
    ],
    broken: {
      config: gptOss({
        rope_scaling: {
          rope_type: "yarn",
          factor: 32.0,
          beta_fast: 32.0,
          beta_slow: 1.0,
          original_max_position_embeddings: 4096,
        },
      }),
    },
    *check(subject) {
      const found = ropeDict(subject);
      if (subject.model?.modelType !== "gpt_oss" || found === null || found.dict.truncate === false) return;
      if ((found.dict.rope_type ?? found.dict.type) !== "yarn") return;
      const path = `${found.path}/truncate`;
      yield { where: path, got: found.dict.truncate ?? null, expected: code("false"), operations: [set(path, false)] };
    },
  },
  {
    code: "temperature-missing",
    severity: "warning",
    engines: ["transformers"],
    title: both("Ministral 3 without its temperature", "Ministral 3 沒有溫度係數"),
    why: both(
      "transformers 5 raises TypeError in the forward pass; other engines leave queries of far positions unscaled.",
      "transformers 5 在前向計算時丟出 TypeError；其他引擎則不放大遠處位置的 query。",
    ),
    fix: both(
      'Write "llama_4_scaling_beta": 0.1, as Ministral 3 ships it.',
      '寫出 "llama_4_scaling_beta": 0.1，與 Ministral 3 出廠相同。',
    ),
    references: ["https://github.com/vllm-project/vllm/issues/48621"],
    broken: {
      config: ministral3({
        rope_parameters: {
          rope_type: "yarn",
          rope_theta: 1000000.0,
          factor: 16.0,
          original_max_position_embeddings: 16384,
          mscale: 1.0,
          mscale_all_dim: 1.0,
        },
      }),
    },
    repair: (_, subject) => {
      const found = ropeDict(subject);
      return found === null ? [] : [set(`${found.path}/llama_4_scaling_beta`, 0.1)];
    },
  },
  {
    code: "alpha-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("alpha outside HunYuan", "HunYuan 以外的 alpha"),
    why: both(
      "Only HunYuan's classes read it: elsewhere transformers scales by factor past max_position_embeddings, and the fixed base that was meant is lost.",
      "只有 HunYuan 的類別讀它：其他類別在 transformers 裡超過 max_position_embeddings 才依 factor 縮放，原本要的固定底數就沒了。",
    ),
    fix: both("Remove alpha, or write the larger base as rope_theta.", "拿掉 alpha，或把較大的底數寫成 rope_theta。"),
    references: ["https://github.com/oobabooga/text-generation-webui/issues/3852"],
    broken: { config: qwen3({ rope_scaling: { rope_type: "dynamic", factor: 2.0, alpha: 4.0 } }) },
  },
  {
    code: "alibi-bias-max-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("alibi_bias_max other than 8", "alibi_bias_max 不是 8"),
    why: both(
      "transformers ignores the key and always computes slopes down to 2^−8.",
      "transformers 忽略這個鍵，斜率一律算到 2^−8。",
    ),
    fix: both("Run it with the model's own code.", "用模型自己的程式碼執行。"),
    references: ["https://github.com/ml-explore/mlx/issues/343"],
    broken: {
      config: {
        model_type: "mpt",
        d_model: 4096,
        n_heads: 32,
        n_layers: 32,
        max_seq_len: 65536,
        attn_config: { alibi: true, alibi_bias_max: 16 },
      },
    },
  },
  {
    code: "alibi-scaled",
    severity: "note",
    engines: [],
    title: both("Falcon's slopes are divided by √head_dim", "Falcon 的斜率會除以 √head_dim"),
    why: both(
      "Its code adds the bias before the scores are scaled, and rounds it to bfloat16.",
      "它的程式碼在縮放分數之前就加上偏置，並取到 bfloat16。",
    ),
    fix: both("Nothing; other engines must do the same.", "不必處理；其他引擎也必須這樣做。"),
    references: ["https://github.com/ml-explore/mlx/issues/343"],
    broken: {
      config: {
        model_type: "falcon",
        hidden_size: 4096,
        num_hidden_layers: 36,
        num_attention_heads: 64,
        alibi: true,
        new_decoder_architecture: false,
        max_position_embeddings: 2048,
      },
    },
  },
];
