// Where a run's numbers come from: everything in its identity, and every session that wrote rows. What this version has no
// words for is shown as it is, so that nothing is left out.

import { isRecord, type Json, type JsonRecord } from "../run-folder/json.ts";
import { type Both, both } from "./markup.ts";
import type { ReportRun, ReportSection } from "./model.ts";
import { grouped } from "./numbers.ts";
import { settingName } from "./setting-names.ts";

export interface Fact {
  readonly name: Both<string>;
  readonly values: readonly (string | Both<string>)[];
  /** Hashes, commands, JSON. */
  readonly code?: true;
}

export function provenanceFacts(section: ReportSection): Fact[] {
  const { run } = section;
  const { identity, identityHash, shard, kind } = run.manifest;
  const facts: Fact[] = [
    { name: both("Run folder", "執行資料夾"), values: [run.path], code: true },
    { name: both("Kind", "種類"), values: [`longhand ${kind}`] },
    {
      name: both("Identity (SHA-256 of all that the rows depend on)", "身分（所有影響結果之設定的 SHA-256）"),
      values: [identityHash],
      code: true,
    },
  ];
  if (shard !== null) {
    facts.push({ name: both("Part", "分割"), values: [`${shard.index} / ${shard.count}`] });
  }
  facts.push(...protocolFacts(section));
  for (const [key, value] of Object.entries(identity)) {
    if (!toldElsewhere.has(key)) facts.push(identityFact(key, value));
  }
  return facts;
}

/** Keys whose meaning stands in other places of a report. */
const toldElsewhere = new Set(["leftOut"]);

function identityFact(key: string, value: Json): Fact {
  const name = settingName(key) ?? both(key, key);
  if (key === "files" && isRecord(value)) {
    return { name, values: Object.entries(value).map(([file, hash]) => `${file}: ${plain(hash)}`), code: true };
  }
  if (key === "texts" && Array.isArray(value)) {
    return { name, values: value.map((text) => (isRecord(text) ? textOf(text) : plain(text as Json))), code: true };
  }
  if (key === "windows" && Array.isArray(value)) {
    const places = value.map((one) => (isRecord(one) ? `${plain(one.text)}: ${plain(one.start)}` : plain(one as Json)));
    return { name, values: [places.join(" · ")], code: true };
  }
  if ((key === "strategies" || key === "endpoints") && Array.isArray(value)) {
    return { name, values: value.map((one) => plain(one as Json)), code: true };
  }
  if (isRecord(value)) {
    return { name, values: Object.entries(value).map(([inner, x]) => `${inner}: ${plain(x)}`), code: true };
  }
  return { name, values: [plain(value)], code: true };
}

function textOf({ name, sha256, tokens, ...more }: JsonRecord): string {
  const rest = Object.keys(more).length === 0 ? "" : ` ${plain(more)}`;
  return `${plain(name)}: ${plain(sha256)}${typeof tokens === "number" ? `, ${grouped(tokens)}` : ""}${rest}`;
}

function plain(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** How it was measured, in words. */
function protocolFacts(section: ReportSection): Fact[] {
  if (section.kind !== "compare") return [];
  const { target, bos, plannedWindows, strategies, trainedLength } = section.result;
  const id = section.run.manifest.identity.bos as number | null;
  const method = strategies.map(({ beyond }) => beyond?.method ?? null).find((one) => one !== null);
  const own = (section.run.manifest.identity.strategies as readonly JsonRecord[])
    .filter((one) => one.short === "own-passes")
    .map((one) => String(one.name));
  const facts: Fact[] = [
    {
      name: both("Protocol", "協定"),
      values: [
        both(
          `Non-overlapping windows of ${grouped(target)} tokens (${plannedWindows} planned); every strategy reads the same ones. Each token is predicted once, from all those before it in its window; the windowed baseline sees its last tokens only. Bins of positions are logarithmic, two an octave, with an edge at the trained length; finer beyond it where the target is near.`,
          `${grouped(target)} 個 token 的不重疊視窗（計畫 ${plannedWindows} 個），所有策略讀相同的視窗。每個 token 只預測一次，依據是視窗中在它之前的所有 token；「只看最後一段」的基準只看最後幾個。位置以對數分組，每倍兩組，訓練長度是邊界；目標離訓練長度很近時，超過的部分分得更細。`,
        ),
      ],
    },
    {
      name: both("BOS rule", "BOS 規則"),
      values: [
        bos === "none"
          ? both("No BOS in the windows.", "視窗中不放 BOS。")
          : both(
              `BOS (token ${id}) at the head of every window; it counts as a position and is never predicted.`,
              `每個視窗開頭都放 BOS（token ${id}）；它佔一個位置，但不預測它。`,
            ),
      ],
    },
    {
      name: both("Intervals", "區間"),
      values: [
        method === "percentile-bootstrap"
          ? both(
              "95 %, by percentile bootstrap over windows (4,000 resamples, widened as Student's t would be); differences are paired on the same tokens.",
              "95 % 信賴區間，對視窗做百分位拔靴法（重抽 4,000 次，並依 Student t 加寬）；差異在相同 token 上成對計算。",
            )
          : method === "student-t"
            ? both(
                "95 %, Student's t over windows (fewer than 16 of them); differences are paired on the same tokens.",
                "95 % 信賴區間，對視窗用 Student t（視窗少於 16 個）；差異在相同 token 上成對計算。",
              )
            : both("None: one window gives no interval.", "沒有：只有一個視窗無法計算區間。"),
      ],
    },
  ];
  if (trainedLength !== null && trainedLength < target) {
    facts.push({
      name: both("Loss at short length", "短長度的損失"),
      values: [
        own.length === 0
          ? both(
              `Of the first ${grouped(trainedLength)} tokens of the same windows.`,
              `相同視窗的前 ${grouped(trainedLength)} 個 token。`,
            )
          : both(
              `Of the first ${grouped(trainedLength)} tokens of the same windows; as sequences of their own for ${own.join(", ")}, whose tables depend on the sequence's length.`,
              `相同視窗的前 ${grouped(trainedLength)} 個 token；${own.join("、")} 的表取決於序列長度，因此另外當作獨立序列計算。`,
            ),
      ],
    });
  }
  return facts;
}

export interface SessionFacts {
  readonly startedAt: string;
  readonly command: string;
  readonly versions: string;
  readonly hardware: string;
}

export function sessionFacts({ manifest }: ReportRun): SessionFacts[] {
  const sessions: readonly unknown[] = Array.isArray(manifest.sessions) ? manifest.sessions : [];
  return sessions.filter(isRecord).map((session) => ({
    startedAt: plain(session.startedAt),
    command: Array.isArray(session.command) ? session.command.map((word) => quoted(String(word))).join(" ") : "–",
    versions: pairs(session.versions),
    hardware: pairs(session.hardware),
  }));
}

function pairs(value: Json | undefined): string {
  if (!isRecord(value)) return plain(value);
  return Object.entries(value)
    .map(([key, x]) =>
      key === "memoryBytes" && typeof x === "number" ? `memory: ${(x / 1e9).toFixed(1)} GB` : `${key}: ${plain(x)}`,
    )
    .join(", ");
}

/** A word as a POSIX shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
