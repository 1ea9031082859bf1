// vLLM's command line: flags that are gone, overrides that lose something, lengths that are refused. Read in the sources of
// vLLM 0.11.0, 0.11.1, 0.12.0 and 0.31.0 to 0.33.0.

import { isObject, type JsonObject } from "../../../formats/huggingface/values.ts";
import { flagOf, numberOf } from "../command.ts";
import { pointerKeys, valueAt } from "../json-text.ts";
import { both, code, dropFlag, flagJson, set, setFlag, show, tokens } from "../record.ts";
import type { FindingRecord, Operation, Subject } from "../types.ts";
import { isBefore } from "../versions.ts";
import { llama2, phi3, phiLists, qwen3, qwenVl } from "./base.ts";
import { yarnOf } from "./lengths.ts";

const isVllm = ({ engine }: Subject): boolean => engine === "vllm";
const before = ({ version }: Subject, bound: string): boolean => version !== null && isBefore(version, bound);

/** The whole dict that an override must hold: the base of the file included, under the key that this version reads. */
function fullOverride(subject: Subject, dict: JsonObject): JsonObject {
  const theta = dict.rope_theta ?? baseOf(subject);
  const { type, ...rest } = dict;
  const ropeType = rest.rope_type ?? type;
  const value = {
    ...(ropeType === undefined ? {} : { rope_type: ropeType }),
    ...(theta === null ? {} : { rope_theta: theta }),
    ...rest,
  };
  const keys = pointerKeys(subject.textPath);
  const max = reachOf(value);
  const inner: JsonObject = { rope_parameters: value, ...(max === null ? {} : { max_position_embeddings: max }) };
  return keys.reduceRight<JsonObject>((inside, key) => ({ [key]: inside }), inner);
}

function reachOf(dict: JsonObject): number | null {
  const { factor, original_max_position_embeddings: original } = dict;
  return typeof factor === "number" && typeof original === "number" ? Math.round(factor * original) : null;
}

/** The base that the file's own settings have. */
function baseOf(subject: Subject): number | null {
  const { config, textPath } = subject;
  for (const place of ["rope_scaling/rope_theta", "rope_parameters/rope_theta", "rope_theta"]) {
    const value = valueAt(config, `${textPath}/${place}`);
    if (typeof value === "number") return value;
  }
  return null;
}

/** The dict of an override, wherever it stands in it. */
export function overriddenDict(subject: Subject): { path: string; dict: JsonObject; name: string } | null {
  for (const part of ["", subject.textPath]) {
    for (const name of ["rope_parameters", "rope_scaling"]) {
      const dict = valueAt(subject.overrides?.value, `${part}/${name}`);
      if (isObject(dict)) return { path: `${part}/${name}`, dict, name };
    }
  }
  return null;
}

/** The longest sequence that this version admits for the settings; null where nothing is known. */
export function admittedLength(subject: Subject): number | null {
  const { model, engine } = subject;
  const max = model?.maxPositionEmbeddings ?? null;
  if (model === null || max === null) return null;
  const position = model.groups.find((group) => group.position.kind === "rope")?.position;
  if (position?.kind !== "rope" || model.modelType.includes("gemma3")) return max;
  const { rope } = position;
  const factor = "factor" in rope && typeof rope.factor === "number" ? rope.factor : 1;
  if (rope.ropeType === "llama3" || rope.ropeType === "longrope") return max;
  if (rope.ropeType === "yarn") {
    if (engine === "vllm" && before(subject, "0.31")) return Math.trunc(rope.originalMaxPositionEmbeddings * factor);
    return max;
  }
  return Math.trunc(max * factor);
}

const serve = (rest: string) => `vllm serve Qwen/Qwen3-8B ${rest}`;
const yarnJson = (more = "") => `{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768${more}}`;

