// llama.cpp's command line: scalings that do nothing, lengths that are clamped, factors that are overwritten. Read in
// common/arg.cpp, src/llama-context.cpp and tools/server of August 2026.

import { flagOf, numberOf } from "../command.ts";
import { llamaScaling } from "../llama-scaling.ts";
import { both, code, dropFlag, setFlag, tokens } from "../record.ts";
import type { FindingRecord, Subject } from "../types.ts";
import { ggufLlama, qwen3, qwenYarn } from "./base.ts";

const isLlama = (subject: Subject): boolean => subject.engine === "llama.cpp" && subject.command !== null;

/** The length that the model was trained for, as the file says. */
const trained = ({ model }: Subject): number | null => model?.maxPositionEmbeddings ?? null;

const server = (rest: string) => `llama-server -m model.gguf ${rest}`;

export const llamaCpp: readonly FindingRecord[] = [
  {
    code: "llama-context-clamped",
    severity: "error",
    engines: ["llama.cpp"],
    title: both("A context above the trained one, without a scaling", "context 大於訓練長度，卻沒有縮放"),
    why: both(
      "llama-server clamps -c to the trained length without a word, and the flag changes nothing.",
      "llama-server 會默默把 -c 壓回訓練長度，這個旗標等於沒寫。",
    ),
    fix: both(
      "Add --rope-scaling yarn, --rope-scale and --yarn-orig-ctx.",
      "加上 --rope-scaling yarn、--rope-scale 與 --yarn-orig-ctx。",
    ),
    references: [
      "https://github.com/ggml-org/llama.cpp/issues/17459",
      "https://github.com/ggml-org/llama.cpp/issues/22140",
    ],
    broken: { gguf: ggufLlama(), command: server("-c 32768") },
    *check(subject) {
      const asked = numberOf(subject.command, "--ctx-size");
      const length = trained(subject);
      if (!isLlama(subject) || asked === null || length === null || asked <= length) return;
      if (llamaScaling(subject).scale !== 1 || numberOf(subject.command, "--rope-freq-base") !== null) return;
      if (flagOf(subject.command, "--override-kv") !== undefined) return;
      const factor = Math.ceil((4 * asked) / length) / 4;
      yield {
        where: flagOf(subject.command, "--ctx-size")!.written,
        got: asked,
        expected: both(
          `at most ${tokens(length)}, the trained length, without a scaling`,
          `沒有縮放時至多 ${tokens(length)}，即訓練長度`,
        ),
        operations: [
          setFlag("--rope-scaling", "yarn"),
          setFlag("--rope-scale", String(factor)),
          setFlag("--yarn-orig-ctx", String(length)),
        ],
      };
    },
  },
  {
    code: "llama-scaling-without-scale",
    severity: "error",
    engines: ["llama.cpp"],
    title: both("A scaling type without a scale", "有縮放類型，沒有倍數"),
    why: both(
      "Without --rope-scale the factor stays 1: the output is byte for byte that of the unscaled model.",
      "沒有 --rope-scale，倍數就是 1：輸出與未縮放的模型逐位元組相同。",
    ),
    fix: both("Give --rope-scale.", "加上 --rope-scale。"),
    references: ["https://github.com/meta-models/meta-oss-cookbook/issues/37"],
    broken: { gguf: ggufLlama(), command: server("-c 32768 --rope-scaling yarn --yarn-orig-ctx 8192") },
    *check(subject) {
      const { type, scale } = llamaScaling(subject);
      const flag = flagOf(subject.command, "--rope-scaling");
      if (!isLlama(subject) || flag === undefined || (type !== "yarn" && type !== "linear") || scale !== 1) return;
      const asked = numberOf(subject.command, "--ctx-size");
      const original = numberOf(subject.command, "--yarn-orig-ctx") ?? trained(subject);
      const factor =
        asked === null || original === null || asked <= original ? null : Math.ceil((4 * asked) / original) / 4;
      yield {
        where: "--rope-scaling",
        got: type,
        expected: factor === null ? code("--rope-scale N") : code(`--rope-scale ${factor}`),
        operations: factor === null ? [] : [setFlag("--rope-scale", String(factor))],
      };
    },
  },
  {
    code: "llama-scale-without-type",
    severity: "warning",
    engines: ["llama.cpp"],
    title: both("YaRN's flags without --rope-scaling yarn", "有 YaRN 的旗標，卻沒有 --rope-scaling yarn"),
    why: both(
      "The type is linear where neither the flag nor the file says otherwise: every frequency is divided, and the YaRN flags do nothing.",
      "旗標與檔案都沒說時，類型是 linear：每個頻率都會被除，YaRN 的旗標則沒有作用。",
    ),
    fix: both("Add --rope-scaling yarn.", "加上 --rope-scaling yarn。"),
    references: ["https://github.com/ggml-org/llama.cpp/discussions/2402"],
    broken: { gguf: ggufLlama(), command: server("-c 32768 --rope-scale 4 --yarn-orig-ctx 8192") },
    *check(subject) {
      if (!isLlama(subject) || llamaScaling(subject).type !== null || llamaScaling(subject).scale === 1) return;
      const flag = subject.command!.flags.find(({ name }) => name.startsWith("--yarn-"));
      if (flag === undefined) return;
      yield {
        where: flag.name,
        got: flag.value,
        expected: code("--rope-scaling yarn"),
        operations: [setFlag("--rope-scaling", "yarn")],
      };
    },
  },
  {
    code: "llama-scale-inverted",
    severity: "error",
    engines: ["llama.cpp"],
    title: both("A scale that is the inverse of what was meant", "倍數寫成了倒數"),
    why: both(
      "--rope-freq-scale is 1/N and --rope-scale is N: as written, positions are spread apart and the context shrinks.",
      "--rope-freq-scale 是 1/N，--rope-scale 是 N：照這樣寫，位置反而被拉開，context 變短。",
    ),
    fix: both("Write the inverse.", "改寫成倒數。"),
    references: ["https://github.com/ggml-org/llama.cpp/discussions/2402"],
    broken: {
      gguf: ggufLlama(),
      command: server("-c 32768 --rope-scaling yarn --rope-freq-scale 4 --yarn-orig-ctx 8192"),
    },
    *check(subject) {
      if (!isLlama(subject)) return;
      for (const [name, wrong] of [
        ["--rope-freq-scale", (x: number) => x > 1],
        ["--rope-scale", (x: number) => x > 0 && x < 1],
      ] as const) {
        const value = numberOf(subject.command, name);
        if (value === null || !wrong(value)) continue;
        yield {
          where: name,
          got: value,
          expected: code(String(1 / value)),
          operations: [setFlag(name, String(1 / value))],
        };
      }
    },
  },
  {
    code: "llama-attn-factor-overwritten",
    severity: "warning",
    engines: ["llama.cpp"],
    title: both("--yarn-attn-factor has no effect under YaRN", "開了 YaRN，--yarn-attn-factor 就沒有作用"),
    why: both(
      "llama.cpp computes the factor anew whenever YaRN is on, and overwrites the flag.",
      "只要開了 YaRN，llama.cpp 就會重新計算這個係數並蓋掉旗標。",
    ),
    fix: both("Leave the flag out.", "拿掉這個旗標。"),
    references: ["https://github.com/ikawrakow/ik_llama.cpp/issues/1298"],
    broken: {
      gguf: ggufLlama(),
      command: server("-c 32768 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 8192 --yarn-attn-factor 1.2"),
    },
    *check(subject) {
      const value = numberOf(subject.command, "--yarn-attn-factor");
      if (!isLlama(subject) || value === null || value < 0 || llamaScaling(subject).type !== "yarn") return;
      if (numberOf(subject.command, "--yarn-ext-factor") === 0) return;
      yield {
        where: "--yarn-attn-factor",
        got: value,
        expected: code("0.1 ln(scale) + 1"),
        operations: [dropFlag("--yarn-attn-factor")],
      };
    },
  },
  {
    code: "llama-orig-ctx-missing",
    severity: "warning",
    engines: ["llama.cpp"],
    title: both("YaRN without --yarn-orig-ctx", "YaRN 沒有 --yarn-orig-ctx"),
    why: both(
      "The ramp is then computed from the file's context_length: Qwen 3 claims 40,960 there, and its YaRN counts from 32,768.",
      "斜坡會改用檔案的 context_length 計算：Qwen 3 在那裡寫 40,960，它的 YaRN 卻從 32,768 起算。",
    ),
    fix: both(
      "Give --yarn-orig-ctx, the length of the original training.",
      "加上 --yarn-orig-ctx，也就是原本訓練的長度。",
    ),
    references: ["https://github.com/ggml-org/llama.cpp/pull/28030"],
    broken: { config: qwen3(), command: "llama-server -m Qwen3-8B.gguf -c 131072 --rope-scaling yarn --rope-scale 4" },
    *check(subject) {
      const { type, scale } = llamaScaling(subject);
      if (!isLlama(subject) || type !== "yarn" || scale === 1 || numberOf(subject.command, "--yarn-orig-ctx") !== null)
        return;
      if (
        flagOf(subject.command, "--rope-scaling") === undefined &&
        flagOf(subject.command, "--rope-scale") === undefined
      )
        return;
      const position = subject.model?.groups.find((group) => group.position.kind === "rope")?.position;
      if (position?.kind === "rope" && position.rope.ropeType === "yarn") return;
      const length = trained(subject);
      if (length === null) return;
      const isQwen = /^qwen3/.test(subject.model?.modelType ?? "") && length === 40960;
      yield {
        where: "--yarn-orig-ctx",
        got: null,
        expected: isQwen
          ? code("--yarn-orig-ctx 32768")
          : both(
              `${tokens(length)} is taken; write it if it is the trained length`,
              `會採用 ${tokens(length)}；若它就是訓練長度，請寫出來`,
            ),
        severity: isQwen ? "warning" : "note",
        operations: isQwen ? [setFlag("--yarn-orig-ctx", "32768")] : [],
      };
    },
  },
  {
    code: "llama-scaling-on-divisors",
    severity: "warning",
    engines: ["llama.cpp"],
    title: both("A scaling on top of the file's own", "在檔案自己的縮放上再縮放一次"),
    why: both(
      "The divisors of rope_freqs.weight (llama3, longrope) or the file's own YaRN stay in force: positions are scaled twice.",
      "rope_freqs.weight（llama3、longrope）的除數或檔案自己的 YaRN 仍然有效：位置被縮放了兩次。",
    ),
    fix: both("Leave the flags out within the file's length.", "在檔案的長度以內不要加這些旗標。"),
    references: [
      "https://github.com/NVIDIA-NeMo/Safe-Synthesizer/pull/623",
      "https://github.com/vllm-project/vllm/pull/56446",
    ],
    broken: {
      config: qwen3({ max_position_embeddings: 131072, rope_scaling: qwenYarn() }),
      command: "llama-server -m Qwen3-8B-128K.gguf -c 131072 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768",
    },
    *check(subject) {
      const { scale, isFlag } = llamaScaling(subject);
      if (!isLlama(subject) || !isFlag || scale === 1) return;
      const position = subject.model?.groups.find((group) => group.position.kind === "rope")?.position;
      if (position?.kind !== "rope" || !["llama3", "longrope", "yarn", "linear"].includes(position.rope.ropeType))
        return;
      const asked = numberOf(subject.command, "--ctx-size");
      const length = trained(subject);
      const { rope } = position;
      // The same YaRN said twice is one: flags replace what the file says.
      const replaces = rope.ropeType === "yarn" || rope.ropeType === "linear";
      if (replaces && asked !== null && length !== null && asked > length) return;
      if (!replaces && (asked === null || length === null || asked > length)) return;
      const names = ["--rope-scaling", "--rope-scale", "--rope-freq-scale"];
      const given = names.filter((name) => flagOf(subject.command, name) !== undefined);
      yield {
        where: given[0]!,
        got: flagOf(subject.command, given[0]!)!.value,
        expected: both(
          `no flags: the file has ${rope.ropeType} for ${tokens(length ?? 0)} tokens`,
          `不加旗標：檔案本身有 ${tokens(length ?? 0)} 個 token 的 ${rope.ropeType}`,
        ),
        severity: replaces ? "note" : "warning",
        operations: replaces ? [] : given.map(dropFlag),
      };
    },
  },
  {
    code: "llama-parallel-slots",
    severity: "warning",
    engines: ["llama.cpp"],
    title: both("The context is shared among slots", "context 由各個 slot 均分"),
    why: both(
      "-c counts for all -np slots together: one request gets a part of it.",
      "-c 是全部 -np 個 slot 的總和：一個請求只分到一部分。",
    ),
    fix: both("Multiply -c by the number of slots, or use one slot.", "把 -c 乘上 slot 數，或只用一個 slot。"),
    references: ["https://github.com/ggml-org/llama.cpp/issues/17459"],
    broken: { gguf: ggufLlama(), command: server("-c 8192 -np 4"), target: 8192 },
    *check(subject) {
      const asked = numberOf(subject.command, "--ctx-size");
      const slots = numberOf(subject.command, "--parallel");
      if (!isLlama(subject) || asked === null || slots === null || slots < 2 || subject.target === null) return;
      if (flagOf(subject.command, "--kv-unified") !== undefined || asked / slots >= subject.target) return;
      yield {
        where: "--parallel",
        got: slots,
        expected: both(
          `-c ${subject.target * slots} for ${tokens(subject.target)} tokens a request`,
          `每個請求要 ${tokens(subject.target)} 個 token 時寫 -c ${subject.target * slots}`,
        ),
      };
    },
  },
];
