// The doctor: every record is brought about by its broken case and repaired by its operations, well-known configurations
// are clean, and what the field's bug reports say of single cases holds.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { findingsPages, markers, readmeList } from "../../scripts/findings-docs.ts";
import {
  applyFixes,
  type DiagnoseInput,
  diagnose,
  doctorEngines,
  doctorText,
  findingRecords,
  parseCommand,
  recordOf,
  repair,
} from "../../src/advice/doctor/index.ts";
import { patchText, pointerOf } from "../../src/advice/doctor/json-text.ts";
import { displayWidth } from "../../src/advice/doctor/text.ts";
import { isBefore } from "../../src/advice/doctor/versions.ts";
import { inputOf, knownConfigurations } from "../support/doctor.ts";

const root = new URL("../../", import.meta.url);
const codesOf = (input: DiagnoseInput) => diagnose(input).findings.map(({ code }) => code);
const matches = (code: string, found: string) =>
  found === code || (code.endsWith("*") && found.startsWith(code.slice(0, -1)));

describe("records", () => {
  test("have codes of their own, texts in both languages, and references", () => {
    const codes = findingRecords.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const { code, title, why, fix, references, engines } of findingRecords) {
      expect(code).toMatch(/^[a-z0-9.]+(-[a-z0-9.*]+)*$/);
      for (const text of [title, why, fix]) {
        expect(text.en, code).toMatch(/^[\x20-\x7e√−²·–…×]+$/);
        expect(text["zh-TW"], code).toMatch(/[\u4e00-\u9fff]/);
      }
      expect(references.length, code).toBeGreaterThan(0);
      for (const reference of references) expect(reference, code).toMatch(/^https:\/\//);
      for (const engine of engines) expect(doctorEngines, code).toContain(engine);
    }
  });

  test("exist for every code that a reader or an inspection can give", () => {
    const codes = new Set<string>();
    for (const folder of ["src/formats", "src/advice/inspect.ts"]) {
      const url = new URL(folder, root);
      const files = folder.endsWith(".ts")
        ? [url]
        : readdirSync(url, { recursive: true, encoding: "utf8" })
            .filter((file) => file.endsWith(".ts"))
            .map((file) => new URL(`${folder}/${file}`, root));
      for (const file of files) {
        for (const [, code] of readFileSync(file, "utf8").matchAll(/\bcode: "([a-z][a-z0-9.-]+)"/g)) codes.add(code!);
      }
    }
    expect(codes.size).toBeGreaterThan(50);
    // Of --scaling, which the doctor is not given; and of weights, which are read elsewhere.
    const others = ["scaling-left-out", "scaling-replaces-trained"];
    const missing = [...codes].filter((code) => recordOf(code) === undefined && !others.includes(code));
    expect(missing).toEqual([]);
  });

  const broken = findingRecords.filter((record) => record.broken !== null);

  test.each(broken.map((record) => [record.code, record] as const))(
    "%s is found in its broken case",
    async (code, record) => {
      const { findings } = diagnose(await inputOf(record.broken!));
      const found = findings.find((finding) => matches(code, finding.code))!;
      expect(found, findings.map((one) => one.code).join()).toBeDefined();
      expect(found.where).not.toBe("");
      expect(found.why).not.toBe("");
      expect(found.chinese.why).toMatch(/[\u4e00-\u9fff]/);
    },
  );

  test.each(broken.map((record) => [record.code, record] as const))(
    "%s is gone after its repair, if it has one",
    async (code, record) => {
      const input = await inputOf(record.broken!);
      const before = diagnose(input);
      const found = before.findings.filter((finding) => matches(code, finding.code));
      if (found.every(({ operations }) => operations.length === 0)) return;
      const fixed = applyFixes({ config: input.config as string | undefined, command: input.command }, found);
      expect(fixed.applied, code).toContain(code);
      const after = diagnose({
        ...input,
        ...(fixed.config === null ? {} : { config: fixed.config }),
        ...(fixed.command === null ? {} : { command: fixed.command }),
      });
      const weight = { error: 2, warning: 1, note: 0 } as const;
      const left = after.findings.filter((finding) => matches(code, finding.code));
      for (const finding of left) expect(weight[finding.severity], `${code} ${finding.where}`).toBe(0);
      // A repair must not make anything worse.
      const errors = (all: typeof before) =>
        all.findings.filter(({ severity }) => severity === "error").map((one) => one.code);
      for (const error of errors(after)) expect(errors(before), `${code} brings ${error}`).toContain(error);
    },
  );

  test("most can be repaired by a machine", () => {
    // Operations depend on the case; the records say where a repair exists at all.
    expect(
      findingRecords.filter(({ repair: own, check }) => own !== undefined || check !== undefined).length,
    ).toBeGreaterThan(60);
  });
});

