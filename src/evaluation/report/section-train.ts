// The part of a page about a training: its losses, and how far the model reads afterwards.

import { chartsOf } from "./curves.ts";
import { both, type Markup, markup } from "./markup.ts";
import type { TrainSection } from "./model.ts";
import { fixed, grouped } from "./numbers.ts";
import type { PageWriter } from "./page.ts";

export function trainHtml(section: TrainSection, page: PageWriter): Markup {
  const { training, validation, positions, tasks, steps, length } = section;
  const last = Math.max(0, ...[...training, ...validation].map(({ step }) => step));
  const final = validation.at(-1);
  const charts = chartsOf(section);
  return markup`<p class="facts-line">${page.say(
    `step ${grouped(last)} of ${grouped(steps)} · sequences of ${grouped(length)} tokens`,
    `第 ${grouped(last)}／${grouped(steps)} 步 · 序列長度 ${grouped(length)} 個 token`,
  )}</p>
${page.incomplete(
  section,
  `Step ${grouped(last)} of ${grouped(steps)} was reached.`,
  `到達第 ${grouped(last)} 步，共 ${grouped(steps)} 步。`,
)}${
  final === undefined
    ? null
    : markup`<p class="lead">${page.say(
        `Loss on what was not trained on: ${fixed(final.loss, 4)} nats a token after ${grouped(final.tokens)} tokens.`,
        `未訓練文字的損失：讀過 ${grouped(final.tokens)} 個 token 後為 ${fixed(final.loss, 4)} nats／token。`,
      )}</p>
`
}${
  charts.length === 0
    ? null
    : markup`${page.heading("Losses", "損失")}<div class="figures">
${charts.map((chart) => page.figure(chart))}</div>
`
}${
  validation.length === 0
    ? null
    : markup`<details><summary>${page.say("All validation losses", "全部驗證損失")}</summary>
${page.table(
  both("Validation", "驗證"),
  markup`<tr><th scope="col">${page.say("Step", "步")}</th><th scope="col">${page.say("Tokens", "token 數")}</th><th scope="col">${page.say("Loss", "損失")}</th>${validation.some(({ accuracy }) => accuracy !== null) ? markup`<th scope="col">${page.say("Accuracy", "正確率")}</th>` : null}</tr>`,
  markup`${validation.map(
    ({ step, tokens, loss, accuracy }) => markup`
<tr><th scope="row">${grouped(step)}</th><td class="number">${grouped(tokens)}</td><td class="number">${fixed(loss, 6)}</td>${accuracy === null ? null : markup`<td class="number">${fixed(100 * accuracy, 0)} %</td>`}</tr>`,
  )}`,
)}</details>
`
}${
  positions.length === 0
    ? null
    : page.table(
        both("Loss by position, on what was not trained on", "未訓練文字上各位置的損失"),
        markup`<tr><th scope="col">${page.say("Positions", "位置")}</th><th scope="col">${page.say("Loss", "損失")}</th><th scope="col">${page.say("95 % interval", "95 % 區間")}</th><th scope="col">${page.say("Windows", "視窗數")}</th></tr>`,
        markup`${positions.map(
          ({ position: [from, to], loss, low, high, windows }) => markup`
<tr><th scope="row">${grouped(from)}–${grouped(to - 1)}</th><td class="number">${fixed(loss, 6)}</td><td class="number">${low === null || high === null ? "–" : `${fixed(low, 4)} … ${fixed(high, 4)}`}</td><td class="number">${windows}</td></tr>`,
        )}`,
      )
}${
  tasks.length === 0
    ? null
    : page.table(
        both("Whole examples answered, by size", "整題答對的比例，依大小"),
        markup`<tr><th scope="col">${page.say("Size", "大小")}</th><th scope="col">${page.say("Accuracy", "正確率")}</th><th scope="col">${page.say("Loss", "損失")}</th></tr>`,
        markup`${tasks.map(
          ({ size, accuracy, loss }) => markup`
<tr><th scope="row">${grouped(size)}</th><td class="number">${fixed(100 * accuracy, 0)} %</td><td class="number">${loss === null ? "–" : fixed(loss, 4)}</td></tr>`,
        )}`,
      )
}${page.provenance(section)}`;
}