export const vllm: readonly FindingRecord[] = [
  {
    code: "vllm-flag-removed",
    severity: "error",
    engines: ["vllm"],
    title: both("--rope-scaling and --rope-theta are gone", "--rope-scaling 與 --rope-theta 已移除"),
    why: both(
      "vLLM removed both in 0.11.1: the server refuses to start, although many guides still show them.",
      "vLLM 在 0.11.1 移除了這兩個旗標：伺服器不會啟動，但許多教學仍這樣寫。",
    ),
    fix: both(
      "Use --hf-overrides with rope_parameters, the base included.",
      "改用 --hf-overrides 搭配 rope_parameters，並寫上底數。",
    ),
    references: ["https://github.com/vllm-project/vllm/pull/28006"],
    broken: { config: qwen3(), command: serve(`--rope-scaling '${yarnJson()}' --max-model-len 131072`) },
    *check(subject) {
      if (!isVllm(subject) || before(subject, "0.11.1")) return;
      const flag = ["--rope-scaling", "--rope-theta"].map((name) => flagOf(subject.command, name)).find(Boolean);
      if (flag === undefined) return;
      const dict = overriddenDict(subject)?.dict;
      const theta = numberOf(subject.command, "--rope-theta");
      const whole = dict ?? (theta === null ? null : { rope_type: "default" });
      const operations: Operation[] =
        whole === null || subject.config === null
          ? []
          : [
              dropFlag("--rope-scaling"),
              dropFlag("--rope-theta"),
              setFlag(
                "--hf-overrides",
                flagJson(fullOverride(subject, theta === null ? whole : { ...whole, rope_theta: theta })),
              ),
            ];
      yield {
        where: flag.name,
        got: flag.value,
        expected: both(`--hf-overrides, in vLLM ${subject.version}`, `vLLM ${subject.version} 用 --hf-overrides`),
        operations,
      };
    },
  },
  {
    code: "override-not-json",
    severity: "error",
    engines: ["vllm", "sglang"],
    title: both("An override that is no JSON object", "覆寫的內容不是 JSON 物件"),
    why: both(
      "The server stops, or a shell took the quotes away and nothing is overridden.",
      "伺服器會停下來；或是 shell 拿掉了引號，什麼也沒有覆寫。",
    ),
    fix: both("Put the object into single quotes, with double quotes inside.", "用單引號包住整個物件，裡面用雙引號。"),
    references: ["https://github.com/vllm-project/vllm/issues/10537"],
    broken: { config: qwen3(), command: serve('--hf-overrides {"rope_parameters":{"rope_type":"yarn"}}') },
    *check() {
      // Found while the command line is read (diagnose.ts).
    },
  },
  {
    code: "override-wrong-dict",
    severity: "error",
    engines: ["vllm"],
    title: both("An override under the key that this version does not read", "覆寫寫在這個版本不讀的鍵底下"),
    why: both(
      "vLLM reads rope_parameters since 0.12 and rope_scaling before: the other key changes nothing, or loses the base of the file and fails.",
      "vLLM 從 0.12 起讀 rope_parameters，之前讀 rope_scaling：寫錯鍵就沒有作用，或遺失檔案的底數而失敗。",
    ),
    fix: both("Write the key that the version reads.", "改寫成這個版本會讀的鍵。"),
    references: [
      "https://github.com/vllm-project/vllm/issues/28542",
      "https://github.com/vllm-project/recipes/pull/856",
    ],
    broken: {
      config: qwen3(),
      command: serve(
        `--hf-overrides '{"rope_scaling":${yarnJson()},"max_position_embeddings":131072}' --max-model-len 131072`,
      ),
    },
    *check(subject) {
      const found = overriddenDict(subject);
      if (!isVllm(subject) || found === null || subject.overrides?.flag !== "--hf-overrides") return;
      const isOld = before(subject, "0.12");
      const wanted = isOld ? "rope_scaling" : "rope_parameters";
      if (found.name === wanted) return;
      const full = isOld ? { rope_scaling: found.dict } : fullOverride(subject, found.dict);
      const rest = { ...subject.overrides.value };
      delete rest[found.name];
      yield {
        where: `--hf-overrides ${found.path}`,
        got: found.dict,
        expected: both(`"${wanted}", which vLLM ${subject.version} reads`, `vLLM ${subject.version} 讀的 "${wanted}"`),
        operations: [setFlag("--hf-overrides", flagJson({ ...rest, ...full }))],
      };
    },
  },
  {
    code: "override-loses-theta",
    severity: "error",
    engines: ["vllm", "sglang"],
    title: both("An override that loses the base", "覆寫讓底數消失"),
    why: both(
      "The override replaces the whole dict, rope_theta included: vLLM 0.12 stops, later ones compute with 10000 without a word.",
      "覆寫會取代整個 dict，連 rope_theta 也一起：vLLM 0.12 會停下來，之後的版本默默改用 10000。",
    ),
    fix: both("Write the file's rope_theta into the override.", "把檔案的 rope_theta 寫進覆寫裡。"),
    references: ["https://github.com/THUDM/slime/pull/1720", "https://github.com/sgl-project/sglang/issues/14745"],
    broken: {
      config: qwen3(),
      command: serve(
        `--hf-overrides '{"rope_parameters":${yarnJson()},"max_position_embeddings":131072}' --max-model-len 131072`,
      ),
    },
    *check(subject) {
      const found = overriddenDict(subject);
      const theta = baseOf(subject);
      if (found === null || theta === null || theta === 10000 || found.dict.rope_theta !== undefined) return;
      const nested = found.path.split("/").length > 2;
      // vLLM merges inside text_config and replaces at the top level; SGLang the other way round.
      const isLost =
        (isVllm(subject) && !before(subject, "0.12") && !nested && found.name === "rope_parameters") ||
        (subject.engine === "sglang" && nested);
      if (!isLost || Object.values(found.dict).some(isObject)) return;
      yield {
        where: `${subject.overrides!.flag} ${found.path}/rope_theta`,
        got: null,
        expected: code(`"rope_theta": ${theta}`),
        operations: [
          setFlag(
            subject.overrides!.flag,
            flagJson(withValue(subject.overrides!.value, `${found.path}/rope_theta`, theta)),
          ),
        ],
      };
    },
  },
  {
    code: "override-outside-text-config",
    severity: "error",
    engines: ["vllm", "sglang"],
    title: both("An override outside the text model", "覆寫寫在文字模型之外"),
    why: both(
      "The text model of a multimodal checkpoint is built from text_config: the override at the top level changes nothing.",
      "多模態模型的文字部分由 text_config 建立：寫在最外層的覆寫沒有作用。",
    ),
    fix: both("Nest it in text_config.", "寫進 text_config 裡。"),
    references: ["https://github.com/vllm-project/recipes/pull/856"],
    broken: {
      config: qwenVl(),
      command:
        'vllm serve Qwen/Qwen2.5-VL-7B-Instruct --hf-overrides \'{"rope_parameters":{"rope_type":"yarn","rope_theta":1000000,"factor":4.0,"original_max_position_embeddings":32768,"mrope_section":[16,24,24]}}\'',
    },
    *check(subject) {
      if (subject.textPath === "" || subject.overrides === null) return;
      for (const name of ["rope_parameters", "rope_scaling", "rope_theta", "max_position_embeddings"]) {
        const value = subject.overrides.value[name];
        if (value === undefined) continue;
        const [part = ""] = pointerKeys(subject.textPath);
        const { [name]: moved, ...rest } = subject.overrides.value;
        const inner = rest[part];
        const nested = { ...rest, [part]: { ...(isObject(inner) ? inner : {}), [name]: moved } };
        yield {
          where: `${subject.overrides.flag} /${name}`,
          got: value,
          expected: code(`{"${part}": {"${name}": ...}}`),
          operations: [setFlag(subject.overrides.flag, flagJson(nested))],
        };
        return;
      }
    },
  },
  {
    code: "override-type-key",
    severity: "error",
    engines: ["vllm"],
    title: both("An override with type instead of rope_type", "覆寫寫了 type，而不是 rope_type"),
    why: both(
      "vLLM renames the older key in the file, not in overrides, which come after: KeyError 'rope_type'.",
      "vLLM 只會改寫檔案裡的舊鍵；覆寫在那之後才套用，因此丟出 KeyError 'rope_type'。",
    ),
    fix: both('Write "rope_type".', '改寫成 "rope_type"。'),
    references: ["https://github.com/vllm-project/vllm/issues/10293"],
    broken: {
      config: qwen3(),
      command: serve(
        `--hf-overrides '{"rope_parameters":{"type":"yarn","rope_theta":1000000,"factor":4.0,"original_max_position_embeddings":32768},"max_position_embeddings":131072}' --max-model-len 131072`,
      ),
    },
    *check(subject) {
      const found = overriddenDict(subject);
      if (
        !isVllm(subject) ||
        before(subject, "0.11.1") ||
        found === null ||
        subject.overrides!.flag !== "--hf-overrides"
      )
        return;
      if (found.dict.rope_type !== undefined || found.dict.type === undefined) return;
      const { type, ...rest } = found.dict;
      yield {
        where: `--hf-overrides ${found.path}/type`,
        got: type,
        expected: code(`"rope_type": ${show(type)}`),
        operations: [
          setFlag(
            "--hf-overrides",
            flagJson(withValue(subject.overrides!.value, found.path, { rope_type: type, ...rest })),
          ),
        ],
      };
    },
  },
  {
    code: "max-model-len-refused",
    severity: "error",
    engines: ["vllm", "sglang"],
    title: both("A length that the server refuses", "伺服器會拒絕的長度"),
    why: both(
      "vLLM 0.31 and later and SGLang take max_position_embeddings as the bound and no longer multiply it by YaRN's factor; a server asked for more does not start.",
      "vLLM 0.31 以後與 SGLang 以 max_position_embeddings 為上限，不再乘上 YaRN 的因子；要求更長時伺服器不會啟動。",
    ),
    fix: both(
      "Raise max_position_embeddings beside the scaling that reaches the length.",
      "在能達到這個長度的縮放旁邊，一併調高 max_position_embeddings。",
    ),
    references: [
      "https://github.com/vllm-project/vllm/pull/56446",
      "https://github.com/vllm-project/vllm/issues/10537",
    ],
    broken: {
      config: qwen3(),
      command: serve(
        `--hf-overrides '{"rope_parameters":${yarnJson(',"rope_theta":1000000')}}' --max-model-len 131072`,
      ),
    },
    *check(subject) {
      const isSglang = subject.engine === "sglang";
      const flag = isSglang ? "--context-length" : "--max-model-len";
      const variable = isSglang ? "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN" : "VLLM_ALLOW_LONG_MAX_MODEL_LEN";
      if (!isVllm(subject) && !isSglang) return;
      // A flag that is gone is told first; its repair raises the length too.
      if (isVllm(subject) && !before(subject, "0.11.1") && /^--rope/.test(subject.overrides?.flag ?? "")) return;
      const asked = numberOf(subject.command, flag);
      const admitted = admittedLength(subject);
      if (asked === null || admitted === null || asked <= admitted) return;
      if (["1", "true"].includes((subject.command?.variables.get(variable) ?? "").toLowerCase())) return;
      const yarn = yarnOf(subject);
      const reaches = yarn !== null && Math.round(yarn.factor * yarn.original) >= asked;
      yield {
        where: flag,
        got: asked,
        expected: both(
          `at most ${tokens(admitted)}, which the configuration allows in this version`,
          `至多 ${tokens(admitted)}，這個版本依設定檔只允許這麼長`,
        ),
        operations: reaches ? lengthOperations(subject, Math.round(yarn.factor * yarn.original)) : [],
      };
    },
  },
  {
    code: "length-without-scaling",
    severity: "error",
    engines: ["vllm", "sglang"],
    title: both("The bound is lifted, but nothing reaches the length", "解除了上限，卻沒有縮放能到這個長度"),
    why: both(
      "The variable lets the server start; positions past the training are computed all the same, or read past the end of vLLM's table.",
      "這個變數讓伺服器能啟動；超過訓練長度的位置照樣計算，或讀到 vLLM 的表外。",
    ),
    fix: both(
      "Add a scaling that reaches the length, and take the variable away.",
      "加上能達到這個長度的縮放，並拿掉這個變數。",
    ),
    references: [
      "https://github.com/vllm-project/vllm/issues/44286",
      "https://github.com/vllm-project/vllm/pull/55910",
    ],
    broken: {
      config: llama2(),
      command: "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve meta-llama/Llama-2-7b-hf --max-model-len 16384",
    },
    *check(subject) {
      const isSglang = subject.engine === "sglang";
      if (!isVllm(subject) && !isSglang) return;
      const name = isSglang ? "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN" : "VLLM_ALLOW_LONG_MAX_MODEL_LEN";
      const asked = numberOf(subject.command, isSglang ? "--context-length" : "--max-model-len");
      const admitted = admittedLength(subject);
      if (asked === null || admitted === null || asked <= admitted || !subject.command?.variables.has(name)) return;
      const yarn = yarnOf(subject);
      if (yarn !== null && Math.round(yarn.factor * yarn.original) >= asked) return;
      yield {
        where: name,
        got: asked,
        expected: both(`a scaling that reaches ${tokens(asked)} tokens`, `能到 ${tokens(asked)} 個 token 的縮放`),
      };
    },
  },
  {
    code: "longrope-server-list",
    severity: "warning",
    engines: ["vllm"],
    title: both("One list of longrope for the whole server", "整個伺服器共用一組 longrope 列表"),
    why: both(
      "vLLM uses the long list for every request once --max-model-len is above the original length: short prompts are rotated otherwise than in training.",
      "只要 --max-model-len 大於原始長度，vLLM 就對每個請求都用長列表：短提示的旋轉與訓練時不同。",
    ),
    fix: both(
      "Serve short inputs from a server started at the original length.",
      "短輸入另開一個以原始長度啟動的伺服器。",
    ),
    references: ["https://github.com/ggml-org/llama.cpp/issues/6849", "https://github.com/lablup/mlxcel/issues/1358"],
    broken: {
      config: phi3({ rope_scaling: phiLists() }),
      command: "vllm serve microsoft/Phi-3.5-mini-instruct --max-model-len 131072",
    },
    *check(subject) {
      if (!isVllm(subject)) return;
      const asked = numberOf(subject.command, "--max-model-len");
      for (const { position } of subject.model?.groups ?? []) {
        if (position.kind !== "rope" || position.rope.ropeType !== "longrope" || asked === null) continue;
        const original = position.rope.originalMaxPositionEmbeddings;
        if (asked <= original) return;
        yield {
          where: "--max-model-len",
          got: asked,
          expected: both(`at most ${tokens(original)} for short inputs`, `短輸入至多 ${tokens(original)}`),
        };
        return;
      }
    },
  },
];

/** Raises max_position_embeddings where the scaling stands: in the override, or in the file. */
function lengthOperations(subject: Subject, length: number): readonly Operation[] {
  const found = overriddenDict(subject);
  if (found === null || subject.overrides === null) return [set(`${subject.textPath}/max_position_embeddings`, length)];
  const part = found.path.slice(0, found.path.lastIndexOf("/"));
  return [
    setFlag(
      subject.overrides.flag,
      flagJson(withValue(subject.overrides.value, `${part}/max_position_embeddings`, length)),
    ),
  ];
}

function withValue(object: JsonObject, pointer: string, value: unknown): JsonObject {
  const [key = "", ...rest] = pointerKeys(pointer);
  const inner = object[key];
  if (rest.length === 0) return { ...object, [key]: value };
  return { ...object, [key]: withValue(isObject(inner) ? inner : {}, `/${rest.join("/")}`, value) };
}