describe("well-known configurations", () => {
  const known = knownConfigurations();

  test("are at least 60, of every family of positions", () => {
    expect(known.size).toBeGreaterThanOrEqual(60);
    const kinds = new Set(
      [...known.values()].flatMap((config) => diagnose({ config }).model!.groups.map(({ position }) => position.kind)),
    );
    expect([...kinds].sort()).toEqual(["alibi", "learned", "nope", "rope", "sinusoidal", "t5"]);
  });

  // Qwen 3 with the YaRN of its model card, whose length is left as it was: the one example that has a fault.
  const clean = [...known].filter(([name]) => name !== "qwen3-8b-yarn");
  test.each(clean)("%s has no error and no warning", (_, config) => {
    const bad = diagnose({ config }).findings.filter(({ severity }) => severity !== "note");
    expect(bad.map(({ code, where }) => `${code} ${where}`)).toEqual([]);
  });

  test.each(["vllm", "sglang", "llama.cpp", "mlx-lm"] as const)(
    "under %s only what it really computes otherwise is an error",
    (engine) => {
      const found = clean.flatMap(([name, config]) =>
        diagnose({ config, engine })
          .findings.filter(({ severity }) => severity === "error")
          .map(({ code }) => `${name}: ${code}`),
      );
      const expected: Record<string, readonly RegExp[]> = {
        vllm: [],
        // Both ship dynamic, of which SGLang makes one table.
        sglang: [/^internlm3-8b: engine-/, /^internvl3-8b: engine-/],
        "llama.cpp": [
          /gpt-oss.*frequencies/,
          /vision: engine-frequencies/,
          /internlm3-8b: engine-frequencies/,
          /^gemma-4.*/,
          // It ships beta_fast 1, which llama.cpp does not read.
          /^kimi-k2: engine-frequencies/,
        ],
        "mlx-lm": [
          /gpt-oss.*frequencies/,
          // Its glm.py rotates whole heads.
          /^glm-4-9b-chat-hf: engine-frequencies/,
        ],
      };
      expect(found.filter((one) => !expected[engine]!.some((pattern) => pattern.test(one)))).toEqual([]);
    },
  );
});

