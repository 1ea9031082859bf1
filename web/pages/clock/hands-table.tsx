// All hands as a table, and as a file for a spreadsheet.

import type { JSX } from "preact";
import { inspectionSvg } from "../../../src/advice/chart/svg.ts";
import { download } from "../../parts/download.ts";
import { exact, short } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { group, inspection, scaledGroup, scaledInspection } from "./state.ts";

export function HandsTable(): JSX.Element {
  const text = words.value.clock;
  const hands = group.value!.hands;
  const over = scaledGroup.value?.hands ?? null;
  return (
    <details class="card">
      <summary>{text.table}</summary>
      <p class="actions">
        <button type="button" onClick={() => download("hands.csv", "text/csv", csv())}>
          {text.csv}
        </button>
        <button
          type="button"
          onClick={() =>
            download("hands.svg", "image/svg+xml", inspectionSvg((scaledInspection.value ?? inspection.value)!))
          }
        >
          {text.svg}
        </button>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <section class="scroll" aria-label={text.table} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{text.pair}</th>
              <th scope="col">{text.wavelength}</th>
              <th scope="col">{text.turnsTrained}</th>
              <th scope="col">{text.turnsTarget}</th>
              <th scope="col">{text.seen}</th>
              {over === null ? null : (
                <>
                  <th scope="col">
                    {text.underStrategy}
                    {words.value.shell.colon}
                    {text.wavelength}
                  </th>
                  <th scope="col">
                    {text.underStrategy}
                    {words.value.shell.colon}
                    {text.seen}
                  </th>
                </>
              )}
            </tr>
          </thead>
          <tbody>
            {hands.map((hand, index) => {
              const scaled = over?.[index];
              return (
                <tr key={hand.pair}>
                  <th scope="row">{hand.pair}</th>
                  <td>{hand.wavelength === null ? text.still : short(hand.wavelength, 8)}</td>
                  <td>{short(hand.turnsInTraining)}</td>
                  <td>{short(hand.turnsAtTarget)}</td>
                  <td class={hand.seen ? "good" : "bad"}>{hand.seen ? text.yes : text.no}</td>
                  {scaled === undefined ? null : (
                    <>
                      <td>{scaled.wavelength === null ? text.still : short(scaled.wavelength, 8)}</td>
                      <td class={scaled.seen ? "good" : "bad"}>{scaled.seen ? text.yes : text.no}</td>
                    </>
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
    </details>
  );
}

/** Names as in `longhand inspect --json`; every digit. */
function csv(): string {
  const { hands, inverseFrequencies } = group.value!;
  const over = scaledGroup.value;
  const columns = ["pair", "inverseFrequency", "wavelength", "turnsInTraining", "turnsAtTarget", "seen"];
  const scaledColumns = ["scaledInverseFrequency", "scaledWavelength", "scaledTurnsAtTarget", "scaledSeen"];
  const lines = [[...columns, ...(over === null ? [] : scaledColumns)].join(",")];
  hands.forEach((hand, index) => {
    const scaled = over?.hands[index];
    const cells = [
      hand.pair,
      inverseFrequencies[index]!,
      hand.wavelength,
      hand.turnsInTraining,
      hand.turnsAtTarget,
      hand.seen,
    ];
    if (scaled !== undefined) {
      cells.push(over!.inverseFrequencies[index]!, scaled.wavelength, scaled.turnsAtTarget, scaled.seen);
    }
    lines.push(
      cells.map((cell) => (cell === null ? "" : typeof cell === "number" ? exact(cell) : String(cell))).join(","),
    );
  });
  return `${lines.join("\n")}\n`;
}
