// A report as Markdown, for an issue or a README: the verdict, the table of costs and gains, losses by position.

import type { CompareResult } from "../compare/result.ts";
import { readsTo } from "../compare/verdict.ts";
import type { Difference } from "../statistics/paired.ts";
import { reasonInChinese, verdictInChinese } from "./chinese.ts";
import { type Both, both, type Language, visibleText } from "./markup.ts";
import type { CompareSection, NeedleSection, PerplexitySection, Report, TrainSection } from "./model.ts";
import { differenceDigits, fixed, foundOf, grouped, positionRange, signed } from "./numbers.ts";
import { provenanceFacts, sessionFacts } from "./provenance.ts";

export function reportMarkdown({ sections }: Report, language: Language = "en"): string {
  const say = (text: string | Both<string>): string => (typeof text === "string" ? text : text[language]);
  return sections
    .map((section) => {
      const { title, run, complete } = section;
      const lines = [
        `# ${plain(title)}`,
        "",
        ...(complete ? [] : [`**${say(both("Not complete.", "尚未完成。"))}**`, ""]),
        ...(section.kind === "compare"
          ? compareLines(section, language, say)
          : section.kind === "needle"
            ? needleLines(section, say)
            : section.kind === "perplexity"
              ? perplexityLines(section, say)
              : trainLines(section, say)),
        `## ${say(both("Where the numbers come from", "數字的來歷"))}`,
        "",
        ...provenanceFacts(section).map(
          ({ name, values }) => `- ${plain(say(name))}: ${values.map((value) => plain(say(value))).join("; ")}`,
        ),
        ...sessionFacts(run).map((session) => `- ${Object.values(session).map(plain).join("; ")}`),
        "",
      ];
      return lines.join("\n");
    })
    .join("\n");
}

type Say = (text: string | Both<string>) => string;

function compareLines(section: CompareSection, language: Language, say: Say): string[] {
  const { result, verdict, leftOut } = section;
  const chinese = language === "zh-TW";
  return [
    ...verdict.map((sentence) => `- ${plain((chinese ? verdictInChinese(sentence) : null) ?? sentence)}`),
    "",
    ...summaryLines(result, say),
    ...positionLines(result, say),
    ...(leftOut === null || leftOut.length === 0
      ? []
      : [
          `## ${say(both("What was not run, and why", "沒有執行的策略與原因"))}`,
          "",
          ...leftOut.map(
            ({ name, why }) => `- ${plain(name)}: ${plain((chinese ? reasonInChinese(why) : null) ?? why)}`,
          ),
          "",
        ]),
  ];
}

function summaryLines({ strategies, trainedLength, target, forgetting }: CompareResult, say: Say): string[] {
  const beyond = trainedLength !== null && target > trainedLength;
  const measured = strategies.filter((one) => one.beyond !== null);
  if (measured.length === 0) return [];
  const trained = trainedLength === null ? "" : grouped(trainedLength);
  const head = beyond
    ? [
        both("Strategy", "策略"),
        both(`Price within ${trained}`, `${trained} 以內的代價`),
        both(`Beyond ${trained}, against the unscaled model`, `超過 ${trained}：與不縮放的模型比`),
        both(`Beyond ${trained}, against forgetting`, `超過 ${trained}：與直接遺忘比`),
        both("Reads to", "可讀到"),
        both("Passkeys", "通關密語"),
      ]
    : [
        both("Strategy", "策略"),
        both("Loss", "損失"),
        both("Against the unscaled model", "與不縮放的模型比"),
        both("Passkeys", "通關密語"),
      ];
  const rows = measured.map((one) => {
    const passkeys = one.passkey.map(({ length, found }) => `${grouped(length)}: ${foundOf(found)}`).join(", ");
    if (!beyond) return [one.strategy, fixed(one.beyond!.mean, 4), difference(one.againstUnscaled, say), passkeys];
    const to = one.strategy === forgetting ? null : readsTo(one, trainedLength);
    return [
      one.strategy,
      difference(one.shortCost, say),
      difference(one.againstUnscaled, say),
      difference(one.againstForgetting, say),
      to === null ? "–" : grouped(to),
      passkeys,
    ];
  });
  return [...table(head.map(say), rows), ""];
}

