// SGLang, Ollama, mlx-lm, transformers, ExLlama: what their command lines and versions do to a configuration.

import { isObject } from "../../../formats/huggingface/values.ts";
import { numberOf } from "../command.ts";
import { valueAt } from "../json-text.ts";
import { both, code, drop, dropFlag, ownValue, ropeDict, set, setFlag, textModelType, tokens } from "../record.ts";
import type { FindingRecord } from "../types.ts";
import { isBefore } from "../versions.ts";
import { ggufLlama, llama2, llama31, qwen3 } from "./base.ts";

/** Engines that read version 4's keys alone, up to the version named. */
const readsOldSchema = (engine: string | null, version: string | null): boolean => {
  if (engine === "exllamav2") return true;
  if (engine === "transformers") return version !== null && isBefore(version, "5");
  return engine === "vllm" && version !== null && isBefore(version, "0.12");
};

/** Models of mlx-lm whose argument class reads version 5's rope_parameters (0.32.2). */
const mlxReadsParameters = new Set(
  "exaone_moe gemma4_text glm_moe_dsa granitemoehybrid laguna lfm2 lfm2_moe mellum minimax_m3_vl ministral3 mistral4 muse_glimmer muse_spark olmo_hybrid qwen3 qwen3_5 spark2_5".split(
    " ",
  ),
);

