// The part of a page about a compare: verdict, curves, what each strategy costs and gains, passkeys, what was left out.

import type { CompareResult, CompareRow, StrategySummary } from "../compare/result.ts";
import { readsTo } from "../compare/verdict.ts";
import type { Estimate } from "../statistics/bootstrap.ts";
import type { Difference, Verdict } from "../statistics/paired.ts";
import { curveSample } from "./chart.ts";
import { chartsOf, strategyStyles } from "./curves.ts";
import { heatMaps } from "./heat-map.ts";
import { type Both, both, type Markup, markup, trusted } from "./markup.ts";
import type { CompareSection } from "./model.ts";
import { differenceDigits, fixed, foundOf, grouped, positionRange, signed } from "./numbers.ts";
import type { PageWriter } from "./page.ts";

export function compareHtml(section: CompareSection, page: PageWriter): Markup {
  const { result, verdict, run } = section;
  const charts = chartsOf(section);
  const styles = strategyStyles(result);
  const roles = (name: string): Markup | undefined =>
    name === result.unscaled
      ? page.say("(the model as trained)", "（原本的模型）")
      : name === result.forgetting
        ? page.say("(simply forgetting: only the last tokens)", "（直接遺忘：只看最後一段）")
        : undefined;
  const [lead, ...others] = verdict;
  return markup`<p class="facts-line">${factsLine(result, page)}</p>
${page.incomplete(
  section,
  `${grouped(run.rows.length)} rows so far; ${result.windows} of ${result.plannedWindows} windows have been read under every strategy.`,
  `目前有 ${grouped(run.rows.length)} 列；${result.plannedWindows} 個視窗中有 ${result.windows} 個已由所有策略讀完。`,
)}${page.heading("Verdict", "結論")}${
  lead === undefined
    ? markup`<p>${page.say("Nothing was measured yet.", "還沒有量測結果。")}</p>
`
    : markup`<p class="lead">${page.sentence(lead)}</p>
${
  others.length === 0
    ? null
    : markup`<ul class="verdict">${others.map((one) => markup`<li>${page.sentence(one)}</li>`)}</ul>
`
}`
}${
  charts.length === 0
    ? null
    : markup`${page.heading("Curves", "曲線")}<div class="figures">
${charts.map((chart) => page.figure(chart))}</div>
${page.legend(
  charts[0]!.curves.map(({ name, style }) => {
    const note = roles(name);
    return { name, style, ...(note === undefined ? {} : { note }) };
  }),
)}<p class="note">${page.say(
        "Bands are 95 % intervals over windows; where they are far wider than the curves lie apart, the chart cuts them. Differences are paired on the same tokens; their axis is linear within 0.02 nats of 0 and logarithmic beyond. Rest the pointer on a mark for its numbers; all of them stand in the table below.",
        "色帶是對視窗的 95 % 信賴區間；遠寬於曲線間距時，圖上會截去一部分。差異在相同 token 上成對計算；縱軸在 ±0.02 nats 內為線性，之外為對數。游標停在標記上可看數字，下方表格列出全部數字。",
      )}</p>
`
}${summaryTable(result, styles, page)}${exactTable(result, page)}${
  section.needles.length === 0
    ? null
    : markup`${page.heading("Passkeys, by length and depth", "通關密語（passkey）：長度 × 深度")}${heatMaps(section.needles, page)}`
}${leftOut(section, page)}${page.provenance(section)}`;
}

function factsLine({ trainedLength, target, windows, plannedWindows, bos }: CompareResult, page: PageWriter): Markup {
  const word = plannedWindows === 1 ? "window" : "windows";
  const of = windows === plannedWindows ? `${windows}` : `${windows} / ${plannedWindows}`;
  const trained =
    trainedLength === null
      ? both("trained length unknown", "訓練長度不明")
      : both(`trained at ${grouped(trainedLength)} tokens`, `訓練長度 ${grouped(trainedLength)} 個 token`);
  const parts: Both<string>[] = [
    trained,
    both(`target ${grouped(target)}`, `目標 ${grouped(target)}`),
    both(`${of} ${word}`, `${of} 個視窗`),
    bos === "none" ? both("no BOS", "無 BOS") : both("BOS at the head of each", "每個視窗開頭放 BOS"),
  ];
  return page.say(parts.map(({ en }) => en).join(" · "), parts.map((part) => part["zh-TW"]).join(" · "));
}

const verdictWords: Readonly<Record<Verdict, Both<string>>> = {
  lower: both("better", "較佳"),
  higher: both("worse", "較差"),
  tie: both("tie", "平手"),
  unknown: both("no interval", "無區間"),
};

