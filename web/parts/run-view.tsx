// A run as a report shows it: verdict, curves, a row for every strategy, heat maps, what was left out.

import type { JSX } from "preact";
import { readsTo } from "../../src/evaluation/compare/verdict.ts";
import {
  differenceDigits,
  fixed,
  foundOf,
  positionRange,
  shortCount,
  signed,
} from "../../src/evaluation/report/numbers.ts";
import type { RunView } from "../../src/evaluation/report/view.ts";
import type { Difference } from "../../src/evaluation/statistics/paired.ts";
import { whole } from "../shell/numbers.ts";
import { language, words } from "../shell/preferences.ts";
import { HeatMaps } from "./heat-map.tsx";
import { RunCharts } from "./run-charts.tsx";

type CompareSection = Extract<RunView["section"], { kind: "compare" }>;

export function RunShown({ view }: { readonly view: RunView }): JSX.Element {
  const { section, charts } = view;
  return (
    <>
      <Verdict view={view} />
      <RunCharts charts={charts} />
      {section.kind === "compare" ? <Strategies section={section} /> : null}
      {section.kind === "compare" ? <HeatMaps maps={section.needles} /> : null}
      {section.kind === "needle" ? <HeatMaps maps={section.maps} /> : null}
      {section.kind === "compare" ? <Positions section={section} /> : null}
      <LeftOut view={view} />
    </>
  );
}

export function Verdict({ view }: { readonly view: RunView }): JSX.Element | null {
  const said = language.value;
  if (view.verdict.length === 0) return null;
  return (
    <ul class="run-verdict" aria-label={words.value.runs.verdict} data-number="verdict">
      {view.verdict.map((sentence) => (
        <li key={sentence.en} lang={said === "zh-TW" && sentence["zh-TW"] === sentence.en ? "en" : undefined}>
          {sentence[said]}
        </li>
      ))}
    </ul>
  );
}

/** "+0.012 [+0.004, +0.020]"; a tie is called one. */
function differenceText(difference: Difference | null): string {
  if (difference === null) return "–";
  const { mean, low, high, verdict } = difference;
  if (verdict === "tie") return words.value.runs.tie;
  const digits = differenceDigits(mean);
  const interval = low === null || high === null ? "" : ` [${signed(low, digits)}, ${signed(high, digits)}]`;
  return `${signed(mean, digits)}${interval}`;
}

function Strategies({ section }: { readonly section: CompareSection }): JSX.Element | null {
  const text = words.value.runs;
  const { strategies, trainedLength, target } = section.result;
  if (strategies.every(({ windows }) => windows === 0)) return null;
  const lengths = [...new Set(strategies.flatMap(({ passkey }) => passkey.map(({ length }) => length)))];
  return (
    <>
      <h3 class="above">{text.strategies}</h3>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section class="scroll flat" aria-label={text.strategies} tabIndex={0}>
        <table class="run-table">
          <thead>
            <tr>
              <th scope="col" class="name">
                {text.strategy}
              </th>
              <th scope="col">{text.shortCost}</th>
              <th scope="col">{trainedLength !== null && trainedLength < target ? text.beyond : text.mean}</th>
              <th scope="col">{text.againstForgetting}</th>
              <th scope="col">{text.readsTo}</th>
              {lengths.map((length) => (
                <th scope="col" key={length}>
                  {text.passkey(shortCount(length))}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {strategies.map((one) => {
              const reach = trainedLength === null ? null : readsTo(one, trainedLength);
              return (
                <tr key={one.strategy} data-strategy={one.strategy}>
                  <th scope="row">
                    <bdi>{one.strategy}</bdi>
                  </th>
                  <td>{differenceText(one.shortCost)}</td>
                  <td data-number="beyond">{one.beyond === null ? "…" : fixed(one.beyond.mean, 4)}</td>
                  <td>{differenceText(one.againstForgetting)}</td>
                  <td>{reach === null ? "–" : whole(reach)}</td>
                  {lengths.map((length) => {
                    const asked = one.passkey.find((passkey) => passkey.length === length);
                    return <td key={length}>{asked === undefined ? "–" : foundOf(asked.found)}</td>;
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
      <p class="hint">{text.strategiesHint}</p>
    </>
  );
}

function Positions({ section }: { readonly section: CompareSection }): JSX.Element | null {
  const text = words.value.runs;
  const { rows, strategies } = section.result;
  const names = strategies.map(({ strategy }) => strategy).filter((name) => rows.some((row) => row.strategy === name));
  if (names.length === 0) return null;
  const bins = rows.filter(({ strategy }) => strategy === names[0]).map(({ position }) => position);
  return (
    <details class="run-positions">
      <summary>{text.positions}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section class="scroll" aria-label={text.positions} tabIndex={0}>
        <table class="run-table">
          <thead>
            <tr>
              <th scope="col">{text.position}</th>
              {names.map((name) => (
                <th scope="col" key={name}>
                  <bdi>{name}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody data-number="positions">
            {bins.map(([from, to]) => (
              <tr key={from}>
                <th scope="row">{positionRange([from, to])}</th>
                {names.map((name) => {
                  const found = rows.find((row) => row.strategy === name && row.position[0] === from);
                  return <td key={name}>{found === undefined ? "–" : fixed(found.meanNegativeLogLikelihood, 4)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}

function LeftOut({ view }: { readonly view: RunView }): JSX.Element | null {
  const said = language.value;
  if (view.leftOut.length === 0) return null;
  return (
    <details>
      <summary>{words.value.runs.leftOut}</summary>
      <ul class="findings">
        {view.leftOut.map(({ name, why }) => (
          <li key={name}>
            <strong>
              <bdi>{name}</bdi>
            </strong>
            : <span lang={said === "zh-TW" && why["zh-TW"] === why.en ? "en" : undefined}>{why[said]}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
