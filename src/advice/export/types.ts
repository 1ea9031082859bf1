// What an export is: files and a command line for one engine, and what that engine will compute from them, layer by
// layer, against what was asked for. Plain data: the JSON of `longhand export`.

import type { GgufPatch } from "../../formats/gguf/patch.ts";
import type { ModelDescription } from "../../formats/model-description.ts";
import type { Strategy } from "../../models/strategy.ts";
import type { ExportNote } from "./notes.ts";

export const exportTargets = ["transformers", "vllm", "sglang", "llama.cpp", "gguf", "mlx", "ollama"] as const;
export type ExportTarget = (typeof exportTargets)[number];

export interface ExportOptions {
  readonly to: ExportTarget;
  /** What to compute; the file's own settings when absent. */
  readonly scaling?: Strategy;
  /** Tokens that the engine is to read; what the scaling reaches, or what the file claims, when absent. */
  readonly length?: number;
  /** Version of the engine, as "4.57.6", "0.10.2", "b9842"; the newest that was read when absent. */
  readonly engineVersion?: string;
  /** The parsed config.json that the description was read from: then whole files are written, else the keys to change. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The text that `config` was parsed from: numbers written as 1.0 stay floats. */
  readonly configText?: string;
  /** What the command line calls the model. */
  readonly model?: string;
  /** The folder that the files will stand in, as the command line names it; "." when absent. */
  readonly folder?: string;
  /** Bytes of one number in the key/value cache; 2 (float16, bfloat16) when absent. */
  readonly cacheBytes?: number;
}

export interface ExportedFile {
  /** Its name, without a folder. */
  readonly path: string;
  /** null for a file that is made from another one: a patched GGUF, whose changes are `patch`. */
  readonly content: string | null;
}

/** What an engine makes of one group of layers. */
export interface ExportedGroup {
  readonly layers: readonly number[];
  readonly layerType?: string;
  /** The settings that were written, as rope_parameters of transformers 5; null where the group keeps the file's. */
  readonly written: Readonly<Record<string, unknown>> | null;
  /** Why nothing is computed; null when it computes. */
  readonly unsupported: ExportNote | null;
  /** Whether frequencies and scores are those asked for, to a millionth. */
  readonly exact: boolean;
  /** Largest |ω − ω'| / max(ω, ω') over the pairs, and the pair; null when nothing is computed. */
  readonly frequencyDifference: number | null;
  readonly frequencyPair: number | null;
  /** Largest difference of angles at position length − 1, in radians, not reduced; null when nothing is computed. */
  readonly angleDifference: number | null;
  readonly anglePair: number | null;
  /** What scores are multiplied by, attention factor squared times softmax factor: computed, and asked for. */
  readonly scoreFactor: number | null;
  readonly askedScoreFactor: number;
  readonly inverseFrequencies: readonly number[];
  readonly attentionFactor: number | null;
  readonly notes: readonly ExportNote[];
}

/** Memory of keys and values for one sequence. */
export interface CacheMemory {
  readonly bytesPerNumber: number;
  readonly groups: readonly {
    readonly layers: readonly number[];
    readonly layerType?: string;
    /** Tokens that a layer keeps: the length, or its window. */
    readonly tokens: number;
    readonly bytes: number;
  }[];
  readonly bytes: number;
}

/** How llama.cpp's losses compare with ours; what `--verify` adds. */
export interface ExportVerification {
  readonly passed: boolean;
  readonly engine: string;
  /** Nats: the largest difference of the two means over a range that is let pass. */
  readonly tolerance: number;
  readonly ranges: readonly {
    /** Positions of the predicted tokens. */
    readonly from: number;
    readonly to: number;
    readonly tokens: number;
    /** Mean losses in nats. */
    readonly ours: number;
    readonly theirs: number;
    /** Of a single token. */
    readonly largestDifference: number;
    /** Mean loss of ours under the file's own settings: what theirs would be near if nothing had changed. */
    readonly unchanged: number;
  }[];
}

export interface EngineExport {
  readonly to: ExportTarget;
  /** The engine and version that the export is for, and whose source was read. */
  readonly engine: { readonly version: string; readonly readFrom: string };
  readonly model: string;
  readonly scaling: string;
  readonly length: number;
  readonly trainedLength: number | null;
  readonly files: readonly ExportedFile[];
  /** Of a GGUF: of the patched copy, or what llama.cpp's flags amount to in metadata. */
  readonly patch: GgufPatch | null;
  /** Of config.json, where one is written: a JSON merge patch (RFC 7386), null for a key that goes; null without one. */
  readonly changes: Readonly<Record<string, unknown>> | null;
  /** To type, one after the other; the last starts the engine. */
  readonly commands: readonly string[];
  /** The last of `commands`. */
  readonly command: string;
  /** Whether every group computes what was asked for. */
  readonly exact: boolean;
  /** What is offered in place of a setting that the engine has no words for; null when it has. */
  readonly nearest: ExportNote | null;
  readonly groups: readonly ExportedGroup[];
  readonly memory: CacheMemory;
  /** What to know. */
  readonly notes: readonly ExportNote[];
  /** null until it is executed. */
  readonly verified: ExportVerification | null;
}

/** What every engine's file gets. */
export interface ExportContext {
  readonly model: ModelDescription;
  readonly options: ExportOptions;
  readonly version: string | null;
  readonly length: number;
  readonly folder: string;
  /** What the command line calls the model. */
  readonly called: string;
}
