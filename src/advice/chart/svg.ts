// An inspection as one SVG that stands alone in a report: the same strips of hands as in the terminal, in light and dark.

import type { InspectedGroup, Inspection } from "../inspect.ts";
import { groupPlace, groupTitle, handAxis, hasHands, isScaled, powerLabel, shapeTitle } from "./scale.ts";

const width = 860;
const left = 92;
const right = 24;
const rowHeight = 26;

/** Escapes text for XML. */
function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/**
 * The chart of an inspection as an SVG document.
 *
 * @example
 * ```ts
 * import { inspectModel, inspectionSvg } from "longhand/advice";
 * import { describeHuggingFace } from "longhand/formats";
 * const model = describeHuggingFace({
 *   model_type: "llama", hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32,
 *   max_position_embeddings: 4096, rope_theta: 10000,
 * });
 * inspectionSvg(inspectModel(model)).startsWith("<svg"); // => true
 * ```
 */
export function inspectionSvg(inspection: Inspection): string {
  const { model, trainedLength, targetLength } = inspection;
  const axis = handAxis(inspection);
  const x = (tokens: number) => left + axis.at(tokens) * (width - left - right);
  const number = (n: number) => n.toLocaleString("en-US");
  const body: string[] = [];
  let y = 34;
  const text = (cls: string, at: number, top: number, content: string, anchor = "start") =>
    body.push(
      `<text class="${cls}" x="${at.toFixed(1)}" y="${top.toFixed(1)}" text-anchor="${anchor}">${escapeXml(content)}</text>`,
    );
  text("title", 24, y, model.name);
  y += 20;
  text(
    "note",
    24,
    y,
    [
      `${model.modelType} · ${shapeTitle(model)}`,
      trainedLength === null ? "trained length unknown" : `trained at ${number(trainedLength)} tokens`,
      targetLength === null ? "" : `target ${number(targetLength)}`,
    ]
      .filter(Boolean)
      .join(" · "),
  );
  y += 30;
  for (const group of inspection.groups) {
    text("group", 24, y, groupTitle(group));
    text("note", width - right, y, groupPlace(group, model), "end");
    y += 12;
    if (!hasHands(group)) {
      y += 20;
      continue;
    }
    y = drawGroup(group, y);
  }
  const legend = y + 4;
  if (inspection.groups.some(hasHands)) {
    body.push(`<circle class="seen" cx="${left + 4}" cy="${legend - 4}" r="4"/>`);
    text("note", left + 14, legend, "every angle seen in training");
    body.push(`<circle class="unseen" cx="${left + 214}" cy="${legend - 4}" r="3.5"/>`);
    text("note", left + 224, legend, "reaches unseen angles at the target");
    text("note", width - right, legend, "tokens a hand takes to turn once, log scale", "end");
    y += 22;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="${escapeXml(`Rotary hands of ${model.name}`)}">`,
    `<style>
svg { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6572; --line: #d7dce2; --paper: #ffffff; --seen: #17785a; --unseen: #c2341d; --mark: #5a45c8; font: 13px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --ink: #e8ebef; --soft: #9aa5b1; --line: #3a424c; --paper: #14181d; --seen: #4cc79b; --unseen: #ff8068; --mark: #a79bff; } }
.paper { fill: var(--paper); } text { fill: var(--ink); } .title { font-size: 17px; font-weight: 650; } .group { font-weight: 600; } .note { fill: var(--soft); font-size: 12px; } .tick { fill: var(--soft); font-size: 11px; } .grid { stroke: var(--line); stroke-width: 1; } .trained { stroke: var(--mark); stroke-width: 1.5; } .target { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 4 3; } .mark { fill: var(--mark); font-size: 11px; } .seen { fill: var(--seen); } .unseen { fill: none; stroke: var(--unseen); stroke-width: 1.6; }
</style>`,
    `<rect class="paper" width="${width}" height="${y}"/>`,
    ...body,
    "</svg>\n",
  ].join("\n");

  function drawGroup(group: InspectedGroup, start: number): number {
    const scaled = isScaled(group);
    const rows = scaled ? (["trained", "used"] as const) : (["trained"] as const);
    const top = start + 14;
    const bottom = top + rows.length * rowHeight;
    for (let power = Math.ceil(axis.from); power <= axis.to; power++) {
      const at = x(10 ** power);
      body.push(`<line class="grid" x1="${at.toFixed(1)}" y1="${top}" x2="${at.toFixed(1)}" y2="${bottom}"/>`);
      text("tick", at, bottom + 14, powerLabel(power), "middle");
    }
    const rule = (cls: string, tokens: number, label: string, anchor: string) => {
      const at = x(tokens);
      body.push(`<line class="${cls}" x1="${at.toFixed(1)}" y1="${top - 2}" x2="${at.toFixed(1)}" y2="${bottom}"/>`);
      text("mark", at + (anchor === "start" ? 3 : -3), top - 4, label, anchor);
    };
    if (trainedLength !== null) rule("trained", trainedLength, "trained", "end");
    if (targetLength !== null && targetLength !== trainedLength) rule("target", targetLength, "target", "start");
    rows.forEach((row, index) => {
      const cy = top + (index + 0.5) * rowHeight;
      text("note", left - 12, cy + 4, row === "trained" ? "trained" : "in use", "end");
      let still = 0;
      for (const hand of group.hands) {
        const wavelength = row === "trained" ? hand.trainedWavelength : hand.wavelength;
        if (wavelength === null) {
          still++;
          continue;
        }
        const seen = row === "trained" ? hand.seenUnscaled : hand.seen;
        body.push(
          `<circle class="${seen ? "seen" : "unseen"}" cx="${x(wavelength).toFixed(1)}" cy="${cy.toFixed(1)}" r="${seen ? 4 : 3.5}"><title>hand ${hand.pair}: ${wavelength.toPrecision(6)} tokens a turn, ${hand.turnsInTraining.toPrecision(4)} turns in training, ${hand.turnsAtTarget.toPrecision(4)} at the target</title></circle>`,
        );
      }
      if (still > 0) text("tick", width - right, cy + 4, `+${still} still`, "end");
    });
    return bottom + 42;
  }
}
