// An export as a person reads it in a terminal: what the engine will compute, the memory of its cache, the command.

import { type Palette, plain, wrap } from "../chart/text.ts";
import type { EngineExport, ExportedGroup, ExportVerification } from "./types.ts";

const number = (x: number) => x.toLocaleString("en-US");

/** Lines of at most `width` columns; the commands stand whole, to be copied. */
export function exportText(made: EngineExport, palette: Palette = plain, width = 80): string {
  const columns = Math.max(40, Math.min(width, 120));
  const lines: string[] = [];
  const { bold, dim } = palette;
  lines.push(
    `${bold(made.model)}  ${dim(`${made.scaling} · ${number(made.length)} tokens · for ${made.to} ${made.engine.version}`)}`,
  );
  if (made.trainedLength !== null) lines.push(`trained at ${number(made.trainedLength)} tokens`);
  lines.push("");
  for (const group of made.groups) lines.push(...groupLines(group, made, palette, columns));
  if (made.nearest !== null) {
    lines.push(...wrap(`${made.to} has no words for this. Nearest: ${made.nearest}.`, columns).map(palette.warn));
  }
  const { memory } = made;
  const windowed = memory.groups.filter(({ tokens }) => tokens > 0 && tokens < made.length);
  const kept = windowed.map(({ layers, tokens }) => `${layers.length} layers keep ${number(tokens)} tokens`);
  lines.push(
    ...wrap(
      `Key/value cache: ${bytesText(memory.bytes)} a sequence of ${number(made.length)} tokens, at ${memory.bytesPerNumber} bytes a number` +
        `${kept.length === 0 ? "" : `; ${kept.join(", ")}`}.`,
      columns,
    ),
  );
  for (const note of made.notes) {
    const [first = "", ...rest] = wrap(note, columns - 2);
    lines.push(dim(`· ${first}`), ...rest.map((line) => dim(`  ${line}`)));
  }
  if (made.patch !== null && made.files.some(({ content }) => content === null)) {
    lines.push("", bold("Changes to the file"));
    for (const { key, value } of made.patch.metadata) {
      if (value !== null) lines.push(`  ${key} = ${typeof value === "string" ? JSON.stringify(value) : value}`);
    }
    for (const { name, values } of made.patch.tensors) {
      if (values !== null)
        lines.push(
          `  tensor ${name} = ${values.length} divisors from ${short(Math.min(...values))} to ${short(Math.max(...values))}`,
        );
    }
  }
  if (made.commands.length > 0) {
    lines.push("", bold(made.commands.length === 1 ? "Command" : "Commands"), ...made.commands);
  } else {
    lines.push("", palette.bad(`There is no command: ${made.to} computes nothing of this.`));
  }
  lines.push("", ...wrap(`Read from: ${made.engine.readFrom}.`, columns).map(dim));
  return `${lines.join("\n")}\n`;
}

function groupLines(group: ExportedGroup, made: EngineExport, palette: Palette, columns: number): string[] {
  const where =
    group.layerType ?? (group.layers.length === 1 ? `layer ${group.layers[0]}` : `${group.layers.length} layers`);
  if (group.unsupported !== null) {
    return wrap(`${where}: ${made.to} does not compute this: ${group.unsupported}.`, columns).map(palette.bad);
  }
  const score = group.scoreFactor === 1 ? "" : `, scores × ${short(group.scoreFactor ?? 1, 7)}`;
  if (group.exact) {
    return [`${palette.good("✓")} ${where}: the frequencies asked for${score}`];
  }
  return wrap(
    `✗ ${where}: other frequencies, at most ${percent(group.frequencyDifference ?? 0)} off (pair ${group.frequencyPair})${score}`,
    columns,
  ).map(palette.bad);
}

/** What `--verify` found. */
export function verificationText(verified: ExportVerification, palette: Palette = plain, width = 80): string {
  const columns = Math.max(40, Math.min(width, 120));
  const lines = [palette.bold(`Verified in ${verified.engine}`)];
  lines.push(palette.dim("  mean loss in nats at   ours     theirs   difference   unchanged file"));
  for (const range of verified.ranges) {
    const difference = range.theirs - range.ours;
    const ok = Math.abs(difference) <= verified.tolerance;
    lines.push(
      `  ${`${number(range.from)}–${number(range.to)}`.padEnd(20)} ${range.ours.toFixed(4).padStart(8)} ${range.theirs.toFixed(4).padStart(8)}   ` +
        (ok ? palette.good : palette.bad)(`${difference < 0 ? "" : "+"}${difference.toFixed(4)}`) +
        `      ${range.unchanged.toFixed(4)}`,
    );
  }
  lines.push(
    ...wrap(
      verified.passed
        ? `The two agree to ${verified.tolerance} nats: llama.cpp computes what was asked for.`
        : `The two differ by more than ${verified.tolerance} nats: do not use this export.`,
      columns,
    ).map(verified.passed ? palette.good : palette.bad),
  );
  const last = verified.ranges.at(-1)!;
  if (Math.abs(last.unchanged - last.ours) < verified.tolerance) {
    lines.push(
      ...wrap(
        "The unchanged file gives nearly the same losses here: this text does not tell the two apart.",
        columns,
      ).map(palette.warn),
    );
  }
  return `${lines.join("\n")}\n`;
}

function bytesText(bytes: number): string {
  const [scale, unit] = bytes >= 2 ** 30 ? [2 ** 30, "GiB"] : bytes >= 2 ** 20 ? [2 ** 20, "MiB"] : [2 ** 10, "KiB"];
  return `${Number((bytes / scale).toPrecision(3))} ${unit}`;
}

function percent(share: number): string {
  return `${short(100 * share, 3)} %`;
}

function short(value: number, digits = 4): string {
  return String(Number(value.toPrecision(digits)));
}
