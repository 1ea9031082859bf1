// A report as one HTML file that stands alone: no script, font or style from elsewhere, and a policy that lets a browser
// load none. Both languages are in it; a switch of plain CSS shows one. It reads in print, in the dark and on a phone.

import { sha256 } from "../run-folder/sha256.ts";
import { both, inLanguages, type Language, type Markup, markup, trusted } from "./markup.ts";
import type { Report, ReportSection } from "./model.ts";
import { fixed, grouped } from "./numbers.ts";
import { Outline, type PageWriter } from "./page.ts";
import { compareHtml } from "./section-compare.ts";
import { needleHtml } from "./section-needle.ts";
import { perplexityHtml, perplexitySentence } from "./section-perplexity.ts";
import { trainHtml } from "./section-train.ts";
import { pageStyle } from "./style.ts";

export interface ReportHtmlOptions {
  /** Shown at first; the reader's own, where it is one of the two, when absent. */
  readonly language?: Language;
  /** Of the program, for the foot of the page. */
  readonly version?: string;
}

// The reader's language at first, and the document's in `lang`. Without scripts the switch works just so.
const script = `(()=>{const d=document,z=d.getElementById("language-zh"),e=d.getElementById("language-en"),s=()=>{d.documentElement.lang=z.checked?"zh-Hant-TW":"en"};if("auto"in z.dataset&&/^zh\\b/i.test(navigator.language))z.checked=true;z.onchange=e.onchange=s;s()})()`;

/**
 * The report as an HTML document.
 *
 * @example
 * ```ts
 * import { memoryRunFiles, openRun, readRun, reportHtml, reportOf } from "longhand/evaluation";
 * const files = memoryRunFiles("runs/alibi");
 * const recipe = { encoding: ["<b>alibi</b>"], steps: 2, length: 8 };
 * const run = await openRun(files, { kind: "train", identity: { recipe } });
 * await run.append({ key: "train:1", kind: "train", step: 1, tokens: 64, loss: 5.5 });
 * await run.close();
 * const html = reportHtml(reportOf([await readRun(files)]));
 * [html.startsWith("<!doctype html>"), html.includes("<b>")]; // => [true, false]
 * ```
 */
export function reportHtml(report: Report, options: ReportHtmlOptions = {}): string {
  const { language, version } = options;
  const { sections } = report;
  const several = sections.length > 1;
  const page = new Outline(several ? 2 : 1);
  const title = titleOf(sections);
  const chinese = language === "zh-TW";
  const policy = `default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-${base64Of(sha256(script))}'; base-uri 'none'; form-action 'none'`;
  const say = (en: string | Markup, zh: string | Markup): Markup => page.say(en, zh);
  const body = markup`<input type="radio" name="language" id="language-en" class="switch"${chinese ? null : trusted(" checked")} autocomplete="off">
<input type="radio" name="language" id="language-zh" class="switch"${chinese ? trusted(" checked") : null}${language === undefined ? trusted(" data-auto") : null} autocomplete="off">
<div class="bar"><label for="language-en" lang="en">English</label><label for="language-zh" lang="zh-Hant-TW">中文</label></div>
<main>
<header>
<h1>${inLanguages(title, ["en", "zh-TW"])}</h1>
${several ? overview(sections, page) : null}</header>
${sections.map((section, i) => sectionHtml(section, i, several, page))}
</main>
<footer><p>Longhand${version === undefined ? null : ` ${version}`}. ${say(
    "Everything on this page is computed from the rows of the run folder; it loads nothing from elsewhere.",
    "本頁所有數字都由執行資料夾中的資料列算出，不從他處載入任何東西。",
  )}</p></footer>`;
  return markup`<!doctype html>
<html lang="${chinese ? "zh-Hant-TW" : "en"}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title[language ?? "en"]}</title>
<link rel="icon" href="data:,">
<style>${trusted(pageStyle)}</style>
</head>
<body>
${body}
${trusted(`<script>${script}</script>`)}
</body>
</html>
`.markup;
}

function titleOf(sections: readonly ReportSection[]): { en: string; "zh-TW": string } {
  if (sections.length > 1)
    return both(`How far do they read? ${sections.length} runs`, `能讀多遠？${sections.length} 次執行`);
  const { kind, title } = sections[0]!;
  if (kind === "compare") return both(`How far does ${title} read?`, `${title} 能讀多遠？`);
  if (kind === "perplexity") return both(`The perplexity of ${title}`, `${title} 的困惑度`);
  if (kind === "needle") return both(`What does ${title} find in a long text?`, `${title} 在長文中找得到什麼？`);
  return both(`A training: ${title}`, `訓練：${title}`);
}

/** Every run in a line, with a link to its part. */
function overview(sections: readonly ReportSection[], page: PageWriter): Markup {
  const rows = sections.map((section, i) => {
    return markup`
<tr><th scope="row"><a href="#run-${i + 1}"><bdi>${section.title}</bdi></a></th><td>${section.run.manifest.kind}</td><td class="text">${section.complete ? null : markup`<strong>${page.say("Not complete.", "尚未完成。")}</strong> `}${inASentence(section, page)}</td></tr>`;
  });
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="Runs"><table>
<thead><tr><th scope="col">${page.say("Run", "執行")}</th><th scope="col">${page.say("Kind", "種類")}</th><th scope="col">${page.say("In a sentence", "一句話")}</th></tr></thead>
<tbody>${rows}</tbody></table></div>
`;
}

function inASentence(section: ReportSection, page: PageWriter): Markup | null {
  if (section.kind === "compare") {
    const [first] = section.verdict;
    return first === undefined ? null : page.sentence(first);
  }
  if (section.kind === "train") {
    const last = section.validation.at(-1);
    if (last === undefined) return null;
    const [loss, tokens] = [fixed(last.loss, 4), grouped(last.tokens)];
    return page.say(
      `Validation loss ${loss} nats a token after ${tokens} tokens.`,
      `讀過 ${tokens} 個 token 後，驗證損失 ${loss} nats／token。`,
    );
  }
  if (section.kind === "perplexity") return perplexitySentence(section, page);
  const lengths = section.strategies.map(({ strategy, effectiveLengths }) => {
    const { length, atLeast } = effectiveLengths[1]!;
    return markup`<bdi>${strategy}</bdi> ${length === null ? "–" : `${atLeast ? "≥ " : ""}${grouped(length)}`}`;
  });
  const list = markup`${lengths.map((one, i) => markup`${i === 0 ? "" : ", "}${one}`)}`;
  return page.say(markup`Effective length by RULER's threshold: ${list}.`, markup`依 RULER 門檻的有效長度：${list}。`);
}

function sectionHtml(section: ReportSection, index: number, several: boolean, page: Outline): Markup {
  page.startSection(index);
  const heading = several
    ? markup`<h2 id="run-${index + 1}"><bdi>${section.title}</bdi> <small>${section.run.path}</small></h2>`
    : null;
  const body =
    section.kind === "compare"
      ? compareHtml(section, page)
      : section.kind === "needle"
        ? needleHtml(section, page)
        : section.kind === "perplexity"
          ? perplexityHtml(section, page)
          : trainHtml(section, page);
  return markup`<section class="run">
${heading}${body}
</section>`;
}

function base64Of(hex: string): string {
  return btoa(String.fromCharCode(...hex.match(/../g)!.map((byte) => Number.parseInt(byte, 16))));
}
