// The part of a page about needles: what is found by length and depth, by task, and how long a text is really used.

import { heatMaps } from "./heat-map.ts";
import { both, type Markup, markup } from "./markup.ts";
import type { NeedleSection } from "./model.ts";
import { fixed, foundOf, grouped } from "./numbers.ts";
import type { PageWriter } from "./page.ts";

export function needleHtml(section: NeedleSection, page: PageWriter): Markup {
  const { run, maps, strategies } = section;
  return markup`${page.incomplete(
    section,
    `${grouped(run.rows.length)} questions were asked so far.`,
    `目前問了 ${grouped(run.rows.length)} 題。`,
  )}${page.heading("How long a text is used", "真正用到多長的文字")}${lengthsTable(section, page)}${
    maps.length === 0
      ? null
      : markup`${page.heading("Found, by length and depth", "找到的比例：長度 × 深度")}${heatMaps(maps, page)}`
  }${page.heading("By task", "各任務")}${page.table(
    both(
      "Found of asked, with Wilson's 95 % interval, and the mean rank",
      "找到數／詢問數、Wilson 95 % 區間與平均名次",
    ),
    markup`<tr><th scope="col">${page.say("Strategy", "策略")}</th><th scope="col">${page.say("Task", "任務")}</th><th scope="col">${page.say("Length", "長度")}</th><th scope="col">${page.say("Found", "找到")}</th><th scope="col">${page.say("Interval", "區間")}</th><th scope="col">${page.say("Mean rank", "平均名次")}</th></tr>`,
    markup`${strategies.flatMap(({ strategy, tasks }) =>
      tasks.map(
        ({ task, length, cell: { found, meanRank, candidates } }) => markup`
<tr><th scope="row"><bdi>${strategy}</bdi></th><td>${task}</td><td class="number">${grouped(length)}</td><td class="number">${foundOf(found)}</td><td class="number">${fixed(100 * found.low, 0)}–${fixed(100 * found.high, 0)} %</td><td class="number">${fixed(meanRank, 1)} / ${candidates}</td></tr>`,
      ),
    )}`,
  )}${page.provenance(section)}`;
}

function lengthsTable({ strategies }: NeedleSection, page: PageWriter): Markup {
  return page.table(
    both("Effective length, by two definitions", "有效長度，兩種定義"),
    markup`<tr><th scope="col">${page.say("Strategy", "策略")}</th><th scope="col">${page.say("85 % of the shortest length's score", "最短長度分數的 85 %")}</th><th scope="col">${page.say("RULER's threshold, 85.6 %", "RULER 門檻 85.6 %")}</th></tr>`,
    markup`${strategies.map(
      ({ strategy, effectiveLengths }) => markup`
<tr><th scope="row"><bdi>${strategy}</bdi></th>${effectiveLengths.map(
        ({ length, atLeast }) =>
          markup`<td class="number">${length === null ? page.say("none", "無") : `${atLeast ? "≥ " : ""}${grouped(length)}`}</td>`,
      )}</tr>`,
    )}`,
  );
}
