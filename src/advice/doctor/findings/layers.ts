// Settings by layer type: dicts that a class does not look into, windows, and layers without rotation.

import { isObject } from "../../../formats/huggingface/values.ts";
import { canonicalOperations } from "../canonical.ts";
import { pointerOf, valueAt } from "../json-text.ts";
import { both, code, drop, ownValue, parentOf, set } from "../record.ts";
import type { FindingRecord, Operation, Subject } from "../types.ts";
import { gemma3, gemma3With, llama2, smollm3 } from "./base.ts";

const nestedYarn = (inner: Readonly<Record<string, unknown>> = {}) => ({
  full_attention: {
    rope_type: "yarn",
    rope_theta: 1000000,
    factor: 4.0,
    original_max_position_embeddings: 8192,
    ...inner,
  },
  sliding_attention: { rope_type: "default", rope_theta: 10000 },
});

/** Contents of the entry that is meant for every layer, in the dict's place. */
function lifted(subject: Subject, pointer: string): readonly Operation[] {
  const dict = valueAt(subject.effective, pointer);
  const entry = isObject(dict) ? (dict.full_attention ?? Object.values(dict)[0]) : undefined;
  return isObject(entry) ? [set(pointer, entry)] : [];
}

export const layers: readonly FindingRecord[] = [
  {
    code: "flat-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("A flat dict in a class that keeps one a layer type", "類別依層種類各有一份設定，檔案卻只寫一份"),
    why: both(
      "Gemma 3, OLMo 3 and their kin ignore a flat rope_parameters in transformers 5, its theta included, and compute default RoPE; Gemma 4 raises KeyError.",
      "Gemma 3、OLMo 3 一類的模型在 transformers 5 會忽略未分層的 rope_parameters，連 theta 也忽略，改用預設的 RoPE；Gemma 4 則丟出 KeyError。",
    ),
    fix: both("Write one entry a layer type.", "每種層各寫一份。"),
    references: ["https://github.com/huggingface/transformers/pull/42255"],
    broken: {
      config: gemma3With({ rope_type: "linear", rope_theta: 1000000.0, factor: 8.0 }),
    },
    repair: (_, subject) => canonicalOperations(subject),
  },
  {
    code: "nested-unread",
    severity: "warning",
    engines: ["transformers"],
    title: both("Entries by layer type in a class that keeps one dict", "類別只有一份設定，檔案卻依層種類分寫"),
    why: both(
      "transformers 5 does not look into the entries: it computes default RoPE, or raises KeyError when the model is built.",
      "transformers 5 不會讀裡面的項目：不是改算預設的 RoPE，就是在建立模型時丟出 KeyError。",
    ),
    fix: both("Write the settings directly into the dict.", "把設定直接寫進這個 dict。"),
    references: ["https://github.com/huggingface/transformers/pull/42255"],
    broken: {
      config: llama2({
        rope_scaling: undefined,
        rope_theta: undefined,
        rope_parameters: { full_attention: { rope_type: "linear", rope_theta: 10000.0, factor: 2.0 } },
      }),
    },
    repair: ({ where }, subject) => lifted(subject, pointerOf(where)),
  },
  {
    code: "nested-truncate",
    severity: "warning",
    engines: ["transformers"],
    title: both("truncate inside an entry", "truncate 寫在項目裡面"),
    why: both(
      "transformers 5 looks for truncate beside the layer types only, and rounds the ends of YaRN's ramp.",
      "transformers 5 只在層種類的旁邊找 truncate，因此仍會把 YaRN 斜坡的兩端取整。",
    ),
    fix: both('Also write "truncate": false beside the layer types.', '在層種類旁邊也寫 "truncate": false。'),
    references: ["https://github.com/vllm-project/vllm/issues/27722"],
    broken: {
      config: gemma3With(nestedYarn({ truncate: false, original_max_position_embeddings: 32768 })),
    },
    repair: ({ where }) => {
      const dict = parentOf(parentOf(pointerOf(where)));
      return [set(`${dict}/truncate`, false)];
    },
  },
  {
    code: "outer-key",
    severity: "warning",
    engines: ["transformers"],
    title: both("A setting beside the layer types", "寫在層種類旁邊的設定"),
    why: both(
      "transformers 5 reads only truncate there; every other key beside the entries is lost.",
      "transformers 5 在那裡只讀 truncate，其他寫在項目旁邊的鍵都會消失。",
    ),
    fix: both("Move it into the entries.", "移進各個項目裡。"),
    references: ["https://github.com/huggingface/transformers/pull/42255"],
    broken: {
      config: gemma3With({
        rope_theta: 1000000.0,
        full_attention: { rope_type: "linear", factor: 8.0 },
        sliding_attention: { rope_type: "default", rope_theta: 10000.0 },
      }),
    },
    repair: ({ where, got }, subject) => {
      const pointer = pointerOf(where);
      const dict = valueAt(subject.effective, parentOf(pointer));
      const key = pointer.slice(pointer.lastIndexOf("/") + 1);
      if (!isObject(dict)) return [];
      const entries = Object.entries(dict).filter(([, entry]) => isObject(entry) && entry[key] === undefined);
      return [drop(pointer), ...entries.map(([name]) => set(`${parentOf(pointer)}/${name}/${key}`, got))];
    },
  },
  {
    code: "entry-missing",
    severity: "warning",
    engines: ["transformers"],
    title: both("No entry for some layers", "有些層沒有設定項目"),
    why: both(
      "The class fills default RoPE in for them, or raises KeyError.",
      "類別會替它們補上預設的 RoPE，或丟出 KeyError。",
    ),
    fix: both("Write the entry.", "補上這個項目。"),
    references: ["https://github.com/huggingface/transformers/pull/42255"],
    broken: {
      config: gemma3With({ full_attention: { rope_type: "linear", rope_theta: 1000000.0, factor: 8.0 } }),
    },
    repair: (_, subject) => canonicalOperations(subject),
  },
  {
    code: "null-entry",
    severity: "warning",
    engines: ["transformers"],
    title: both("null as an entry", "項目寫成 null"),
    why: both(
      "null means layers without rotation; these classes fill default RoPE in all the same.",
      "null 表示這些層不旋轉；這些類別卻照樣補上預設的 RoPE。",
    ),
    fix: both(
      "Write the settings, or use a class that leaves such layers unrotated.",
      "寫出設定，或改用能讓這些層不旋轉的類別。",
    ),
    references: ["https://github.com/huggingface/transformers/pull/42255"],
    broken: {
      config: gemma3With({
        full_attention: null,
        sliding_attention: { rope_type: "default", rope_theta: 10000.0 },
      }),
    },
  },
  {
    code: "window-missing",
    severity: "warning",
    engines: ["transformers"],
    title: both("Sliding layers without a window", "滑動視窗層沒有視窗"),
    why: both(
      "transformers 5 raises an error when it builds their mask; another engine lets these layers see everything.",
      "transformers 5 建立遮罩時會出錯；別的引擎則讓這些層看到全部。",
    ),
    fix: both("Write the window, or switch it on.", "寫出視窗大小，或把它打開。"),
    references: ["https://github.com/vllm-project/vllm/issues/29111"],
    broken: { config: gemma3({ sliding_window: null }) },
    repair: ({ where, got }) => (got === false ? [set(pointerOf(where), true)] : []),
  },
  {
    code: "last-layer-forced",
    severity: "warning",
    engines: ["transformers"],
    title: both("The last layer is forced to full attention", "最後一層會被強制改成全域注意力"),
    why: both(
      "Gemma 4's class changes the type of its last layer, whatever the list says.",
      "不論列表怎麼寫，Gemma 4 的類別都會改掉最後一層的種類。",
    ),
    fix: both('Write "full_attention" last.', '最後一個寫 "full_attention"。'),
    references: [
      "https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/gemma4/configuration_gemma4.py",
    ],
    broken: {
      config: {
        model_type: "gemma4_text",
        hidden_size: 2560,
        num_hidden_layers: 4,
        num_attention_heads: 8,
        num_key_value_heads: 4,
        head_dim: 256,
        global_head_dim: 512,
        max_position_embeddings: 131072,
        sliding_window: 1024,
        layer_types: ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters: {
          sliding_attention: { rope_type: "default", rope_theta: 10000.0 },
          full_attention: { rope_type: "proportional", rope_theta: 1000000.0, partial_rotary_factor: 0.25 },
        },
      },
    },
    repair: ({ where }) => [set(pointerOf(where), "full_attention")],
  },
  {
    code: "layer-pattern-assumed",
    severity: "note",
    engines: [],
    title: both("A pattern of layers that the file does not list", "檔案沒有列出的層排列"),
    why: both(
      "The class has a pattern of its own, which other engines must know too.",
      "類別有自己的排列方式，別的引擎也得知道。",
    ),
    fix: both("Nothing for transformers; others may need the list.", "transformers 不必處理；其他引擎可能需要列出來。"),
    references: ["https://github.com/pytorch/executorch/issues/22043"],
    broken: { config: smollm3({ no_rope_layers: undefined }) },
  },
  {
    code: "no-rope-layers-inverted",
    severity: "error",
    engines: [],
    title: both("no_rope_layers says 1 for the layers without rotation", "no_rope_layers 把不旋轉的層寫成 1"),
    why: both(
      "Despite its name, 1 means that a layer rotates and 0 that it does not; as written, most layers lose their positions.",
      "雖然名字相反，1 代表該層要旋轉，0 才是不旋轉；照這樣寫，多數層會失去位置。",
    ),
    fix: both("Exchange 0 and 1.", "把 0 和 1 對調。"),
    references: ["https://github.com/huggingface/transformers/issues/43756"],
    broken: { config: smollm3({ no_rope_layers: Array.from({ length: 36 }, (_, i) => ((i + 1) % 4 === 0 ? 1 : 0)) }) },
    *check(subject) {
      const list = ownValue(subject, "no_rope_layers");
      if (!Array.isArray(list) || list.length < 4) return;
      const rotating = list.filter((one) => one === 1 || one === true).length;
      if (rotating === 0 || rotating * 2 >= list.length) return;
      const path = `${subject.textPath}/no_rope_layers`;
      yield {
        where: path,
        got: list,
        expected: both(
          `1 for the layers that rotate; only ${rotating} of ${list.length} do as written`,
          `會旋轉的層寫 1；照這樣寫，${list.length} 層只有 ${rotating} 層旋轉`,
        ),
        operations: [
          set(
            path,
            list.map((one) => (one ? 0 : 1)),
          ),
        ],
      };
    },
  },
  {
    code: "nope-layers-rotated",
    severity: "error",
    engines: [],
    title: both("Every layer rotates in a model with layers that do not", "有些層本來不旋轉，檔案卻讓每一層都旋轉"),
    why: both(
      "SmolLM3 and Llama 4 were trained with no rotation on every fourth layer; with rotation on all of them the text repeats itself.",
      "SmolLM3 與 Llama 4 訓練時每四層就有一層不旋轉；全部都旋轉的話，輸出會不斷重複。",
    ),
    fix: both(
      "Leave no_rope_layers out, or write 0 for every fourth layer.",
      "拿掉 no_rope_layers，或把每第四層寫成 0。",
    ),
    references: ["https://github.com/pytorch/executorch/issues/22043"],
    broken: { config: smollm3({ no_rope_layers: Array.from({ length: 36 }, () => 1) }) },
    *check(subject) {
      const list = ownValue(subject, "no_rope_layers");
      if (!Array.isArray(list) || list.length < 4 || !list.every((one) => one === 1 || one === true)) return;
      const path = `${subject.textPath}/no_rope_layers`;
      yield {
        where: path,
        got: list,
        expected: code("[1, 1, 1, 0, ...]"),
        operations: [
          set(
            path,
            list.map((_, i) => ((i + 1) % 4 === 0 ? 0 : 1)),
          ),
        ],
      };
    },
  },
  {
    code: "sliding-layers-scaled",
    severity: "error",
    engines: [],
    title: both("Sliding layers are scaled too", "連滑動視窗層也縮放了"),
    why: both(
      "Gemma 3's sliding layers were trained unscaled at base 10,000: they never look further back than their window, and a scaling makes near tokens look nearer than they are.",
      "Gemma 3 的滑動視窗層訓練時以 10,000 為底、不縮放：它們看不到視窗以外，縮放只會讓近處的 token 顯得更近。",
    ),
    fix: both(
      'Write "rope_type": "default" and the local base for sliding_attention.',
      'sliding_attention 寫 "rope_type": "default" 與區域的底數。',
    ),
    references: ["https://github.com/antonellof/ferrox/issues/39", "https://github.com/vllm-project/vllm/issues/29111"],
    broken: {
      config: gemma3With({
        full_attention: { rope_type: "linear", rope_theta: 1000000.0, factor: 8.0 },
        sliding_attention: { rope_type: "linear", rope_theta: 10000.0, factor: 8.0 },
      }),
    },
    *check(subject) {
      if (!/^gemma(3|3n|4)/.test(subject.model?.modelType ?? "")) return;
      for (const name of ["rope_parameters", "rope_scaling"]) {
        const path = `${subject.textPath}/${name}/sliding_attention`;
        const entry = valueAt(subject.effective, path);
        if (!isObject(entry)) continue;
        const type = entry.rope_type ?? entry.type ?? "default";
        if (type === "default") continue;
        yield {
          where: path,
          got: entry,
          expected: code('"rope_type": "default"'),
          operations: [set(path, { rope_type: "default", rope_theta: entry.rope_theta ?? 10000.0 })],
        };
      }
    },
  },
];
