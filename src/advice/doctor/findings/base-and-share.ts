// The base of the frequencies, and the share of a head that rotates.

import { canonicalOperations } from "../canonical.ts";
import { pointerOf } from "../json-text.ts";
import { both, code, ownValue, ropeDict, set } from "../record.ts";
import type { FindingRecord } from "../types.ts";
import { gemma3, llama2, llama31, neox, qwen3 } from "./base.ts";

export const baseAndShare: readonly FindingRecord[] = [
  {
    code: "theta-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("A base that the class does not read", "類別不讀的底數"),
    why: both(
      "OLMo 3's sliding layers, GPT-NeoX and classes with settings of their own compute with their default instead of the rope_theta written.",
      "OLMo 3 的滑動視窗層、GPT-NeoX，以及自帶設定的類別，都會用預設值，而不是檔案寫的 rope_theta。",
    ),
    fix: both("Write it where the class looks for it.", "寫在類別會讀的地方。"),
    references: [
      "https://github.com/vllm-project/vllm/issues/28542",
      "https://github.com/LostRuins/koboldcpp/issues/426",
    ],
    broken: { config: neox({ rotary_emb_base: undefined, rope_theta: 1000000.0 }) },
    repair: ({ expected, got }, subject) => {
      const key = /^"(\w+)": /.exec(expected)?.[1];
      return key === undefined ? canonicalOperations(subject) : [set(`${subject.textPath}/${key}`, got)];
    },
  },
  {
    code: "theta-conflict",
    severity: "warning",
    engines: [],
    title: both("Two bases", "兩個不同的底數"),
    why: both(
      "transformers 5 computes with the one inside the dict, a loader of the older schema with the one outside.",
      "transformers 5 用 dict 裡面的，讀舊格式的程式用外面的。",
    ),
    fix: both("Write the same number in both places.", "兩處寫同一個數字。"),
    references: ["https://github.com/THUDM/slime/pull/1720"],
    broken: {
      config: qwen3({
        rope_theta: 10000.0,
        rope_scaling: undefined,
        rope_parameters: { rope_type: "default", rope_theta: 1000000 },
      }),
    },
    repair: ({ where, expected }) => [set(pointerOf(where), Number.parseFloat(expected))],
  },
  {
    code: "theta-assumed",
    severity: "note",
    engines: [],
    title: both("The base is not written", "沒有寫出底數"),
    why: both(
      "The default of the class is taken; another program may have another default.",
      "採用類別的預設值；別的程式可能有別的預設值。",
    ),
    fix: both("Write rope_theta.", "寫出 rope_theta。"),
    references: ["https://github.com/paiml/realizar/issues/78"],
    broken: { config: llama2({ rope_theta: undefined }) },
  },
  {
    code: "theta-lost",
    severity: "warning",
    engines: [],
    title: both("A long context without a base", "context 很長，卻沒有底數"),
    why: both(
      "Programs that lose rope_theta fall back to 10000 without a word; models of this length are trained with a larger one.",
      "遺失 rope_theta 的程式會默默退回 10000；這種長度的模型訓練時用的是更大的底數。",
    ),
    fix: both(
      "Write the rope_theta of the training: 1000000 for Qwen 2.5 and Qwen 3.",
      "寫出訓練時的 rope_theta：Qwen 2.5 與 Qwen 3 是 1000000。",
    ),
    references: ["https://github.com/THUDM/slime/pull/1720", "https://github.com/vllm-project/vllm/issues/28542"],
    broken: { config: qwen3({ rope_theta: undefined }) },
    *check(subject) {
      const { model } = subject;
      if (model === null || subject.config === null || (model.maxPositionEmbeddings ?? 0) < 16384) return;
      const isAssumed = model.findings.some(({ code: found }) => found === "theta-assumed");
      const first = model.groups.find(
        ({ position, layerType }) => position.kind === "rope" && layerType !== "sliding_attention",
      )?.position;
      if (!isAssumed || first?.kind !== "rope" || first.rope.ropeTheta !== 10000) return;
      // An interpolation of an older model is what makes such a length without a larger base.
      if (!/^(default|yarn|llama3)$/.test(first.rope.ropeType)) return;
      const isQwen = /^qwen[23]/.test(model.modelType);
      const path = `${subject.textPath}/rope_theta`;
      yield {
        where: path,
        got: null,
        expected: isQwen ? code("1000000") : both("the base of the training", "訓練時的底數"),
        operations: isQwen && ropeDict(subject)?.dict.rope_theta === undefined ? [set(path, 1000000)] : [],
      };
    },
  },
  {
    code: "llama3-theta",
    severity: "error",
    engines: [],
    title: both("llama3 scaling over base 10000", "llama3 縮放配上底數 10000"),
    why: both(
      "The llama3 scaling was made for a base of 500000; with 10000, the value of a program that lost rope_theta, text turns incoherent past about a thousand tokens.",
      "llama3 縮放是為底數 500000 設計的；10000 是遺失 rope_theta 的程式會用的值，約一千個 token 之後輸出就不連貫。",
    ),
    fix: both(
      "Write the rope_theta of the training, 500000 for Llama 3.",
      "寫出訓練時的 rope_theta，Llama 3 是 500000。",
    ),
    references: ["https://github.com/lyogavin/airllm/issues/369", "https://github.com/sbryngelson/ANEForge/issues/58"],
    broken: { config: llama31({ rope_theta: 10000.0 }) },
    *check(subject) {
      for (const { position } of subject.model?.groups ?? []) {
        if (position.kind !== "rope" || position.rope.ropeType !== "llama3" || position.rope.ropeTheta > 10000)
          continue;
        if (subject.config === null) return;
        const inside = ropeDict(subject)?.dict.rope_theta !== undefined;
        const path = inside ? `${ropeDict(subject)!.path}/rope_theta` : `${subject.textPath}/rope_theta`;
        yield {
          where: path,
          got: position.rope.ropeTheta,
          expected: code("500000"),
          operations: [set(path, 500000.0)],
        };
        return;
      }
    },
  },
  {
    code: "partial-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("A share of the head that the class does not read", "類別不讀的旋轉比例"),
    why: both(
      "Classes that rotate whole heads ignore partial_rotary_factor, and fail in the forward pass under a scaling; GPT-NeoX reads rotary_pct.",
      "旋轉整個 head 的類別會忽略 partial_rotary_factor，有縮放時前向計算會失敗；GPT-NeoX 讀的是 rotary_pct。",
    ),
    fix: both(
      "Use the key that the class reads, or a class that rotates part of a head.",
      "改用類別會讀的鍵，或能旋轉部分 head 的類別。",
    ),
    references: [
      "https://github.com/ml-explore/mlx-lm/issues/1698",
      "https://github.com/AI-Hypercomputer/maxtext/issues/4616",
    ],
    broken: { config: llama31({ partial_rotary_factor: 0.5, rope_scaling: null }) },
    repair: ({ expected, got }, subject) => {
      const key = /^"(\w+)": /.exec(expected)?.[1];
      return key === undefined ? [] : [set(`${subject.textPath}/${key}`, got)];
    },
  },
  {
    code: "partial-assumed",
    severity: "note",
    engines: [],
    title: both("The rotated share of a head is not written", "沒有寫出 head 旋轉的比例"),
    why: both(
      "The class has a default below 1 (GLM 0.5); programs that do not know it rotate twice as many channels.",
      "類別有小於 1 的預設值（GLM 是 0.5）；不知道的程式會多旋轉一倍的通道。",
    ),
    fix: both("Write the share.", "寫出比例。"),
    references: ["https://github.com/ml-explore/mlx-lm/issues/1698"],
    broken: { config: neox({ rotary_pct: undefined }) },
  },
  {
    code: "head-dim-computed",
    severity: "note",
    engines: [],
    title: both("The width of a head is computed", "head 的寬度是算出來的"),
    why: both(
      "The file does not say it: hidden_size over the number of heads is taken.",
      "檔案沒有寫：以 hidden_size 除以 head 數。",
    ),
    fix: both("Write head_dim.", "寫出 head_dim。"),
    references: ["https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/modeling_rope_utils.py"],
    broken: { config: llama2({ head_dim: undefined }) },
  },
  {
    code: "local-theta-missing",
    severity: "warning",
    engines: [],
    title: both("Global and local layers with one base", "全域層與區域層用同一個底數"),
    why: both(
      "Gemma 3 was trained with base 10000 on its sliding layers and 1000000 on the global ones; one base for both makes the near tokens wrong.",
      "Gemma 3 訓練時滑動視窗層用 10000、全域層用 1000000；兩者共用一個底數會讓近處的 token 出錯。",
    ),
    fix: both("Write the local base: rope_local_base_freq 10000.", "寫出區域的底數：rope_local_base_freq 10000。"),
    references: ["https://github.com/vllm-project/vllm/issues/29111"],
    broken: { config: gemma3({ rope_local_base_freq: 1000000.0 }) },
    *check(subject) {
      const { model } = subject;
      if (model === null || subject.config === null || !/^gemma(3|3n|4)/.test(model.modelType)) return;
      const thetas = new Map(
        model.groups.flatMap(({ layerType, position }) =>
          position.kind === "rope" ? [[layerType, position.rope.ropeTheta] as const] : [],
        ),
      );
      const local = thetas.get("sliding_attention");
      if (local === undefined || local !== thetas.get("full_attention")) return;
      const path = `${subject.textPath}/rope_local_base_freq`;
      const isOwn = ownValue(subject, "rope_local_base_freq") !== undefined;
      yield { where: path, got: local, expected: code("10000"), operations: isOwn ? [set(path, 10000.0)] : [] };
    },
  },
];
