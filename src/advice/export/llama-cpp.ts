// llama.cpp by its command line: --rope-scaling, --rope-scale, --rope-freq-base, --yarn-… over what the GGUF says. Read
// in the tree of 12 September 2026 (node-llama-cpp 3.21.1's release v0.4.0): src/llama-context.cpp, src/llama-model.cpp,
// common/arg.cpp.

import { computeDialect, type LlamaCppFlags, ropeDialects } from "../../encodings/rope/dialects/index.ts";
import type { GgufPatch, MetadataChange } from "../../formats/gguf/patch.ts";
import { chooseForm, type Expressed } from "./compare.ts";
import { type Form, formsOf } from "./forms.ts";
import { architectureOf, textClassOf } from "./hugging-face.ts";
import { type ExportNote, exportNote } from "./notes.ts";
import { fixedNote, nearestNote, unsupportedGroup } from "./through-config.ts";
import type { ExportContext, ExportedGroup } from "./types.ts";
import type { Wanted } from "./wanted.ts";
import { digits, shellLine } from "./words.ts";
import type { EngineWords } from "./words-of-engine.ts";

/** Architectures whose sliding layers take base and scale from the file and never from a flag (get_rope_freq_base). */
const flagsMissSliding: ReadonlySet<string> = new Set(
  "afmoe cohere2 gemma2 gemma3 gemma3n gemma4 gemma-embedding llama4 mimo2 modern-bert gpt-oss plamo3 smallthinker".split(
    " ",
  ),
);

export function exportLlamaCpp(context: ExportContext, wanted: readonly Wanted[]): EngineWords {
  const { model, version, called, length } = context;
  const text = textClassOf(model, context.options.config);
  const architecture = architectureOf(model, text);
  const groups: ExportedGroup[] = [];
  const notes: ExportNote[] = [];
  let flags: LlamaCppFlags = {};
  let nearest: ExportNote | null = null;
  // What sees everything chooses the flags; sliding layers get what those do to them.
  const ordered = [...wanted].sort((a, b) => Number(isLocal(a)) - Number(isLocal(b)));
  const common = {
    sequenceLength: length,
    maxModelLen: length,
    ...(text.modelType === null ? {} : { modelType: text.modelType }),
  };
  let first = true;
  for (const one of ordered) {
    const deaf = isLocal(one) && architecture !== null && flagsMissSliding.has(architecture);
    const run = (given: LlamaCppFlags): Expressed<LlamaCppFlags> => ({
      written: given,
      result: computeDialect("llama.cpp", one.own, { ...common, llamaCpp: given }),
      settings: null,
    });
    const express = (form: Form): Expressed<LlamaCppFlags> | null => {
      if (deaf) return run({});
      if (!first) return run(flags);
      const given = flagsFor(form, one);
      return given === null ? null : run(given);
    };
    const { chosen, reason } = chooseForm(one, length, formsOf(one, length), express);
    if (chosen === null) {
      groups.push(unsupportedGroup(one, reason));
      continue;
    }
    groups.push(chosen.group);
    if (first) {
      flags = chosen.written;
      first = false;
    }
    if (!chosen.group.exact) {
      nearest ??= deaf
        ? nearestNote({ name: "as-in-the-file" }, chosen.group, length, String(architecture))
        : nearestNote(chosen.form, chosen.group, length);
    } else if (chosen.form.fixed) notes.push(fixedNote(one, length));
  }
  if (nearest !== null) notes.push(exportNote("flags-fall-short"));
  const arch = architecture ?? "ARCH";
  const claimed = model.maxPositionEmbeddings ?? 0;
  if (model.format !== "gguf") notes.push(exportNote("gguf-not-checkpoint"));
  const file = model.format === "gguf" ? called : "MODEL.gguf";
  const words = [
    "llama-server",
    "-m",
    file,
    "-c",
    String(length),
    ...flagWords(flags),
    // Without it -c is cut to what the file claims (ggml-org/llama.cpp#17459); YaRN's flags lift that since August 2026.
    ...(length > claimed ? ["--override-kv", `${arch}.context_length=int:${length}`] : []),
  ];
  return {
    engine: { version: version ?? "of 12 September 2026", readFrom: ropeDialects["llama.cpp"].engine },
    files: [],
    patch: flagsPatch(arch, flags, claimed, length),
    commands: groups.some(({ unsupported }) => unsupported !== null) ? [] : [shellLine(words)],
    groups,
    nearest,
    notes,
  };
}

function isLocal({ group }: Wanted): boolean {
  return group.slidingWindow !== null;
}

/** Flags that turn what the file says into a form; null where they have none. */
function flagsFor(form: Form, { own }: Wanted): LlamaCppFlags | null {
  const { rope } = form.config;
  const base = rope.ropeTheta === own.rope.ropeTheta ? {} : { ropeFreqBase: rope.ropeTheta };
  if (JSON.stringify(rope) === JSON.stringify(own.rope)) return {};
  switch (rope.ropeType) {
    case "default":
      // What the file has of its own is switched off; its divisors stay.
      return own.rope.ropeType === "default" ? base : { ropeScaling: "none", ...base };
    case "linear":
      return { ropeScaling: "linear", ropeScale: rope.factor, ...base };
    case "yarn":
      if (rope.factor === null) return null;
      return {
        ropeScaling: "yarn",
        ropeScale: rope.factor,
        yarnOrigCtx: rope.originalMaxPositionEmbeddings,
        ...base,
        ...(rope.betaFast ? { yarnBetaFast: rope.betaFast } : {}),
        ...(rope.betaSlow ? { yarnBetaSlow: rope.betaSlow } : {}),
      };
    default:
      return null;
  }
}

/** The metadata that would say the same: the context takes it where no flag is given. */
function flagsPatch(architecture: string, flags: LlamaCppFlags, claimed: number, length: number): GgufPatch {
  const metadata: MetadataChange[] = [];
  const set = (key: string, type: MetadataChange["type"], value: MetadataChange["value"] | undefined): void => {
    if (value !== undefined) metadata.push({ key: `${architecture}.${key}`, type, value });
  };
  if (length > claimed) set("context_length", "u32", length);
  set("rope.scaling.type", "string", flags.ropeScaling);
  set("rope.scaling.factor", "f32", flags.ropeScale);
  set("rope.scaling.original_context_length", "u32", flags.yarnOrigCtx);
  set("rope.freq_base", "f32", flags.ropeFreqBase);
  return { metadata, tensors: [] };
}

const flagNames: { readonly [K in keyof Required<LlamaCppFlags>]: string } = {
  ropeScaling: "--rope-scaling",
  ropeScale: "--rope-scale",
  ropeFreqBase: "--rope-freq-base",
  yarnOrigCtx: "--yarn-orig-ctx",
  yarnExtFactor: "--yarn-ext-factor",
  yarnAttnFactor: "--yarn-attn-factor",
  yarnBetaFast: "--yarn-beta-fast",
  yarnBetaSlow: "--yarn-beta-slow",
};

export function flagWords(flags: LlamaCppFlags): string[] {
  return Object.entries(flagNames).flatMap(([key, name]) => {
    const value = flags[key as keyof LlamaCppFlags];
    return value === undefined ? [] : [name, typeof value === "number" ? digits(value) : value];
  });
}