describe("single cases of the field", () => {
  test("a base that dynamic cannot stretch is no exception where the engine skips dynamic", () => {
    // Found by damaged configurations: run 7704 of seed 106.
    const rope_scaling = { rope_type: "dynamic", factor: 6 };
    const config = { ...(JSON.parse(qwen()) as object), model_type: "internlm3", rope_theta: 1e308, rope_scaling };
    for (const engine of doctorEngines) expect(() => diagnose({ config, engine, target: 225043 })).not.toThrow();
  });

  test("the text model's type counts, and Kimi's is DeepSeek V3's: no other factor on scores", () => {
    const known = knownConfigurations();
    for (const name of ["kimi-k2", "kimi-k2.5"]) {
      for (const engine of ["transformers", "vllm", "sglang", "mlx-lm"] as const) {
        expect(codesOf({ config: known.get(name)!, engine }), `${engine} ${name}`).not.toContain(
          "engine-score-differs",
        );
      }
    }
    // mistral3.py hands a ministral3 text model to the class that reads rope_parameters.
    expect(codesOf({ config: known.get("ministral-3-8b")!, engine: "mlx-lm" })).not.toContain("new-schema-unread");
  });

  const qwen = (changes: object = {}) =>
    JSON.stringify({
      model_type: "qwen3",
      hidden_size: 4096,
      num_hidden_layers: 36,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 40960,
      rope_theta: 1000000,
      ...changes,
    });
  const yarn = `{"rope_type":"yarn","rope_theta":1000000,"factor":4.0,"original_max_position_embeddings":32768}`;

  test("vLLM's own documented command for Qwen 3 was right in 0.12 and is refused since 0.31", () => {
    const command = `vllm serve Qwen/Qwen3-8B --hf-overrides '{"rope_parameters":${yarn}}' --max-model-len 131072`;
    const at = (engineVersion: string) => codesOf({ config: qwen(), command, engineVersion });
    expect(at("0.33.0")).toContain("max-model-len-refused");
    expect(at("0.12.0")).not.toContain("max-model-len-refused");
    const fixed = repair({ config: qwen(), command });
    expect(fixed.command).toContain('"max_position_embeddings":131072');
    expect(fixed.diagnosis.findings.filter(({ severity }) => severity !== "note")).toEqual([]);
  });

  test("--rope-scaling is right in vLLM 0.11.0 and gone in 0.11.1", () => {
    const command = `vllm serve Qwen/Qwen3-8B --rope-scaling '${yarn}' --max-model-len 131072`;
    expect(codesOf({ config: qwen(), command, engineVersion: "0.11.0" })).not.toContain("vllm-flag-removed");
    expect(codesOf({ config: qwen(), command, engineVersion: "0.11.1" })).toContain("vllm-flag-removed");
  });

  test("rope_parameters in overrides is right from vLLM 0.12 on, rope_scaling before", () => {
    const of = (key: string) => `vllm serve m --hf-overrides '{"${key}":${yarn},"max_position_embeddings":131072}'`;
    const wrong = (key: string, engineVersion: string) =>
      codesOf({ config: qwen(), command: of(key), engineVersion }).includes("override-wrong-dict");
    expect([wrong("rope_parameters", "0.11.1"), wrong("rope_scaling", "0.11.1")]).toEqual([true, false]);
    expect([wrong("rope_parameters", "0.33.0"), wrong("rope_scaling", "0.33.0")]).toEqual([false, true]);
  });

  test("a base that the override leaves out is lost in vLLM and kept in SGLang at the top level", () => {
    const dict = `{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}`;
    const vllm = `vllm serve m --hf-overrides '{"rope_parameters":${dict},"max_position_embeddings":131072}'`;
    const sglang = `python -m sglang.launch_server --model-path m --json-model-override-args '{"rope_scaling":${dict},"max_position_embeddings":131072}'`;
    expect(codesOf({ config: qwen(), command: vllm })).toContain("override-loses-theta");
    expect(codesOf({ config: qwen(), command: sglang })).not.toContain("override-loses-theta");
    const inside = diagnose({ config: qwen(), command: sglang }).model!.groups[0]!.position;
    expect(inside.kind === "rope" && inside.rope.ropeTheta).toBe(1000000);
  });

  test("SGLang refuses a context above max_position_embeddings whatever the factor, unless its variable is set", () => {
    const line = `python -m sglang.launch_server --model-path m --json-model-override-args '{"rope_scaling":${yarn}}' --context-length 131072`;
    expect(codesOf({ config: qwen(), command: line })).toContain("max-model-len-refused");
    const lifted = `SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 ${line}`;
    expect(codesOf({ config: qwen(), command: lifted })).not.toContain("max-model-len-refused");
    expect(codesOf({ config: qwen(), command: lifted })).not.toContain("length-without-scaling");
  });

  test("llama.cpp's flags reach a length together; each alone does not", () => {
    const of = (flags: string) => codesOf({ config: qwen(), command: `llama-server -m q.gguf -c 131072 ${flags}` });
    expect(of("")).toContain("llama-context-clamped");
    expect(of("--rope-scaling yarn --yarn-orig-ctx 32768")).toContain("llama-scaling-without-scale");
    expect(of("--rope-scaling yarn --rope-scale 4")).toContain("llama-orig-ctx-missing");
    expect(
      of("--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768").filter((code) => code.startsWith("llama-")),
    ).toEqual([]);
    expect(
      of("--rope-scaling yarn --rope-freq-scale 0.25 --yarn-orig-ctx 32768").filter((code) =>
        code.startsWith("llama-"),
      ),
    ).toEqual([]);
  });

  test("llama.cpp's variables count as its flags", () => {
    const command =
      "LLAMA_ARG_CTX_SIZE=131072 LLAMA_ARG_ROPE_SCALING_TYPE=yarn LLAMA_ARG_ROPE_SCALE=4 LLAMA_ARG_YARN_ORIG_CTX=32768 llama-server -m q.gguf";
    const diagnosis = diagnose({ config: qwen(), command });
    expect(diagnosis.target).toBe(131072);
    expect(diagnosis.findings.filter(({ severity }) => severity !== "note")).toEqual([]);
  });

  test("what two readers read differently is an error for the one that is named", () => {
    const config = JSON.stringify({
      model_type: "gemma3_text",
      hidden_size: 64,
      num_hidden_layers: 6,
      num_attention_heads: 4,
      head_dim: 16,
      max_position_embeddings: 8192,
      sliding_window: 512,
      rope_scaling: { type: "linear", factor: 8 },
    });
    const severity = (input: Partial<DiagnoseInput>) =>
      diagnose({ config, ...input }).findings.find(({ code }) => code === "legacy-type-lost")!.severity;
    expect(severity({})).toBe("warning");
    expect(severity({ engine: "transformers" })).toBe("error");
    expect(severity({ engine: "transformers", engineVersion: "4.57.6" })).toBe("warning");
    expect(severity({ engine: "vllm" })).toBe("warning");
  });

  test("a file that is no JSON, and one with a key twice, are findings with a place", () => {
    const cut = diagnose({ config: '{"model_type": "llama", ' });
    expect(cut.findings.map(({ code, severity }) => [code, severity])).toEqual([["unreadable", "error"]]);
    expect(cut.model).toBeNull();
    const twice = diagnose({ config: '{"rope_theta": 1, "rope_theta": 2}' });
    expect(twice.findings[0]!.expected).toContain("once in its object");
  });

  test("a position table whose rows all stand before the first position is a finding of the file", () => {
    const config = JSON.stringify({
      model_type: "roberta",
      hidden_size: 768,
      num_hidden_layers: 2,
      num_attention_heads: 12,
      max_position_embeddings: 514,
      pad_token_id: 4294967296,
    });
    const [finding] = diagnose({ config }).findings;
    expect([finding!.code, finding!.where]).toEqual(["unreadable", "/max_position_embeddings"]);
  });

  test("several numbers in quotes are all found in one look", () => {
    const config = qwen({ max_position_embeddings: "40960", rope_theta: "1000000", head_dim: "128" });
    const quoted = diagnose({ config }).findings.filter(({ code }) => code === "number-in-quotes");
    expect(quoted.map(({ where }) => where).sort()).toEqual(["/head_dim", "/max_position_embeddings", "/rope_theta"]);
    expect(JSON.parse(repair({ config }).config!)).toMatchObject({ head_dim: 128, rope_theta: 1000000 });
  });

  test("arguments that make no sense are refused", () => {
    expect(() => diagnose({ config: qwen(), target: 0 })).toThrow(/target to be an integer of at least 1, got 0/);
    expect(() => diagnose({ config: qwen(), engine: "tgi" as never })).toThrow(/engine to be one of .*, got tgi/);
    expect(() => diagnose({ config: qwen(), command: "make coffee" })).toThrow(
      /expected vllm serve.*got "make coffee"/,
    );
    expect(() => diagnose({ config: qwen(), command: "vllm serve m", engine: "sglang" })).toThrow(
      /expected engine vllm/,
    );
  });
});

