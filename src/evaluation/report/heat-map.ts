// What was found, by length and depth: a table for each strategy whose cells are coloured by the share found. The numbers
// stand in the cells, so that it reads without colour and aloud.

import { type Markup, markup } from "./markup.ts";
import type { NeedleCell, NeedleMap } from "./model.ts";
import { fixed, foundOf, grouped } from "./numbers.ts";
import type { PageWriter } from "./page.ts";

export function heatMaps(maps: readonly NeedleMap[], page: PageWriter): Markup {
  return markup`<div class="heat-maps">
${maps.map((map) => heatMap(map, page))}</div>
<p class="note">${page.say(
    "Found of asked, by teacher-forced exact match: every token of the answer is the likeliest, given those before it. Below it the mean rank of the right answer among the candidates (1 is best). Depth: how far into the text the needle lies.",
    "找到數／詢問數，以「給定前文，答案的每個 token 都是機率最高」判定。下方是正確答案在候選中的平均名次（1 最佳）。深度：針放在文字中的多深處。",
  )}</p>
`;
}

function heatMap({ strategy, lengths, depths, cells }: NeedleMap, page: PageWriter): Markup {
  return markup`<div class="scroll heat" tabindex="0" role="region" aria-label="${strategy}"><table><caption><bdi>${strategy}</bdi></caption>
<thead><tr><th scope="col">${page.say("depth", "深度")}</th>${lengths.map((length) => markup`<th scope="col">${grouped(length)}</th>`)}</tr></thead>
<tbody>${depths.map(
    (depth, i) => markup`
<tr><th scope="row">${fixed(100 * depth, Number.isInteger(100 * depth) ? 0 : 1)} %</th>${cells[i]!.map(cell)}</tr>`,
  )}
</tbody></table></div>
`;
}

function cell(one: NeedleCell | null): Markup {
  if (one === null) return markup`<td>–</td>`;
  const { found, meanRank, candidates } = one;
  return markup`<td class="h${Math.round(10 * found.proportion)}">${foundOf(found)}<small>${fixed(meanRank, 1)} / ${candidates}</small></td>`;
}
