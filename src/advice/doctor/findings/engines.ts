// What an engine computes otherwise than the settings mean, from the dialects of encodings/rope: one finding a kind.

import { computeDialect, type DialectNote } from "../../../encodings/rope/dialects/index.ts";
import { computeRopeFrequencies } from "../../../encodings/rope/scaling/index.ts";
import { divergeFrom } from "../../diff.ts";
import { dialectOf } from "../engine-dialect.ts";
import { both, ownValue, ropeDict, textModelType, tokens } from "../record.ts";
import type { FindingRecord, Found, Subject } from "../types.ts";
import { gptOss, llama2, phi3, phiLists, qwen3, qwenYarn } from "./base.ts";

interface GroupInEngine {
  readonly layerType: string | null;
  readonly softmaxFactor: number;
  readonly result: ReturnType<typeof computeDialect>;
  readonly config: Parameters<typeof computeDialect>[1];
  /** What the settings mean at the length. */
  readonly meant: ReturnType<typeof computeRopeFrequencies>;
  readonly length: number;
}

/** Five checks ask for the same groups of one subject, which never changes. */
const made = new WeakMap<Subject, readonly GroupInEngine[]>();

function groupsIn(subject: Subject): readonly GroupInEngine[] {
  const known = made.get(subject);
  if (known !== undefined) return known;
  const groups = [...computeGroups(subject)];
  made.set(subject, groups);
  return groups;
}

/** What the engine makes of each rotary group; nothing without an engine, or with the reference itself. */
function* computeGroups(subject: Subject): Generator<GroupInEngine> {
  const { engine, version, model } = subject;
  // A GGUF is converted already; what its reader found is what llama.cpp does with it.
  if (engine === null || version === null || model?.format !== "huggingface") return;
  const dialect = dialectOf(engine, version);
  if (dialect === "transformers-5") return;
  // Classes that name the rotated channels themselves are read by a key that the dialects do not know.
  if (dialect === "mlx-lm" && ownValue(subject, "rotary_dim") !== undefined) return;
  for (const { position, layerType, softmaxFactor } of model.groups) {
    if (position.kind !== "rope") continue;
    const max = model.maxPositionEmbeddings ?? model.trainedLength ?? 1;
    const length = subject.target ?? max;
    const config = { headDim: position.headDim, maxPositionEmbeddings: max, rope: position.rope };
    const context = { sequenceLength: length, modelType: textModelType(subject), maxModelLen: length };
    let result: ReturnType<typeof computeDialect>;
    let meant: ReturnType<typeof computeRopeFrequencies>;
    try {
      result = computeDialect(dialect, config, context);
      // An engine that skips the scaling computes where the scaling itself does not.
      meant = computeRopeFrequencies(config, length);
    } catch (error) {
      // Settings that compute at one length may not at another; the file's own finding says so.
      if (error instanceof RangeError) continue;
      throw error;
    }
    yield { layerType: layerType ?? null, softmaxFactor, result, config, meant, length };
  }
}