describe("command lines", () => {
  test("quotes, line ends, = and underscores, variables, and what follows &&", () => {
    const { engine, model, flags, variables } = parseCommand(
      `HF_HOME=/x CUDA_VISIBLE_DEVICES=0 python3 -m vllm.entrypoints.openai.api_server \\\n  --model 'a b' --max_model_len=128k --hf-overrides "{\\"a\\": 1}" && echo --max-model-len 1`,
    );
    expect([engine, model]).toEqual(["vllm", "a b"]);
    expect(flags.map(({ name, value }) => [name, value])).toEqual([
      ["--model", "a b"],
      ["--max-model-len", "128k"],
      ["--hf-overrides", '{"a": 1}'],
    ]);
    expect(variables.get("CUDA_VISIBLE_DEVICES")).toBe("0");
  });

  test("dotted overrides are one object", () => {
    const config = knownConfigurations().get("qwen3-8b")!;
    const command =
      "vllm serve Qwen/Qwen3-8B --hf-overrides.rope_parameters.rope_type yarn --hf-overrides.rope_parameters.factor 4.0 " +
      "--hf-overrides.rope_parameters.rope_theta 1000000 --hf-overrides.rope_parameters.original_max_position_embeddings 32768 " +
      "--hf-overrides.max_position_embeddings 131072 --max-model-len 131072";
    const { model, findings } = diagnose({ config, command });
    expect(model!.maxPositionEmbeddings).toBe(131072);
    expect(findings.filter(({ severity }) => severity !== "note")).toEqual([]);
  });

  test("docker, sglang serve, mlx_lm and a Modelfile", () => {
    expect(parseCommand("docker run --gpus all -e X=1 vllm/vllm-openai:latest --model m").engine).toBe("vllm");
    expect(parseCommand("sglang serve m --context-length 8192").model).toBe("m");
    expect(parseCommand("python -m mlx_lm.server --model m").model).toBe("m");
    const modelfile = parseCommand("# mine\nFROM ./m.gguf\nparameter num_ctx 8192\n");
    expect([modelfile.engine, modelfile.model, modelfile.flags[0]!.value]).toEqual(["ollama", "./m.gguf", "8192"]);
  });
});

