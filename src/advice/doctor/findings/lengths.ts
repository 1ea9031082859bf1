// Lengths: what was trained, what the file claims, what a scaling reaches, and what is asked for.

import { isObject } from "../../../formats/huggingface/values.ts";
import { pointerOf, valueAt } from "../json-text.ts";
import { llamaReach } from "../llama-scaling.ts";
import { both, flagJson, ownValue, ropeDict, set, tokens } from "../record.ts";
import type { FindingRecord, Operation, Subject } from "../types.ts";
import { gemma3, gpt2, llama2, llama31, llama31Dict, phi3, phiLists, qwen3, qwenYarn } from "./base.ts";

/** The longest length that the settings reach: the file's claim, or a YaRN's factor times its original length. */
export function reachOf(subject: Subject): number | null {
  const { model } = subject;
  if (model === null) return null;
  let reach = Math.max(model.maxPositionEmbeddings ?? 0, llamaReach(subject) ?? 0);
  for (const { position } of model.groups) {
    if (position.kind !== "rope") continue;
    const { rope } = position;
    if (rope.ropeType === "yarn")
      reach = Math.max(reach, Math.round((rope.factor ?? 1) * rope.originalMaxPositionEmbeddings));
    if ((rope.ropeType === "linear" || rope.ropeType === "ntk") && subject.overrides !== null) {
      reach = Math.max(reach, Math.round(rope.factor * (model.maxPositionEmbeddings ?? 0)));
    }
  }
  return reach === 0 ? null : reach;
}

/** The one YaRN of a model, with the pointer to its dict; null where there is none. */
export function yarnOf(subject: Subject): { factor: number; original: number; path: string } | null {
  for (const { position } of subject.model?.groups ?? []) {
    if (position.kind !== "rope" || position.rope.ropeType !== "yarn") continue;
    const { factor, originalMaxPositionEmbeddings: original } = position.rope;
    return { factor: factor ?? 1, original, path: ropeDict(subject)?.path ?? `${subject.textPath}/rope_parameters` };
  }
  return null;
}

/** Model types whose makers ship no scaling and offer a static YaRN to switch on. */
const optInYarn = /^(qwen2|qwen2_moe|qwen3|qwen3_moe|qwen3_next|qwen3_5\w*|qwen2_5_vl\w*|qwen3_vl\w*|seed_oss)$/;

/** The smallest of 1.25, 1.5, 2, 2.5, 3, 4, … that reaches a length. */
function enough(target: number, trained: number): number {
  return Math.max(1, Math.ceil((4 * target) / trained) / 4);
}

