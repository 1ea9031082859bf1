// What the parts of a page share: headings of the right level, ids that are used once, figures, sentences in both
// languages, the table of where numbers come from.

import { type Chart, chartSvg, curveSample } from "./chart.ts";
import { reasonInChinese, verdictInChinese } from "./chinese.ts";
import { type Both, both, inLanguages, type Language, type Markup, markup, trusted } from "./markup.ts";
import type { ReportSection } from "./model.ts";
import { provenanceFacts, sessionFacts } from "./provenance.ts";

export const languages: readonly Language[] = ["en", "zh-TW"];

export type PageWriter = Outline;

export class Outline {
  readonly #level: number;
  #section = 0;
  #ids = 0;

  /** @param level of the heading above the parts */
  constructor(level: number) {
    this.#level = level;
  }

  startSection(index: number): void {
    this.#section = index;
    this.#ids = 0;
  }

  id(): string {
    this.#ids++;
    return `part-${this.#section + 1}-${this.#ids}`;
  }

  say(en: string | Markup, zh: string | Markup): Markup {
    return inLanguages(both(en, zh), languages);
  }

  words(text: string | Both): Markup {
    return typeof text === "string" ? markup`${text}` : inLanguages(text, languages);
  }

  /** A sentence of the verdict. */
  sentence(english: string): Markup {
    return this.#translated(english, verdictInChinese(english));
  }

  /** Why a strategy was left out. */
  reason(english: string): Markup {
    return this.#translated(english, reasonInChinese(english));
  }

  /** What has no translation stays in English, and says so to who reads it aloud. */
  #translated(english: string, chinese: string | null): Markup {
    return this.say(english, chinese ?? markup`<span lang="en">${english}</span>`);
  }

  heading(en: string, zh: string): Markup {
    const tag = trusted(`h${this.#level + 1}`);
    return markup`<${tag}>${this.say(en, zh)}</${tag}>
`;
  }

  /** A chart with its caption, which names it. */
  figure(chart: Chart): Markup {
    const id = this.id();
    return markup`<figure><figcaption id="${id}">${inLanguages(chart.title, languages)}</figcaption>
${chartSvg(chart, languages, id)}
</figure>
`;
  }

  legend(curves: readonly { readonly name: string; readonly style: number; readonly note?: Markup }[]): Markup {
    return markup`<ul class="legend">${curves.map(({ name, style, note }) => markup`<li>${curveSample(style)} <bdi>${name}</bdi>${note === undefined ? null : markup` ${note}`}</li>`)}</ul>
`;
  }

  /** A table that scrolls by itself where the page is narrow; can be reached by keyboard for that. */
  table(label: Both<string>, head: Markup, body: Markup, cls = ""): Markup {
    const id = this.id();
    return markup`<div class="scroll" tabindex="0" role="region" aria-labelledby="${id}"><table${cls === "" ? null : markup` class="${cls}"`}><caption id="${id}">${inLanguages(label, languages)}</caption>
<thead>${head}</thead>
<tbody>${body}
</tbody></table></div>
`;
  }

  /** A notice that what follows is not the whole. */
  incomplete(section: ReportSection, en: string, zh: string): Markup | null {
    const { shard } = section.run.manifest;
    const part =
      shard === null
        ? null
        : markup` ${this.say(`This folder is part ${shard.index} of ${shard.count}; longhand merge joins them.`, `這個資料夾是第 ${shard.index}／${shard.count} 部分；longhand merge 可合併。`)}`;
    if (section.complete && part === null) return null;
    return markup`<p class="notice" role="note">${section.complete ? null : markup`<strong>${this.say("Not complete.", "尚未完成。")}</strong> ${this.say(en, zh)}`}${part}</p>
`;
  }

  provenance(section: ReportSection): Markup {
    const facts = provenanceFacts(section).map(({ name, values, code }) => {
      const shown = values.map((value) => (code ? markup`<code>${this.words(value)}</code>` : this.words(value)));
      const cell = values.length === 1 ? shown[0]! : markup`<ul>${shown.map((one) => markup`<li>${one}</li>`)}</ul>`;
      return markup`
<tr><th scope="row">${inLanguages(name, languages)}</th><td>${cell}</td></tr>`;
    });
    const sessions = sessionFacts(section.run).map(({ startedAt, command, versions, hardware }) => {
      const lines = [startedAt, markup`<code>${command}</code>`, versions, hardware].filter((text) => text !== "");
      return markup`
<tr><th scope="row">${this.say("Session", "工作階段")}</th><td><ul>${lines.map((text) => markup`<li>${text}</li>`)}</ul></td></tr>`;
    });
    return markup`${this.heading("Where the numbers come from", "數字的來歷")}<table class="facts"><tbody>${facts}${sessions}
</tbody></table>
`;
  }
}