describe("repairs of texts", () => {
  test("leave every other character of a configuration as it was", () => {
    const config = '{\n    "a": 1.0,\n    "rope_scaling": {"type": "linear",  "factor": 8.0},\n    "b": [1e6 , 2]\n}\n';
    expect(patchText(config, { op: "replace", path: "/rope_scaling/factor", value: 4 })).toBe(
      config.replace("8.0", "4"),
    );
    expect(patchText(config, { op: "remove", path: "/rope_scaling/type" })).toBe(
      config.replace('"type": "linear",  ', ""),
    );
    expect(patchText(config, { op: "remove", path: "/b" })).toBe(config.replace(',\n    "b": [1e6 , 2]', ""));
    expect(patchText(config, { op: "add", path: "/c", value: "x" })).toBe(
      config.replace("2]\n", '2],\n    "c": "x"\n'),
    );
    expect(patchText(config, { op: "add", path: "/b/1", value: 3 })).toBe(config.replace(", 2]", ", 3]"));
    expect(patchText(config, { op: "replace", path: "/none", value: 3 })).toBeNull();
    expect(patchText(config, { op: "add", path: "/none/x", value: 3 })).toBeNull();
    expect(patchText("{}", { op: "add", path: "/a", value: null })).toBe('{"a": null}');
  });

  test("keys with slashes, tildes and quotes are found by their pointers", () => {
    const text = '{"a/b": {"~": 1, "\\"": 2}}';
    expect(patchText(text, { op: "replace", path: "/a~1b/~0", value: 5 })).toBe('{"a/b": {"~": 5, "\\"": 2}}');
    expect(pointerOf("rope_parameters.full_attention.factor")).toBe("/rope_parameters/full_attention/factor");
    expect(pointerOf("layer_types[3]")).toBe("/layer_types/3");
  });

  test("inputs are not changed, and findings without operations are named", () => {
    const config = JSON.stringify({
      model_type: "llama",
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      rope_percent: 1,
    });
    const fixed = applyFixes({ config }, diagnose({ config }).findings);
    expect(fixed.config).toBe(config);
    expect(fixed.skipped).toContain("unread-key");
  });

  test("a flag is replaced where it stands, in the form in which it was written", () => {
    const finding = (operations: readonly object[]) => [{ code: "x", operations } as never];
    const set = [{ op: "set-flag", flag: "--max-model-len", value: "8" }];
    expect(applyFixes({ command: "vllm serve m --max_model_len=4 --x" }, finding(set)).command).toBe(
      "vllm serve m --max_model_len=8 --x",
    );
    expect(applyFixes({ command: "A='b c' vllm serve m" }, finding(set)).command).toBe(
      "A='b c' vllm serve m --max-model-len 8",
    );
    const drop = [{ op: "remove-flag", flag: "--ctx-size" }];
    expect(applyFixes({ command: "llama-server -c 4 -m m" }, finding(drop)).command).toBe("llama-server -m m");
  });
});