const verdictClasses: Readonly<Record<Verdict, string>> = { lower: "good", higher: "bad", tie: "tie", unknown: "tie" };

/** A difference, its interval below it, and what it lets one say. */
function differenceCell(value: Difference | null, page: PageWriter): Markup {
  if (value === null) return markup`<td class="number">–</td>`;
  const { mean, low, high, verdict } = value;
  if (isNothing(value)) return markup`<td class="number tie">0 <b>${page.say("the same", "相同")}</b></td>`;
  const digits = differenceDigits(mean);
  const range =
    low === null || high === null ? null : markup`<small>${signed(low, digits)} … ${signed(high, digits)}</small>`;
  return markup`<td class="number ${verdictClasses[verdict]}">${signed(mean, digits)} <b>${page.words(verdictWords[verdict])}</b>${range}</td>`;
}

/** Every token's loss is the same. */
function isNothing({ mean, low, high }: Difference): boolean {
  return mean === 0 && (low ?? 0) === 0 && (high ?? 0) === 0;
}

function estimateCell(value: Pick<Estimate, "mean" | "low" | "high"> | null): Markup {
  if (value === null) return markup`<td class="number">–</td>`;
  const { mean, low, high } = value;
  const range = low === null || high === null ? null : markup`<small>${fixed(low, 3)} … ${fixed(high, 3)}</small>`;
  return markup`<td class="number">${fixed(mean, 3)}${range}</td>`;
}

function summaryTable(result: CompareResult, styles: ReadonlyMap<string, number>, page: PageWriter): Markup {
  const { strategies, trainedLength, target, best } = result;
  const beyond = trainedLength !== null && target > trainedLength;
  const lengths = [...new Set(strategies.flatMap(({ passkey }) => passkey.map(({ length }) => length)))].sort(
    (a, b) => a - b,
  );
  const last = result.rows.at(-1)?.position;
  const trained = trainedLength === null ? "" : grouped(trainedLength);
  const columns: Both<string>[] = beyond
    ? [
        both(`Price within ${trained}`, `${trained} 以內的代價`),
        both(`Gain beyond ${trained}, against the unscaled model`, `超過 ${trained}：與不縮放的模型比`),
        both(`Gain beyond ${trained}, against forgetting`, `超過 ${trained}：與直接遺忘比`),
        both("Against the best", "與最佳者比"),
        ...(last === undefined
          ? []
          : [both(`Loss at the target, ${positionRange(last)}`, `目標處的損失，${positionRange(last)}`)]),
        both("Reads to", "可讀到"),
      ]
    : [
        both("Loss", "損失"),
        both("Against the unscaled model", "與不縮放的模型比"),
        both("Against the best", "與最佳者比"),
      ];
  const head = markup`<tr><th scope="col">${page.say("Strategy", "策略")}</th>${columns.map((column) => markup`<th scope="col">${page.words(column)}</th>`)}${lengths.length === 0 ? null : markup`<th scope="col">${page.say("Passkeys found", "找到的通關密語")}</th>`}</tr>`;
  const body = markup`${strategies.map((one) => {
    const { strategy, shortCost, beyond: loss, againstUnscaled, againstForgetting, againstBest, error } = one;
    const name = markup`<th scope="row">${curveSample(styles.get(strategy) ?? 0)} <bdi>${strategy}</bdi>${strategy === best ? markup` <em>${page.say("best", "最佳")}</em>` : null}</th>`;
    const cells =
      loss === null
        ? markup`<td colspan="${columns.length}" class="text">${error === null ? page.say("not measured yet", "尚未量測") : markup`<bdi>${error}</bdi>`}</td>`
        : beyond
          ? markup`${differenceCell(shortCost, page)}${differenceCell(againstUnscaled, page)}${differenceCell(againstForgetting, page)}${differenceCell(againstBest, page)}${last === undefined ? null : estimateCell(lossAt(result.rows, strategy, last))}${readsCell(one, result, page)}`
          : markup`${estimateCell(loss)}${differenceCell(againstUnscaled, page)}${differenceCell(againstBest, page)}`;
    const found =
      lengths.length === 0
        ? null
        : markup`<td class="number">${one.passkey.map(({ length, found: share }, i) => markup`${i === 0 ? null : trusted("<br>")}${grouped(length)}: ${foundOf(share)}`)}</td>`;
    return markup`
<tr>${name}${cells}${found}</tr>`;
  })}`;
  return markup`${page.heading("What each strategy costs and gains", "各策略的代價與收穫")}${page.table(
    both(
      "Differences in nats a token, below 0 is better; below them their 95 % interval. A tie: the interval holds 0.",
      "差異單位為 nats／token，低於 0 較佳；下方小字是 95 % 信賴區間。平手：區間包含 0。",
    ),
    head,
    body,
    "summary",
  )}${
    beyond
      ? markup`<p class="note">${page.say(
          "Reads to: the longest length up to which the loss is no higher than the strategy's own just within the trained length, and no higher than forgetting's on the same tokens, as far as the intervals tell. ≥ where the longest length tested still passes. Best: the lowest loss beyond the trained length, forgetting aside.",
          "可讀到：在信賴區間能分辨的範圍內，損失不高於該策略自己在訓練長度末端的損失，且在相同 token 上不高於直接遺忘的最長長度。≥ 表示測到的最長長度仍然通過。最佳：除直接遺忘外，超過訓練長度之後損失最低者。",
        )}</p>
`
      : null
  }`;
}

