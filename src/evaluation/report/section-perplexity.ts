// The part of a page about perplexity: a curve over the lengths, and a table that names its protocol.

import { chartsOf } from "./curves.ts";
import { both, type Markup, markup } from "./markup.ts";
import type { PerplexitySection } from "./model.ts";
import { fixed, grouped } from "./numbers.ts";
import type { PageWriter } from "./page.ts";

export function perplexityHtml(section: PerplexitySection, page: PageWriter): Markup {
  const { run, results } = section;
  const charts = chartsOf(section);
  const slides = results.some(({ protocol }) => protocol === "sliding-window");
  return markup`${page.incomplete(
    section,
    `${grouped(run.rows.length)} windows were read so far.`,
    `目前讀了 ${grouped(run.rows.length)} 個視窗。`,
  )}<p class="lead">${perplexitySentence(section, page)}</p>
<p class="note">${
    slides
      ? page.say(
          "Windows slide: of each only what the one before did not score counts, so that every token sees much before it.",
          "滑動視窗：每個視窗只計入前一個視窗沒算過的 token，因此每個 token 前面都看得到夠多文字。",
        )
      : page.say(
          "Windows lie side by side: the first tokens of each see little, which raises the loss at every length.",
          "視窗首尾相接、互不重疊：每個視窗開頭的 token 前面看得到的很少，任何長度的損失都因此偏高。",
        )
  }</p>
${
  charts.length === 0
    ? null
    : markup`${page.heading("Curve", "曲線")}<div class="figures">
${charts.map((chart) => page.figure(chart))}</div>
`
}${page.heading("Perplexity", "困惑度")}${page.table(
  both(
    "Of all scored tokens, each counted once, with the 95 % interval over windows",
    "所有計分的 token 各計一次，附對視窗的 95 % 區間",
  ),
  markup`<tr><th scope="col">${page.say("Strategy", "策略")}</th><th scope="col">${page.say("Length", "長度")}</th><th scope="col">${page.say("Protocol", "協定")}</th><th scope="col">${page.say("Perplexity", "困惑度")}</th><th scope="col">${page.say("95 % interval", "95 % 區間")}</th><th scope="col">${page.say("Nats a token", "nats／token")}</th><th scope="col">${page.say("Bits a byte", "位元／位元組")}</th><th scope="col">${page.say("Tokens", "token 數")}</th><th scope="col">${page.say("Windows", "視窗數")}</th></tr>`,
  markup`${results.map(
    ({ strategy, length, protocol, stride, perplexity, mean, low, high, bitsPerByte, tokens, windows }) => markup`
<tr><th scope="row"><bdi>${strategy}</bdi></th><td class="number">${grouped(length)}</td><td>${
      protocol === "sliding-window"
        ? page.say(`sliding window, stride ${grouped(stride)}`, `滑動視窗，步距 ${grouped(stride)}`)
        : page.say("non-overlapping", "不重疊")
    }</td><td class="number">${fixed(perplexity, 4)}</td><td class="number">${low === null || high === null ? "–" : `${fixed(Math.exp(low), 3)} … ${fixed(Math.exp(high), 3)}`}</td><td class="number">${fixed(mean, 6)}</td><td class="number">${bitsPerByte === null ? "–" : fixed(bitsPerByte, 4)}</td><td class="number">${grouped(tokens)}</td><td class="number">${grouped(windows)}</td></tr>`,
  )}`,
)}${page.provenance(section)}`;
}

/** The lowest perplexity, and whose; null while nothing was measured. */
export function perplexitySentence({ results }: PerplexitySection, page: PageWriter): Markup | null {
  const best = [...results].sort((a, b) => a.perplexity - b.perplexity)[0];
  if (best === undefined) return null;
  const { strategy, length, perplexity } = best;
  const [value, tokens] = [fixed(perplexity, 3), grouped(length)];
  const among = results.length > 1;
  return page.say(
    markup`Perplexity ${value} in windows of ${tokens} tokens under <bdi>${strategy}</bdi>${among ? ", the lowest here" : ""}.`,
    markup`${among ? "最低" : ""}困惑度 ${value}：<bdi>${strategy}</bdi>，視窗 ${tokens} 個 token。`,
  );
}