test("versions compare by their numbers", () => {
  expect([
    isBefore("0.9.2", "0.11.1"),
    isBefore("0.11.1", "0.11.1"),
    isBefore("0.11.0", "0.11.1"),
    isBefore("5.0.0", "5"),
  ]).toEqual([true, false, true, false]);
});

describe("texts for people", () => {
  test("fit the width in both languages, and say what --fix would repair", async () => {
    for (const record of findingRecords.filter(({ broken }) => broken !== null).slice(0, 40)) {
      const diagnosis = diagnose(await inputOf(record.broken!));
      for (const language of ["en", "zh-TW"] as const) {
        const text = doctorText(diagnosis, { language, width: 72 });
        for (const line of text.split("\n")) {
          // A reference, a pointer or a word without spaces may be longer.
          if (/https:|^(error|warning|note|錯誤|警告|注意) /.test(line) || !line.trim().includes(" ")) continue;
          expect(displayWidth(line), line).toBeLessThanOrEqual(74);
        }
      }
    }
    const text = doctorText(
      diagnose({
        config:
          '{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"rope_scaling":{"rope_type":"linear","factor":"2"},"rope_theta":10000,"max_position_embeddings":64}',
      }),
    );
    expect(text).toContain("--fix repairs 1 of them.");
  });
});

describe("docs/findings", () => {
  test("is what scripts/findings-docs.ts writes", async () => {
    const folder = new URL("docs/findings/", root);
    const pages = await findingsPages();
    expect(readdirSync(folder).sort()).toEqual([...pages.keys()].sort());
    for (const [file, text] of pages) expect(readFileSync(new URL(file, folder), "utf8"), file).toBe(text);
  });

  test.each([
    ["README.md", "en"],
    ["README.zh-TW.md", "zh-TW"],
  ] as const)("%s lists the errors", (file, language) => {
    const text = readFileSync(new URL(file, root), "utf8");
    const from = text.indexOf(markers.begin);
    expect(from).toBeGreaterThan(0);
    expect(text.slice(from + markers.begin.length, text.indexOf(markers.end)).trim()).toBe(readmeList(language));
  });

  test("examples/broken is ten configurations", () => {
    const files = readdirSync(new URL("examples/broken/", root));
    expect(files.filter((file) => file.endsWith(".json"))).toHaveLength(10);
    for (const file of files.filter((one) => one.endsWith(".txt"))) {
      expect(existsSync(new URL(`examples/broken/${file.replace(/txt$/, "json")}`, root))).toBe(true);
    }
  });
});