function lossAt(rows: readonly CompareRow[], strategy: string, [from, to]: readonly [number, number]) {
  const row = rows.find(
    ({ strategy: name, position }) => name === strategy && position[0] === from && position[1] === to,
  );
  return row === undefined ? null : { mean: row.meanNegativeLogLikelihood, low: row.low, high: row.high };
}

function readsCell(
  one: StrategySummary,
  { trainedLength, target, forgetting, windows }: CompareResult,
  page: PageWriter,
): Markup {
  // Forgetting reads no length: it looks at its last tokens only. Without an interval nothing tells a length.
  if (one.strategy === forgetting || windows < 2) return markup`<td class="number">–</td>`;
  const to = readsTo(one, trainedLength!);
  if (to === null)
    return markup`<td class="number">${page.say(`under ${grouped(trainedLength!)}`, `不到 ${grouped(trainedLength!)}`)}</td>`;
  return markup`<td class="number">${to >= target ? "≥ " : ""}${grouped(to)}</td>`;
}

/** Every number of every curve, to a millionth of a nat, as the rows hold them. */
function exactTable({ rows, unscaled, forgetting }: CompareResult, page: PageWriter): Markup | null {
  if (rows.length === 0) return null;
  const differences = (name: string | null, get: (row: CompareRow) => Difference | null) =>
    name === null ? null : { name, get };
  const against = [
    differences(unscaled, (row) => row.againstUnscaled),
    differences(forgetting, (row) => row.againstForgetting),
  ].filter((one) => one !== null);
  const number = (x: number | null): Markup => markup`<td class="number">${x === null ? "–" : fixed(x, 6)}</td>`;
  const head = markup`<tr><th scope="col">${page.say("Strategy", "策略")}</th><th scope="col">${page.say("Positions", "位置")}</th><th scope="col">${page.say("Loss", "損失")}</th><th scope="col">${page.say("Low", "下界")}</th><th scope="col">${page.say("High", "上界")}</th><th scope="col">${page.say("Tokens", "token 數")}</th><th scope="col">${page.say("Windows", "視窗數")}</th>${against.map(({ name }) => markup`<th scope="col">− <bdi>${name}</bdi></th><th scope="col">${page.say("Low", "下界")}</th><th scope="col">${page.say("High", "上界")}</th><th scope="col">${page.say("Verdict", "判定")}</th>`)}</tr>`;
  const body = markup`${rows.map(
    (row) => markup`
<tr><th scope="row"><bdi>${row.strategy}</bdi></th><td class="number">${positionRange(row.position)}</td>${number(row.meanNegativeLogLikelihood)}${number(row.low)}${number(row.high)}<td class="number">${grouped(row.tokens)}</td><td class="number">${row.windows}</td>${against.map(
      ({ get }) => {
        const value = get(row);
        if (value === null)
          return markup`<td class="number">–</td><td class="number">–</td><td class="number">–</td><td>–</td>`;
        return markup`${number(value.mean)}${number(value.low)}${number(value.high)}<td>${page.words(verdictWords[value.verdict])}</td>`;
      },
    )}</tr>`,
  )}`;
  return markup`<details><summary>${page.say("All numbers of the curves", "曲線的全部數字")}</summary>
${page.table(both("Loss in nats a token, by strategy and position", "各策略、各位置的損失（nats／token）"), head, body, "exact")}</details>
`;
}

function leftOut({ leftOut: all }: CompareSection, page: PageWriter): Markup | null {
  if (all === null || all.length === 0) return null;
  return markup`${page.heading("What was not run, and why", "沒有執行的策略與原因")}<ul>${all.map(
    ({ name, why }) => markup`
<li><bdi>${name}</bdi>${page.say(": ", "：")}${page.reason(why)}</li>`,
  )}
</ul>
`;
}