export const lengths: readonly FindingRecord[] = [
  {
    code: "original-length-assumed",
    severity: "warning",
    engines: [],
    title: both("The scaling does not say which length it starts from", "縮放沒有寫出起算的長度"),
    why: both(
      "Engines take max_position_embeddings instead; where that is already the extended length, the scaling is applied twice and every slow frequency is wrong.",
      "引擎會改用 max_position_embeddings；若它已是延伸後的長度，縮放就等於做了兩次，慢的頻率全都不對。",
    ),
    fix: both(
      'Write "original_max_position_embeddings": the length of the original training.',
      '寫出 "original_max_position_embeddings"，也就是原本訓練的長度。',
    ),
    references: [
      "https://github.com/NVIDIA-NeMo/Safe-Synthesizer/pull/623",
      "https://github.com/vllm-project/vllm/issues/10293",
    ],
    broken: {
      config: qwen3({
        max_position_embeddings: 131072,
        rope_scaling: qwenYarn({ original_max_position_embeddings: undefined }),
      }),
    },
  },
  {
    code: "original-length-conflict",
    severity: "warning",
    engines: ["transformers"],
    title: both("Two original lengths", "兩個互相矛盾的原始長度"),
    why: both(
      "transformers 5 lets the value outside the dict win (Phi-3's class has 4096 there by default); other loaders take the one inside.",
      "transformers 5 以 dict 外面的值為準（Phi-3 的類別預設是 4096）；其他程式取裡面的值。",
    ),
    fix: both("Write the same number in both places.", "兩處寫同一個數字。"),
    references: ["https://github.com/huggingface/transformers/issues/36877"],
    broken: {
      config: phi3({
        max_position_embeddings: 65536,
        original_max_position_embeddings: undefined,
        rope_scaling: phiLists({ original_max_position_embeddings: 8192 }),
      }),
    },
    repair: ({ where, got }, subject) => {
      const outer = `${subject.textPath}/original_max_position_embeddings`;
      const outside = valueAt(subject.effective, outer);
      // The dict repeats the maximum where transformers filled it in; else the number beside the scaling is meant.
      if (got === ownValue(subject, "max_position_embeddings") && outside !== undefined)
        return [set(pointerOf(where), outside)];
      return [set(outer, got)];
    },
  },
  {
    code: "original-length-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("An original length that the entries do not see", "項目看不到的原始長度"),
    why: both(
      "Entries by layer type never look outside themselves in transformers 5: max_position_embeddings is taken instead.",
      "在 transformers 5，依層種類寫的項目不會往外找，因此改用 max_position_embeddings。",
    ),
    fix: both("Write it inside the entry.", "寫進項目裡。"),
    references: ["https://github.com/huggingface/transformers/pull/42255"],
    broken: {
      config: gemma3({
        original_max_position_embeddings: 32768,
        rope_theta: undefined,
        rope_local_base_freq: undefined,
        rope_scaling: undefined,
        rope_parameters: {
          full_attention: { rope_type: "yarn", rope_theta: 1000000.0, factor: 4.0 },
          sliding_attention: { rope_type: "default", rope_theta: 10000.0 },
        },
      }),
    },
    repair: ({ got, expected }) => {
      const inside = / inside (\S+)$/.exec(expected)?.[1];
      return inside === undefined ? [] : [set(`${pointerOf(inside)}/original_max_position_embeddings`, got)];
    },
  },
  {
    code: "yarn-factor-mismatch",
    severity: "warning",
    engines: [],
    title: both("YaRN's factor and the two lengths disagree", "YaRN 的因子與兩個長度對不起來"),
    why: both(
      "The factor written is computed with; the length that the file claims is another one, and vLLM 0.31 and later admit only the claimed length.",
      "實際以寫出的因子計算；檔案宣稱的卻是另一個長度，而 vLLM 0.31 以後只接受宣稱的長度。",
    ),
    fix: both(
      "Write max_position_embeddings as factor times the original length.",
      "把 max_position_embeddings 寫成因子乘以原始長度。",
    ),
    references: [
      "https://github.com/huggingface/transformers/issues/38224",
      "https://github.com/vllm-project/vllm/pull/56446",
    ],
    broken: { config: qwen3({ rope_scaling: qwenYarn() }) },
    repair: (_, subject) => {
      const yarn = yarnOf(subject);
      if (yarn === null) return [];
      return [set(`${subject.textPath}/max_position_embeddings`, Math.round(yarn.factor * yarn.original))];
    },
  },
  {
    code: "yarn-original-equals-max",
    severity: "warning",
    engines: [],
    title: both("YaRN over a length that was not raised, or was extended already", "YaRN 的長度沒有調高，或早已延伸過"),
    why: both(
      "Both lengths are the same: either the file still claims the trained length, or the factor is applied to an extended one.",
      "兩個長度相同：要不是檔案仍宣稱訓練長度，就是因子套在已延伸的長度上。",
    ),
    fix: both(
      "Write the trained length as original_max_position_embeddings and the extended one as max_position_embeddings.",
      "original_max_position_embeddings 寫訓練長度，max_position_embeddings 寫延伸後的長度。",
    ),
    references: ["https://github.com/NVIDIA-NeMo/Safe-Synthesizer/pull/623"],
    broken: {
      config: qwen3({
        max_position_embeddings: 131072,
        rope_scaling: qwenYarn({ original_max_position_embeddings: 131072 }),
      }),
    },
  },
  {
    code: "original-not-below-max",
    severity: "warning",
    engines: [],
    title: both("The original length is not below the claimed one", "原始長度沒有小於宣稱的長度"),
    why: both(
      "llama3 scaling then stretches a length that is not extended.",
      "這樣 llama3 縮放是在拉長一個根本沒有延伸的長度。",
    ),
    fix: both(
      "Write the length of the original training; Llama 3.1 to 3.3 have 8192.",
      "寫出原本訓練的長度；Llama 3.1 到 3.3 是 8192。",
    ),
    references: ["https://github.com/unslothai/unsloth/issues/6197"],
    broken: { config: llama31({ rope_scaling: llama31Dict({ original_max_position_embeddings: 131072 }) }) },
    repair: ({ where }, subject) => (subject.model?.modelType === "llama" ? [set(pointerOf(where), 8192)] : []),
  },
  {
    code: "length-conflict",
    severity: "warning",
    engines: [],
    title: both("max_position_embeddings twice, with two values", "max_position_embeddings 出現兩次，值不同"),
    why: both(
      "transformers computes with the file's own; an engine that reads the dict alone computes with the other.",
      "transformers 用檔案本身的值；只讀 dict 的引擎用另一個。",
    ),
    fix: both("Write the same number in both places.", "兩處寫同一個數字。"),
    references: ["https://github.com/vllm-project/vllm/pull/56446"],
    broken: { config: llama2({ rope_scaling: { rope_type: "dynamic", factor: 2.0, max_position_embeddings: 8192 } }) },
    repair: ({ where }, subject) => [set(pointerOf(where), ownValue(subject, "max_position_embeddings"))],
  },
  {
    code: "factor-below-one",
    severity: "warning",
    engines: [],
    title: both("A factor below 1", "小於 1 的因子"),
    why: both("It shortens the context: some programs take its inverse.", "這會縮短 context：有些程式用的是它的倒數。"),
    fix: both("Write its inverse.", "寫它的倒數。"),
    references: ["https://github.com/ggml-org/llama.cpp/discussions/2402"],
    broken: { config: llama2({ rope_scaling: { rope_type: "linear", factor: 0.25 } }) },
    repair: ({ where, got }) => (typeof got === "number" && got > 0 ? [set(pointerOf(where), 1 / got)] : []),
  },
  {
    code: "trained-length-assumed",
    severity: "note",
    engines: [],
    title: both("The trained length is not written", "沒有寫出訓練長度"),
    why: both(
      "linear and dynamic have no key for it; max_position_embeddings is taken for it.",
      "linear 與 dynamic 沒有這個鍵，因此把 max_position_embeddings 當成訓練長度。",
    ),
    fix: both(
      "Name it on the command line (--trained-length) where a chart depends on it.",
      "圖表需要時，可在命令列用 --trained-length 指定。",
    ),
    references: ["https://github.com/vllm-project/vllm/issues/10537"],
    broken: { config: llama2({ max_position_embeddings: 32768, rope_scaling: { rope_type: "linear", factor: 8.0 } }) },
  },
  {
    code: "past-learned-table",
    severity: "error",
    engines: [],
    title: both("Past the end of a learned position table", "超出學習式位置表的範圍"),
    why: both(
      "There is no row for these positions: an engine crashes, or reads a wrong row.",
      "這些位置在表裡沒有對應的列：引擎會當掉，或讀到錯的列。",
    ),
    fix: both("Stay within the table, or take another model.", "不要超過表的長度，或換一個模型。"),
    references: ["https://github.com/facebookresearch/esm/issues/49"],
    broken: { config: gpt2(), target: 4096 },
  },
  {
    code: "position-table-rows",
    severity: "error",
    engines: [],
    title: both("The position table has other rows than the file claims", "位置表的列數與檔案宣稱的不同"),
    why: both(
      "Later positions have no row: transformers refuses the weights, and an engine that does not check reads past the table.",
      "後面的位置沒有對應的列：transformers 會拒絕這組權重，不檢查的引擎則會讀到表外。",
    ),
    fix: both("Write the number of rows that the weights have.", "寫出權重實際的列數。"),
    references: [
      "https://github.com/facebookresearch/esm/issues/49",
      "https://github.com/vllm-project/vllm/issues/44286",
    ],
    broken: { config: gpt2({ n_positions: 4096 }), tensors: { "wpe.weight": [1024, 768] } },
    *check(subject) {
      const group = subject.model?.groups.find(({ position }) => position.kind === "learned");
      if (group?.position.kind !== "learned" || subject.tensors === null || subject.config === null) return;
      const { numPositions, offset } = group.position;
      const pattern = /(^|\.)(wpe|embed_positions|position_embeddings?|position_embd)\.weight$/;
      for (const [name, shape] of subject.tensors) {
        if (!pattern.test(name) || shape.length !== 2 || shape[0] === numPositions + offset) continue;
        const key = ["n_positions", "max_position_embeddings", "n_ctx"].find(
          (one) => ownValue(subject, one) !== undefined,
        );
        const rows = shape[0]! - offset;
        yield {
          where: `tensor ${name}`,
          got: shape,
          expected: both(
            `${numPositions + offset} rows, as the file claims`,
            `${numPositions + offset} 列，如檔案所宣稱`,
          ),
          operations:
            key === undefined
              ? []
              : [set(`${subject.textPath}/${key}`, key === "max_position_embeddings" ? shape[0] : rows)],
        };
      }
    },
  },
  {
    code: "target-not-reached",
    severity: "error",
    engines: [],
    title: both("The length asked for is past what the settings reach", "要求的長度超過設定能到的長度"),
    why: both(
      "The slow hands of the rotary clock reach angles there that training never showed, and the text falls apart.",
      "旋轉時鐘的慢針在那裡會轉到訓練時沒見過的角度，輸出就會崩壞。",
    ),
    fix: both(
      "Add a scaling that reaches the length, and measure it: longhand compare.",
      "加上能達到這個長度的縮放，並以 longhand compare 測量。",
    ),
    references: ["https://github.com/vllm-project/vllm/issues/10537", "https://arxiv.org/abs/2309.00071"],
    broken: { config: qwen3(), target: 131072 },
    *check(subject) {
      const reach = reachOf(subject);
      const { target, model } = subject;
      if (reach === null || target === null || model === null || target <= reach) return;
      // Layers that see a window, have no rotation or change with the length do not end anywhere.
      const ending = model.groups.filter(({ position, slidingWindow, attentionChunkSize }) => {
        if (position.kind !== "rope" || slidingWindow !== null || attentionChunkSize !== null) return false;
        return !["dynamic", "dynamic-linear", "dynamic-yarn", "longrope"].includes(position.rope.ropeType);
      });
      const first = ending[0];
      if (first?.position.kind !== "rope") return;
      const { rope } = first.position;
      const original =
        "originalMaxPositionEmbeddings" in rope ? rope.originalMaxPositionEmbeddings : model.trainedLength;
      const place = `${subject.textPath}/max_position_embeddings`;
      const where = subject.config === null ? "context_length" : place;
      const plain =
        rope.ropeType === "default" &&
        subject.config !== null &&
        ending.every((group) => group.layerType !== "sliding_attention");
      const typed = model.groups.some(({ layerType }) => layerType === "sliding_attention");
      const isYarn = rope.ropeType === "yarn";
      const trained = qwenNative(model.modelType, original ?? reach);
      const factor = enough(target, trained);
      const dict = {
        rope_type: "yarn",
        ...(ownValue(subject, "rope_theta") === undefined ? { rope_theta: rope.ropeTheta } : {}),
        factor,
        original_max_position_embeddings: trained,
      };
      const found = ropeDict(subject);
      // llama.cpp clamps, and says so in a finding of its own.
      if (subject.engine === "llama.cpp" && subject.command !== null) return;
      const inFlag =
        plain && !typed && found === null ? overrideFlag(subject, dict, Math.round(factor * trained)) : null;
      const operations =
        inFlag !== null
          ? [inFlag]
          : plain && !typed && found === null && subject.overrides === null
            ? [set(`${subject.textPath}/rope_scaling`, dict), set(place, Math.round(factor * trained))]
            : isYarn && found !== null && isObject(found.dict) && found.dict.factor !== undefined
              ? [set(`${found.path}/factor`, factor), set(place, Math.round(factor * trained))]
              : [];
      yield {
        where,
        got: reach,
        expected: both(`at least ${tokens(target)}, the length asked for`, `至少 ${tokens(target)}，也就是要求的長度`),
        ...(operations.length > 0 || plain
          ? {
              fix: both(
                `write a YaRN of factor ${factor} over ${tokens(trained)} tokens, and measure it: longhand compare`,
                `寫一個以 ${tokens(trained)} 個 token 為底、因子 ${factor} 的 YaRN，並以 longhand compare 測量`,
              ),
            }
          : {}),
        operations,
      };
    },
  },
  {
    code: "static-yarn-short",
    severity: "note",
    engines: [],
    title: both("A static YaRN changes short prompts too", "靜態的 YaRN 連短的提示也會改變"),
    why: both(
      "Its frequencies and its factor on every score hold from the first token; users measured 15 to 20 % lost on agent tasks with Qwen3.",
      "從第一個 token 起，頻率和每個分數的係數就都改了；有使用者在 Qwen3 的 agent 任務上測到 15 至 20 % 的損失。",
    ),
    fix: both(
      "Switch it on only where long inputs are expected, with the smallest factor that reaches.",
      "只在會有長輸入時打開，並用剛好夠的最小因子。",
    ),
    references: ["https://github.com/vllm-project/vllm/issues/18728", "https://github.com/QwenLM/Qwen3/issues/1567"],
    broken: { config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn() }) },
    *check(subject) {
      const yarn = yarnOf(subject);
      if (yarn === null || yarn.factor <= 1 || !optInYarn.test(subject.model?.modelType ?? "")) return;
      yield {
        where: subject.config === null ? "rope.scaling" : yarn.path,
        got: yarn.factor,
        expected: both(
          `no scaling for inputs of at most ${tokens(yarn.original)} tokens`,
          `輸入不超過 ${tokens(yarn.original)} 個 token 時不縮放`,
        ),
      };
    },
  },
  {
    code: "yarn-for-nothing",
    severity: "warning",
    engines: [],
    title: both("A scaling for lengths that are not asked for", "為了用不到的長度而縮放"),
    why: both(
      "The length asked for lies within the original training: the scaling gives nothing and costs on short inputs.",
      "要求的長度在原本訓練的範圍內：縮放沒有好處，反而讓短輸入變差。",
    ),
    fix: both("Remove the scaling.", "拿掉縮放。"),
    references: ["https://github.com/vllm-project/vllm/issues/18728"],
    broken: { config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn() }), target: 16384 },
    *check(subject) {
      const yarn = yarnOf(subject);
      const { target } = subject;
      if (yarn === null || target === null || target > yarn.original || !optInYarn.test(subject.model?.modelType ?? ""))
        return;
      const operations = subject.config === null || subject.overrides !== null ? [] : [set(yarn.path, null)];
      yield {
        where: subject.config === null ? "rope.scaling" : yarn.path,
        got: yarn.factor,
        expected: both(
          `no scaling: ${tokens(target)} tokens are within the ${tokens(yarn.original)} of the training`,
          `不縮放：${tokens(target)} 個 token 在訓練的 ${tokens(yarn.original)} 之內`,
        ),
        operations: yarn.path.endsWith("/rope_scaling") ? operations : [],
      };
    },
  },
  {
    code: "factor-above-need",
    severity: "note",
    engines: [],
    title: both("A larger factor than the length asks for", "因子大於所需"),
    why: both(
      "Every factor costs something at short length; the smallest that reaches costs least.",
      "因子越大，短輸入的代價越高；剛好夠的最小因子代價最低。",
    ),
    fix: both("Lower the factor.", "調低因子。"),
    references: ["https://github.com/vllm-project/vllm/issues/10537"],
    broken: { config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn() }), target: 40000 },
    *check(subject) {
      const yarn = yarnOf(subject);
      const { target } = subject;
      if (
        yarn === null ||
        target === null ||
        target <= yarn.original ||
        !optInYarn.test(subject.model?.modelType ?? "")
      )
        return;
      const factor = enough(target, yarn.original);
      if (factor * 1.5 > yarn.factor) return;
      yield {
        where: subject.config === null ? "rope.scaling.factor" : `${yarn.path}/factor`,
        got: yarn.factor,
        expected: both(
          `${factor}, which reaches ${tokens(target)} tokens`,
          `${factor} 就能到 ${tokens(target)} 個 token`,
        ),
      };
    },
  },
  {
    code: "dynamic-with-cache",
    severity: "note",
    engines: [],
    title: both("Frequencies that change with the length, over cached keys", "頻率隨長度改變，快取裡的 key 卻不變"),
    why: both(
      "Keys stay in the cache as they were rotated, at an older base: past max_position_embeddings, decoding token by token differs from one pass.",
      "快取中的 key 仍是用舊的底數旋轉的：超過 max_position_embeddings 之後，逐 token 解碼與一次算完會不同。",
    ),
    fix: both(
      "Stay within max_position_embeddings, or use a static scaling.",
      "不要超過 max_position_embeddings，或改用靜態縮放。",
    ),
    references: ["https://github.com/huggingface/transformers/issues/25104"],
    broken: { config: llama2({ rope_scaling: { rope_type: "dynamic", factor: 2.0 } }) },
    *check(subject) {
      for (const { position } of subject.model?.groups ?? []) {
        if (position.kind !== "rope" || position.rope.ropeType !== "dynamic" || position.rope.alpha !== undefined)
          continue;
        yield {
          where: ropeDict(subject)?.path ?? "/rope_parameters",
          got: "dynamic",
          expected: both("one table for every length", "所有長度共用一張表"),
        };
        return;
      }
    },
  },
  {
    code: "longrope-crossing",
    severity: "note",
    engines: [],
    title: both("Two lists of frequencies, and a cache that crosses between them", "兩組頻率，快取跨越兩者"),
    why: both(
      "Past the original length the long list is used; keys already in the cache were rotated by the short one, so the cache must be computed again there.",
      "超過原始長度後改用長列表；快取裡的 key 是用短列表旋轉的，跨過時必須重算快取。",
    ),
    fix: both(
      "Use an engine that computes the cache again at the crossing, or one list for all.",
      "使用會在跨越時重算快取的引擎，或一律用同一組列表。",
    ),
    references: ["https://github.com/ggml-org/llama.cpp/issues/24875"],
    broken: { config: phi3() },
    *check(subject) {
      for (const { position } of subject.model?.groups ?? []) {
        if (position.kind !== "rope" || position.rope.ropeType !== "longrope") continue;
        const original = position.rope.originalMaxPositionEmbeddings;
        yield {
          where: ropeDict(subject)?.path ?? "tensor rope_factors_long.weight",
          got: original,
          expected: both(
            `the cache computed again at ${tokens(original)} tokens`,
            `在 ${tokens(original)} 個 token 處重算快取`,
          ),
        };
        return;
      }
    },
  },
  {
    code: "dual-chunk-attention",
    severity: "note",
    engines: [],
    title: both("Positions are folded into chunks", "位置會摺進區塊裡"),
    why: both(
      "Past the original length the frequencies stay and positions are remapped (dual chunk attention): vLLM and SGLang do so, transformers does not.",
      "超過原始長度後頻率不變，改為重新對應位置（dual chunk attention）：vLLM 與 SGLang 會做，transformers 不會。",
    ),
    fix: both("Use an engine that has it, or stay within the original length.", "使用支援的引擎，或不要超過原始長度。"),
    references: ["https://arxiv.org/abs/2402.17463"],
    broken: {
      config: qwen3({
        dual_chunk_attention_config: { chunk_size: 262144, local_size: 8192, original_max_position_embeddings: 262144 },
      }),
    },
  },
];

/** The same scaling as an override of a server's command line; null where there is no such server. */
function overrideFlag(subject: Subject, dict: Readonly<Record<string, unknown>>, length: number): Operation | null {
  const flag = { vllm: "--hf-overrides", sglang: "--json-model-override-args" }[subject.command?.engine as string];
  if (flag === undefined || subject.overrides !== null) return null;
  const theta = subject.model?.groups.find((group) => group.position.kind === "rope")?.position;
  const base = theta?.kind === "rope" ? { rope_theta: theta.rope.ropeTheta } : {};
  const { rope_type: ropeType, ...rest } = dict;
  const own = { rope_parameters: { rope_type: ropeType, ...base, ...rest }, max_position_embeddings: length };
  const part = subject.textPath.slice(1);
  return { op: "set-flag", flag, value: flagJson(part === "" ? own : { [part]: own }) };
}

/** Qwen 3 claims 40,960 (32,768 and an answer of 8,192); its makers count YaRN's factor from 32,768. */
function qwenNative(modelType: string, trained: number): number {
  return /^qwen3(_moe)?$/.test(modelType) && trained === 40960 ? 32768 : trained;
}
