// An export as a person reads it in a terminal: what the engine will compute, the memory of its cache, the command.

import { type Palette, plain, wrap } from "../chart/text.ts";
import type { EngineExport, ExportedGroup, ExportTarget, ExportVerification } from "./types.ts";
import { configJson } from "./words.ts";

const number = (x: number) => x.toLocaleString("en-US");

const engineNames: { readonly [T in ExportTarget]: string } = {
  transformers: "transformers",
  vllm: "vLLM",
  sglang: "SGLang",
  "llama.cpp": "llama.cpp",
  gguf: "a GGUF",
  mlx: "mlx-lm",
  ollama: "Ollama",
};

/** Lines of at most `width` columns; the commands stand whole, to be copied. */
export function exportText(made: EngineExport, palette: Palette = plain, width = 80): string {
  const columns = Math.max(40, Math.min(width, 120));
  const lines: string[] = [];
  const { bold, dim } = palette;
  lines.push(
    `${bold(made.model)}  ${dim(`${scalingText(made)} · ${number(made.length)} tokens · for ${versionText(made)}`)}`,
  );
  if (made.trainedLength !== null) lines.push(`trained at ${number(made.trainedLength)} tokens`);
  lines.push("");
  for (const group of made.groups) lines.push(...groupLines(group, made, palette, columns));
  if (made.nearest !== null) {
    lines.push(
      ...wrap(`${engineNames[made.to]} has no words for this. Nearest: ${made.nearest.message}.`, columns).map(
        palette.warn,
      ),
    );
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
    const [first = "", ...rest] = wrap(note.message, columns - 2);
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
  if (made.changes !== null) {
    lines.push("", bold("Changes to config.json"), ...changeLines(made.changes));
  }
  if (made.commands.length > 0) {
    lines.push("", bold(made.commands.length === 1 ? "Command" : "Commands"), ...made.commands);
  } else {
    lines.push("", palette.bad(`There is no command: ${made.to} computes nothing of this.`));
  }
  lines.push("", ...wrap(`What it computes is known from the source of ${made.engine.readFrom}.`, columns).map(dim));
  return `${lines.join("\n")}\n`;
}

function groupLines(group: ExportedGroup, made: EngineExport, palette: Palette, columns: number): string[] {
  const where =
    group.layerType ?? (group.layers.length === 1 ? `layer ${group.layers[0]}` : `${group.layers.length} layers`);
  if (group.unsupported !== null) {
    return wrap(`${where}: ${made.to} does not compute this: ${group.unsupported}.`, columns).map(palette.bad);
  }
  const score = group.scoreFactor === 1 ? "" : `, attention scores × ${short(group.scoreFactor ?? 1, 7)}`;
  if (group.exact) {
    const [first = "", ...rest] = wrap(`${where}: exactly ${askedText(made)}${score}`, columns - 2);
    return [`${palette.good("✓")} ${first}`, ...rest.map((line) => `  ${line}`)];
  }
  return wrap(
    `✗ ${where}: other frequencies, at most ${percent(group.frequencyDifference ?? 0)} off (pair ${group.frequencyPair})${score}`,
    columns,
  ).map(palette.bad);
}

function versionText({ to, engine: { version } }: EngineExport): string {
  if (version === "any") return engineNames[to];
  return to === "gguf" ? `a GGUF, as llama.cpp ${version} reads it` : `${engineNames[to]} ${version}`;
}

/** The scaling in a line: a dictionary by its type. */
function scalingText({ scaling }: EngineExport): string {
  if (scaling === "as-is") return "the file's own scaling";
  if (!scaling.startsWith("{")) return scaling;
  const { rope_type, type } = JSON.parse(scaling) as Record<string, unknown>;
  const named = rope_type ?? type;
  return typeof named === "string" ? named : "the scaling given";
}

function askedText(made: EngineExport): string {
  if (made.scaling === "as-is") return "the frequencies of the file";
  // Of several groups, some may keep what the file says.
  return made.scaling.startsWith("{") || made.groups.length > 1
    ? "the frequencies asked for"
    : `the frequencies of ${made.scaling}`;
}

/** One line a key; a part of the file, as text_config, by its path. */
function changeLines(changes: Readonly<Record<string, unknown>>, path = ""): string[] {
  return Object.entries(changes).flatMap(([key, value]) => {
    const rotary = key === "rope_parameters" || key === "rope_scaling";
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !rotary) {
      return changeLines(value as Record<string, unknown>, `${path}${key}.`);
    }
    if (value === null) return [`  ${path}${key} is removed`];
    // Lists of longrope are as long as a head has pairs.
    const text = configJson({ [key]: value }).slice(`{"${key}": `.length, -1);
    return [
      `  ${path}${key} = ${text.replace(/\[([^[\]]{80,})\]/g, (_, list: string) => `[${list.split(",").length} numbers]`)}`,
    ];
  });
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
