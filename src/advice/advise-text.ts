// Advice as a person reads it in a terminal.

import type { Advice, AdvisedOption } from "./advise.ts";
import { type Palette, plain, wrap } from "./chart/text.ts";

const number = (x: number) => x.toLocaleString("en-US");

export function adviceText(advice: Advice, palette: Palette = plain, width = 80): string {
  const columns = Math.max(40, Math.min(width, 120));
  const { bold, dim, good } = palette;
  const trained =
    advice.trainedLength === null ? "trained length unknown" : `trained at ${number(advice.trainedLength)} tokens`;
  const lines = [`${bold(advice.model)}  ${dim(`${trained} · target ${number(advice.target)}`)}`, ""];
  const item = (text: string, mark = "·") => {
    const [first = "", ...rest] = wrap(text, columns - 4);
    lines.push(`  ${mark} ${first}`, ...rest.map((line) => `    ${line}`));
  };
  lines.push(
    advice.recommended === null
      ? palette.bad("No setting can be recommended.")
      : `Use ${good(bold(advice.recommended === "as-is" ? "the file as it is" : advice.recommended))}  ` +
          dim(advice.basis === "measurement" ? "measured on your text" : "from the configuration alone"),
  );
  for (const why of advice.why) item(why);
  const others = advice.options.filter(({ scaling }) => scaling !== "as-is");
  if (others.length > 0) {
    lines.push("", bold("What there is"));
    for (const option of others) {
      lines.push(`  ${(option.scaling ?? "last tokens").padEnd(14)}${dim(figures(option))}`.trimEnd());
      for (const why of option.why) {
        for (const line of wrap(why, columns - 16)) lines.push(`                ${line}`);
      }
    }
  }
  if (advice.basis === "measurement" && others.length > 0 && advice.trainedLength !== null) {
    const trained = number(advice.trainedLength);
    const legend =
      `Short texts: nats a token within ${trained} tokens, against the file as it is. Reads to: the length up to which ` +
      `the loss is no higher than at ${trained}, nor than with the last tokens alone.`;
    lines.push(...wrap(legend, columns - 2).map((line) => dim(`  ${line}`)));
  }
  if (advice.unknown.length > 0) {
    lines.push("", bold("What this does not know"));
    for (const one of advice.unknown) item(one, "?");
  }
  if (advice.next.length > 0) lines.push("", bold("Next"), ...advice.next.map((command) => `  ${command}`));
  return `${lines.join("\n")}\n`;
}

function figures({ unseen, shortCost, readsTo, scaling }: AdvisedOption): string {
  const parts = [];
  if (unseen !== null && scaling !== null)
    parts.push(unseen === 0 ? "no unseen angle" : `${unseen} hands reach unseen angles`);
  if (shortCost !== null) parts.push(`short texts ${signed(shortCost)} nats`);
  if (readsTo !== null) parts.push(`reads to ${number(readsTo)} tokens`);
  return parts.join(" · ");
}

function signed(nats: number): string {
  const text = nats.toFixed(3);
  return Number(text) === 0 ? "0.000" : nats < 0 ? text : `+${text}`;
}