export const otherEngines: readonly FindingRecord[] = [
  {
    code: "new-schema-unread",
    severity: "error",
    engines: ["transformers", "vllm", "exllamav2", "mlx-lm"],
    title: both(
      "rope_parameters in an engine that reads rope_theta and rope_scaling",
      "引擎只讀 rope_theta 與 rope_scaling，檔案卻寫 rope_parameters",
    ),
    why: both(
      "The base and the scaling are lost without an error: such an engine takes 10000, and no scaling.",
      "底數與縮放會默默消失：這類引擎改用 10000，也不縮放。",
    ),
    fix: both(
      "Write rope_theta and rope_scaling beside it, or use a newer version.",
      "在旁邊一併寫 rope_theta 與 rope_scaling，或改用較新的版本。",
    ),
    references: [
      "https://github.com/vllm-project/vllm/issues/28542",
      "https://github.com/sgl-project/sglang/issues/14745",
      "https://github.com/lmdeploy/lmdeploy/issues/4304",
    ],
    broken: {
      config: qwen3({
        rope_theta: undefined,
        rope_scaling: undefined,
        rope_parameters: { rope_type: "default", rope_theta: 1000000 },
      }),
      engine: "vllm",
      engineVersion: "0.11.0",
    },
    *check(subject) {
      const { engine, version, model } = subject;
      const path = `${subject.textPath}/rope_parameters`;
      const dict = valueAt(subject.effective, path);
      if (!isObject(dict) || subject.config === null || model === null) return;
      const isOld =
        readsOldSchema(engine, version) || (engine === "mlx-lm" && !mlxReadsParameters.has(textModelType(subject)));
      if (!isOld) return;
      const { rope_theta: theta, partial_rotary_factor: share, ...rest } = dict;
      const lostTheta = theta !== undefined && theta !== 10000 && ownValue(subject, "rope_theta") === undefined;
      const type = rest.rope_type ?? rest.type ?? "default";
      const lostScaling = type !== "default" && ropeDict(subject)?.path === path;
      if (Object.values(dict).some(isObject) || (!lostTheta && !lostScaling)) return;
      yield {
        where: path,
        got: dict,
        expected: both(
          `"rope_theta" and "rope_scaling", which ${engine} ${version} reads`,
          `${engine} ${version} 會讀的 "rope_theta" 與 "rope_scaling"`,
        ),
        operations: [
          ...(lostTheta ? [set(`${subject.textPath}/rope_theta`, theta)] : []),
          ...(lostScaling ? [set(`${subject.textPath}/rope_scaling`, rest)] : []),
          ...(share === undefined || share === null ? [] : [set(`${subject.textPath}/partial_rotary_factor`, share)]),
          drop(path),
        ],
      };
    },
  },
  {
    code: "transformers-too-old",
    severity: "error",
    engines: ["transformers"],
    title: both("A rope type newer than this transformers", "這個版本的 transformers 還沒有的 rope 類型"),
    why: both(
      "Before 4.43 rope_scaling must be a dictionary with two fields, type linear or dynamic and a float factor: ValueError.",
      "4.43 以前 rope_scaling 只能有兩個欄位：type（linear 或 dynamic）與浮點數 factor，否則丟出 ValueError。",
    ),
    fix: both("Use transformers 4.43 or later.", "使用 transformers 4.43 以後的版本。"),
    references: [
      "https://github.com/meta-llama/llama3/issues/299",
      "https://github.com/ml-explore/mlx-examples/issues/909",
    ],
    broken: { config: llama31(), engine: "transformers", engineVersion: "4.42.4" },
    *check(subject) {
      const found = ropeDict(subject);
      if (
        subject.engine !== "transformers" ||
        subject.version === null ||
        !isBefore(subject.version, "4.43") ||
        found === null
      )
        return;
      const type = found.dict.type;
      if (Object.keys(found.dict).length === 2 && (type === "linear" || type === "dynamic")) return;
      yield { where: found.path, got: found.dict, expected: code('{"type": "linear" | "dynamic", "factor": float}') };
    },
  },
  {
    code: "integer-factor",
    severity: "error",
    engines: ["vllm", "sglang"],
    title: both("linear's factor without a decimal point", "linear 的因子沒有小數點"),
    why: both(
      "vLLM and SGLang take a number that is no float for a list of factors: TypeError.",
      "vLLM 與 SGLang 會把非浮點數當成因子列表：TypeError。",
    ),
    fix: both("Write a decimal point: 4.0.", "寫小數點：4.0。"),
    references: ["https://github.com/vllm-project/vllm/issues/10537"],
    broken: { config: llama2({ rope_scaling: { rope_type: "linear", factor: 4 } }), engine: "vllm" },
    *check(subject) {
      const found = ropeDict(subject);
      if (subject.engine !== "vllm" && subject.engine !== "sglang") return;
      if (
        found === null ||
        (found.dict.rope_type ?? found.dict.type) !== "linear" ||
        !Number.isInteger(found.dict.factor)
      )
        return;
      // JSON.parse reads 4.0 as 4: only the text tells them apart, and an object that was parsed says nothing.
      const inFlag = subject.overrides !== null && subject.command !== null;
      const text = inFlag ? subject.command!.text : subject.configText;
      const written = /"factor"\s*:\s*([-+.\deE]+)/.exec(text ?? "")?.[1];
      if (written === undefined || /[.eE]/.test(written)) return;
      yield { where: `${found.path}/factor`, got: found.dict.factor, expected: code(`${String(found.dict.factor)}.0`) };
    },
  },
  {
    code: "ollama-context-default",
    severity: "error",
    engines: ["ollama"],
    title: both("No num_ctx: Ollama's default context", "沒有 num_ctx：Ollama 的預設 context"),
    why: both(
      "Without num_ctx Ollama serves 4,096 tokens on most machines (more from 24 GiB of video memory on), and cuts longer prompts from the front.",
      "沒有 num_ctx 時，Ollama 在多數機器上只提供 4,096 個 token（顯示記憶體 24 GiB 以上才較多），較長的提示會從開頭截掉。",
    ),
    fix: both("Write PARAMETER num_ctx.", "寫 PARAMETER num_ctx。"),
    references: ["https://docs.ollama.com/context-length"],
    broken: { gguf: ggufLlama(), command: "FROM ./model.gguf\nPARAMETER temperature 0.7", target: 8192 },
    *check(subject) {
      const { command, target, engine } = subject;
      if (engine !== "ollama" || command === null || target === null || target <= 4096) return;
      if (numberOf(command, "PARAMETER num_ctx") !== null || command.variables.has("OLLAMA_CONTEXT_LENGTH")) return;
      if (command.program !== "Modelfile") return;
      yield {
        where: "PARAMETER num_ctx",
        got: null,
        expected: code(`PARAMETER num_ctx ${target}`),
        operations: [setFlag("PARAMETER num_ctx", String(target))],
      };
    },
  },
  {
    code: "ollama-context-past-training",
    severity: "error",
    engines: ["ollama"],
    title: both("num_ctx above the trained length", "num_ctx 大於訓練長度"),
    why: both(
      "Ollama has no parameter for YaRN: a longer context is clamped to the file's, or runs unscaled.",
      "Ollama 沒有 YaRN 的參數：較長的 context 會被壓回檔案的長度，或以未縮放的方式執行。",
    ),
    fix: both(
      "Patch the file: longhand export --to gguf writes the scaling into it.",
      "修補檔案：longhand export --to gguf 會把縮放寫進去。",
    ),
    references: ["https://docs.ollama.com/context-length"],
    broken: { gguf: ggufLlama(), command: "FROM ./model.gguf\nPARAMETER num_ctx 32768" },
    *check(subject) {
      const asked = numberOf(subject.command, "PARAMETER num_ctx");
      const length = subject.model?.maxPositionEmbeddings ?? null;
      if (subject.engine !== "ollama" || asked === null || length === null || asked <= length) return;
      yield {
        where: "PARAMETER num_ctx",
        got: asked,
        expected: both(
          `at most ${tokens(length)}, the file's context_length`,
          `至多 ${tokens(length)}，即檔案的 context_length`,
        ),
      };
    },
  },
  {
    code: "ollama-rope-parameter",
    severity: "warning",
    engines: ["ollama"],
    title: both("A rope parameter in a Modelfile", "Modelfile 裡的 rope 參數"),
    why: both(
      "The documented parameters hold none for the rotation: rope_frequency_base and rope_frequency_scale of the first releases are gone.",
      "文件列出的參數裡沒有任何一個管旋轉：早期版本的 rope_frequency_base 與 rope_frequency_scale 已經移除。",
    ),
    fix: both("Patch the file: longhand export --to gguf.", "修補檔案：longhand export --to gguf。"),
    references: ["https://github.com/ollama/ollama/blob/main/docs/modelfile.mdx"],
    broken: {
      gguf: ggufLlama(),
      command: "FROM ./model.gguf\nPARAMETER num_ctx 8192\nPARAMETER rope_frequency_base 1000000",
    },
    *check(subject) {
      if (subject.engine !== "ollama") return;
      for (const flag of subject.command?.flags ?? []) {
        if (!/^PARAMETER (rope|yarn)_/.test(flag.name)) continue;
        yield {
          where: flag.written,
          got: flag.value,
          expected: both("no such parameter", "沒有這個參數"),
          operations: [dropFlag(flag.name)],
        };
      }
    },
  },
  {
    code: "mlx-cache-forgets",
    severity: "warning",
    engines: ["mlx-lm"],
    title: both("A rotating cache forgets the beginning", "循環快取會忘掉開頭"),
    why: both(
      "--max-kv-size keeps a few first tokens and the last ones: a longer input is not read whole, whatever its positions.",
      "--max-kv-size 只保留開頭幾個和最後的 token：不論位置如何，較長的輸入都不會讀完整。",
    ),
    fix: both("Leave it out, or raise it to the length asked for.", "拿掉它，或調到要求的長度。"),
    references: ["https://github.com/lmstudio-ai/mlx-engine/issues/180"],
    broken: {
      config: llama31(),
      command: "mlx_lm.generate --model mlx-community/Llama-3.1-8B --max-kv-size 4096",
      target: 32768,
    },
    *check(subject) {
      const kept = numberOf(subject.command, "--max-kv-size");
      if (subject.engine !== "mlx-lm" || kept === null || subject.target === null || kept >= subject.target) return;
      yield {
        where: "--max-kv-size",
        got: kept,
        expected: both(`at least ${tokens(subject.target)}`, `至少 ${tokens(subject.target)}`),
      };
    },
  },
  {
    code: "context-below-target",
    severity: "error",
    engines: ["vllm", "sglang", "llama.cpp", "ollama"],
    title: both("The server is started for less than the length asked for", "伺服器啟動的長度小於要求的長度"),
    why: both(
      "Longer requests are refused or cut, whatever the scaling.",
      "不論縮放如何，更長的請求都會被拒絕或截斷。",
    ),
    fix: both("Raise the flag.", "調高旗標的值。"),
    references: ["https://github.com/Pushkinist/rMLX/pull/493", "https://github.com/gpustack/gpustack/issues/1365"],
    broken: { config: llama31(), command: "vllm serve meta-llama/Llama-3.1-8B --max-model-len 32768", target: 131072 },
    *check(subject) {
      if (subject.target === null) return;
      for (const flag of ["--max-model-len", "--context-length", "--ctx-size", "PARAMETER num_ctx"]) {
        const value = numberOf(subject.command, flag);
        // llama.cpp: 0 takes the file's.
        if (value === null || value < 1 || value >= subject.target) continue;
        yield {
          where: flag,
          got: value,
          expected: both(`at least ${tokens(subject.target)}`, `至少 ${tokens(subject.target)}`),
          operations: [setFlag(flag, String(subject.target))],
        };
      }
    },
  },
];