function difference(value: Difference | null, say: Say): string {
  if (value === null) return "–";
  const { mean, low, high, verdict } = value;
  if (mean === 0 && (low ?? 0) === 0 && (high ?? 0) === 0) return say(both("0, the same", "0，相同"));
  const digits = differenceDigits(mean);
  const range = low === null || high === null ? "" : ` (${signed(low, digits)} … ${signed(high, digits)})`;
  return `${signed(mean, digits)}${range}${verdict === "tie" ? `, ${say(both("tie", "平手"))}` : ""}`;
}

function positionLines({ rows, strategies }: CompareResult, say: Say): string[] {
  const names = strategies.map(({ strategy }) => strategy).filter((name) => rows.some((row) => row.strategy === name));
  if (names.length === 0) return [];
  const positions = rows.filter(({ strategy }) => strategy === names[0]).map(({ position }) => position);
  const cell = (name: string, from: number): string => {
    const row = rows.find(({ strategy, position }) => strategy === name && position[0] === from);
    return row === undefined ? "" : fixed(row.meanNegativeLogLikelihood, 4);
  };
  return [
    `## ${say(both("Loss by position, nats a token", "各位置的損失（nats／token）"))}`,
    "",
    ...table(
      [say(both("Positions", "位置")), ...names],
      positions.map((position) => [positionRange(position), ...names.map((name) => cell(name, position[0]))]),
    ),
    "",
  ];
}

function needleLines({ strategies }: NeedleSection, say: Say): string[] {
  return [
    ...table(
      [
        both("Strategy", "策略"),
        both("Task", "任務"),
        both("Length", "長度"),
        both("Found", "找到"),
        both("Mean rank", "平均名次"),
      ].map(say),
      strategies.flatMap(({ strategy, tasks }) =>
        tasks.map(({ task, length, cell: { found, meanRank, candidates } }) => [
          strategy,
          task,
          grouped(length),
          foundOf(found),
          `${fixed(meanRank, 1)} / ${candidates}`,
        ]),
      ),
    ),
    "",
  ];
}

function perplexityLines({ results }: PerplexitySection, say: Say): string[] {
  return [
    ...table(
      [
        both("Strategy", "策略"),
        both("Length", "長度"),
        both("Protocol", "協定"),
        both("Perplexity", "困惑度"),
        both("95 % interval", "95 % 區間"),
        both("Bits a byte", "位元／位元組"),
        both("Tokens", "token 數"),
      ].map(say),
      results.map(({ strategy, length, protocol, stride, perplexity, low, high, bitsPerByte, tokens }) => [
        strategy,
        grouped(length),
        protocol === "sliding-window"
          ? say(both(`sliding window, stride ${grouped(stride)}`, `滑動視窗，步距 ${grouped(stride)}`))
          : say(both("non-overlapping", "不重疊")),
        fixed(perplexity, 4),
        low === null || high === null ? "–" : `${fixed(Math.exp(low), 3)} … ${fixed(Math.exp(high), 3)}`,
        bitsPerByte === null ? "–" : fixed(bitsPerByte, 4),
        grouped(tokens),
      ]),
    ),
    "",
  ];
}

function trainLines({ validation, positions, tasks }: TrainSection, say: Say): string[] {
  const loss = both("Loss", "損失");
  return [
    ...table(
      [both("Step", "步"), both("Tokens", "token 數"), loss].map(say),
      validation.map((one) => [grouped(one.step), grouped(one.tokens), fixed(one.loss, 4)]),
    ),
    "",
    ...(positions.length === 0
      ? []
      : [
          ...table(
            [both("Positions", "位置"), loss].map(say),
            positions.map(({ position: [from, to], loss: x }) => [`${grouped(from)}–${grouped(to - 1)}`, fixed(x, 4)]),
          ),
          "",
        ]),
    ...(tasks.length === 0
      ? []
      : [
          ...table(
            [both("Size", "大小"), both("Accuracy", "正確率")].map(say),
            tasks.map(({ size, accuracy }) => [grouped(size), `${fixed(100 * accuracy, 0)} %`]),
          ),
          "",
        ]),
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(plain).join(" | ")} |`;
  return [line(head), `| ${head.map((_, i) => (i === 0 ? "---" : "---:")).join(" | ")} |`, ...rows.map(line)];
}

/** Text that Markdown takes as text: in one line, and nothing in it means anything. */
function plain(text: string): string {
  return visibleText(text)
    .replace(/[\r\n\t]+/g, " ")
    .replace(/[\\`*_{}[\]<>|#!&~]/g, (c) => `\\${c}`);
}