function whereOf(subject: Subject, key: string | null): string {
  const path = ropeDict(subject)?.path ?? `${subject.textPath}/rope_parameters`;
  if (subject.config === null) return key ?? "rope.scaling";
  return key === null ? path : `${path}/${key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}

/** One finding a note of these kinds, where the frequencies or the factor really differ. */
function* notesOf(subject: Subject, codes: readonly DialectNote["code"][]): Generator<Found> {
  const seen = new Set<string>();
  for (const group of groupsIn(subject)) {
    for (const note of group.result.notes) {
      if (!codes.includes(note.code) || seen.has(note.message)) continue;
      seen.add(note.message);
      yield {
        where: whereOf(subject, note.key),
        got: note.key === null ? null : ((group.config.rope as unknown as Record<string, unknown>)[note.key] ?? null),
        expected: both(`${note.message} (${note.source})`, `${note.source}`),
      };
    }
  }
}

export const engineFindings: readonly FindingRecord[] = [
  {
    code: "engine-unsupported",
    severity: "error",
    engines: ["transformers", "vllm", "sglang", "llama.cpp", "mlx-lm", "exllamav2", "exllamav3"],
    title: both("The engine cannot run these settings", "這個引擎無法執行這組設定"),
    why: both(
      "It stops with an error, or has no way to express the scaling.",
      "它會以錯誤停下來，或無法表達這種縮放。",
    ),
    fix: both(
      "Use another engine, or another scaling: longhand export says the nearest.",
      "換一個引擎或另一種縮放：longhand export 會說出最接近的。",
    ),
    references: ["https://github.com/jundot/omlx/issues/3347"],
    broken: { config: llama2({ rope_scaling: { rope_type: "dynamic", factor: 2.0 } }), engine: "exllamav3" },
    *check(subject) {
      for (const { result } of groupsIn(subject)) {
        if (result.supported) continue;
        yield { where: whereOf(subject, null), got: null, expected: both(result.reason, result.reason) };
        return;
      }
    },
  },
  {
    code: "engine-frequencies-differ",
    severity: "error",
    engines: ["transformers", "vllm", "sglang", "llama.cpp", "mlx-lm", "exllamav2", "exllamav3"],
    title: both("The engine computes other frequencies", "引擎算出不同的頻率"),
    why: both(
      "From the position named on, an angle is off by more than 0.1 radians: invisible in short tests, and growing with the length.",
      "從指出的位置起，角度誤差超過 0.1 弧度：短測試看不出來，長度越長差越多。",
    ),
    fix: both(
      "Compare the engines with longhand diff, and take a setting that all compute alike.",
      "用 longhand diff 比較各引擎，選一組大家算得一樣的設定。",
    ),
    references: [
      "https://github.com/unslothai/unsloth/issues/6197",
      "https://github.com/Blaizzy/mlx-vlm/issues/1710",
      "https://github.com/vllm-project/vllm/issues/27722",
    ],
    broken: { config: gptOss(), engine: "llama.cpp" },
    *check(subject) {
      for (const { result, config, length, layerType } of groupsIn(subject)) {
        if (!result.supported) continue;
        const divergence = divergeFrom(result.inverseFrequencies, config, length);
        if (divergence === null || divergence.position >= length) continue;
        const reasons = result.notes
          .filter((note) => note.code !== "reached-by" && note.code !== "assumed")
          .map((note) => note.message);
        const place = layerType === null ? "" : ` (${layerType})`;
        const times = Number(divergence.ratio.toPrecision(3));
        yield {
          where: whereOf(subject, null),
          got: null,
          expected: both(
            `the frequencies that the settings mean${place}; pair ${divergence.pair} turns ×${times}, off by 0.1 radians from position ${tokens(divergence.position)} on${reasons.length === 0 ? "" : `: ${reasons.join("; ")}`}`,
            `設定所指的頻率${place}；第 ${divergence.pair} 對轉 ×${times}，從位置 ${tokens(divergence.position)} 起差 0.1 弧度以上`,
          ),
        };
      }
    },
  },
  {
    code: "engine-score-differs",
    severity: "warning",
    engines: ["transformers", "vllm", "sglang", "llama.cpp", "mlx-lm", "exllamav2", "exllamav3"],
    title: both("The engine multiplies scores by another factor", "引擎給分數乘上別的係數"),
    why: both(
      "Attention is sharper or flatter than in training at every distance.",
      "不論遠近，注意力都比訓練時更尖或更平。",
    ),
    fix: both(
      "Write the factor so that this engine reads it: longhand diff shows each one's.",
      "改用這個引擎會讀的寫法：longhand diff 會列出每個引擎的係數。",
    ),
    references: [
      "https://github.com/vllm-project/vllm/issues/48621",
      "https://github.com/turboderp-org/exllamav3/issues/259",
    ],
    broken: {
      config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn({ attention_factor: 1.5 }) }),
      engine: "sglang",
    },
    *check(subject) {
      for (const { result, meant, softmaxFactor } of groupsIn(subject)) {
        if (!result.supported) continue;
        const theirs = result.attentionFactor ** 2 * result.softmaxFactor;
        const ours = meant.attentionFactor ** 2 * softmaxFactor;
        if (Math.abs(theirs - ours) <= 1e-6 * ours) continue;
        yield {
          where: whereOf(subject, "attentionFactor"),
          got: theirs,
          expected: both(`${ours} on every score, which the settings mean`, `設定所指的是每個分數乘 ${ours}`),
        };
        return;
      }
    },
  },
  {
    code: "engine-table-short",
    severity: "error",
    engines: ["vllm", "exllamav2"],
    title: both("The engine's table ends before the length", "引擎的表比要求的長度短"),
    why: both(
      "Positions past the end read memory that is not theirs: a crash, or garbage.",
      "超過表尾的位置會讀到不相干的記憶體：當掉或輸出亂碼。",
    ),
    fix: both("Raise max_position_embeddings beside the scaling.", "在縮放旁邊一併調高 max_position_embeddings。"),
    references: [
      "https://github.com/vllm-project/vllm/issues/44286",
      "https://github.com/vllm-project/vllm/pull/55910",
    ],
    broken: { config: llama2({ rope_scaling: { rope_type: "dynamic", factor: 4.0 } }), engine: "vllm", target: 16384 },
    check: (subject) => notesOf(subject, ["table-too-short"]),
  },
  {
    code: "engine-fixed-at-start",
    severity: "note",
    engines: ["vllm", "sglang", "llama.cpp", "exllamav2", "exllamav3"],
    title: both("The engine decides at its start, not by the sequence", "引擎在啟動時就決定，不看序列"),
    why: both(
      "Short and long inputs share one table: one of them is rotated otherwise than in training.",
      "長短輸入共用一張表：總有一方的旋轉與訓練時不同。",
    ),
    fix: both("Start one server for short inputs and one for long ones.", "短輸入與長輸入各開一個伺服器。"),
    references: [
      "https://github.com/ggml-org/llama.cpp/issues/6849",
      "https://github.com/vllm-project/vllm/issues/8793",
    ],
    broken: { config: phi3({ rope_scaling: phiLists() }), engine: "llama.cpp" },
    check: (subject) => notesOf(subject, ["fixed-at-start"]),
  },
  {
    code: "engine-history",
    severity: "note",
    engines: ["transformers", "sglang", "vllm", "mlx-lm"],
    title: both("Results depend on what was computed before", "結果取決於先前算過什麼"),
    why: both(
      "Keys in the cache, or other requests of a batch, were rotated by another table.",
      "快取中的 key，或同一批次的其他請求，是用另一張表旋轉的。",
    ),
    fix: both("Use a static scaling where results must repeat.", "若結果必須可重現，請用靜態縮放。"),
    references: [
      "https://github.com/huggingface/transformers/issues/25104",
      "https://github.com/huggingface/transformers/pull/46624",
    ],
    broken: { config: phi3({ rope_scaling: phiLists() }), engine: "sglang" },
    check: (subject) => notesOf(subject, ["history"]),
  },
];
