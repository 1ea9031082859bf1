// Writes docs/findings/: one page a finding of the doctor, in both languages, from its record, with an example that is
// diagnosed as it is written; an index; and the list in the READMEs.
//   node --import ./scripts/ts-hook.mjs scripts/findings-docs.ts

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { diagnose } from "../src/advice/doctor/diagnose.ts";
import { findingRecords } from "../src/advice/doctor/findings/index.ts";
import type { Broken, DoctorFinding, FindingRecord } from "../src/advice/doctor/types.ts";
import type { Severity } from "../src/formats/finding.ts";
import { inputOf } from "../test/support/doctor.ts";

const root = new URL("../", import.meta.url);
const folder = new URL("docs/findings/", root);

const severities: readonly { readonly severity: Severity; readonly en: string; readonly chinese: string }[] = [
  { severity: "error", en: "Errors", chinese: "錯誤" },
  { severity: "warning", en: "Warnings", chinese: "警告" },
  { severity: "note", en: "Notes", chinese: "注意事項" },
];

/** The page's file: "assumed-*" is a family of codes. */
export function fileOf(code: string): string {
  return `${code.replace(/-\*$/, "")}.md`;
}

/** JSON for people: lists of plain values on one line. */
function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/\[[^[\]{}]*\]/g, (list) => {
    const items = JSON.parse(list) as unknown[];
    return `[${items.map((item) => JSON.stringify(item)).join(", ")}]`;
  });
}

function example(broken: Broken): string {
  const parts: string[] = [];
  if (broken.config !== undefined) parts.push(`\`\`\`json\n${pretty(broken.config)}\n\`\`\``);
  if (broken.gguf !== undefined) {
    const lines = broken.gguf.map(([key, type, value]) => `${key} (${type}) = ${JSON.stringify(value)}`);
    parts.push(`\`\`\`text\n${lines.join("\n")}\n\`\`\``);
  }
  if (broken.tensors !== undefined) {
    const lines = Object.entries(broken.tensors).map(([name, shape]) => `tensor ${name} [${shape.join(", ")}]`);
    parts.push(`\`\`\`text\n${lines.join("\n")}\n\`\`\``);
  }
  if (broken.command !== undefined) parts.push(`\`\`\`sh\n${broken.command}\n\`\`\``);
  const asked = [
    ...(broken.engine === undefined ? [] : [`--engine ${broken.engine}`]),
    ...(broken.engineVersion === undefined ? [] : [`--engine-version ${broken.engineVersion}`]),
    ...(broken.target === undefined ? [] : [`--target ${broken.target}`]),
  ];
  if (asked.length > 0) parts.push(`\`longhand doctor … ${asked.join(" ")}\``);
  return parts.join("\n\n");
}

const escaped = (text: string): string => text.replaceAll("<", "&lt;").replaceAll("*", "\\*").replaceAll("|", "\\|");

function repairs({ operations }: DoctorFinding): string {
  return operations
    .map((operation) => {
      if ("path" in operation) {
        const value = operation.op === "remove" ? "" : ` ${JSON.stringify(operation.value)}`;
        return `${operation.op} ${operation.path}${value.length > 160 ? `${value.slice(0, 157)}...` : value}`;
      }
      if (operation.op === "remove-flag") return `${operation.flag} is removed`;
      return operation.op === "set-flag"
        ? `${operation.flag} ${operation.value}`
        : `${operation.name}=${operation.value}`;
    })
    .join("\n");
}

async function page(record: FindingRecord): Promise<string> {
  const { code, severity, engines, title, why, fix, references, broken } = record;
  const about = engines.length === 0 ? "any program" : engines.join(", ");
  const lines = [
    `# ${escaped(code)}`,
    "",
    `**${severity}** · ${about}`,
    "",
    `## ${escaped(title.en)}`,
    "",
    escaped(why.en),
    "",
    escaped(fix.en),
    "",
    `## ${escaped(title["zh-TW"])}`,
    "",
    escaped(why["zh-TW"]),
    "",
    escaped(fix["zh-TW"]),
    "",
    "## References · 參考",
    "",
    ...references.map((reference) => `* <${reference}>`),
  ];
  if (broken !== null) {
    const { findings } = diagnose(await inputOf(broken));
    const found = findings.find(
      (one) => one.code === code || (code.endsWith("*") && one.code.startsWith(code.slice(0, -1))),
    );
    if (found === undefined) throw new Error(`findings-docs: expected the example of ${code} to bring it about`);
    lines.push(
      "",
      "## Example · 例子",
      "",
      example(broken),
      "",
      `\`${found.code}\` at \`${found.where}\`: expected ${escaped(found.expected)}.`,
    );
    const repair = repairs(found);
    if (repair !== "") lines.push("", "`--fix`:", "", "```text", repair, "```");
  }
  return `${lines.join("\n")}\n`;
}

function index(): string {
  const lines = [
    "# What the doctor finds · 診斷項目",
    "",
    "One page a finding, made from its record by `scripts/findings-docs.ts`. 每個項目一頁，由 `scripts/findings-docs.ts` 從原始碼產生。",
  ];
  for (const { severity, en, chinese } of severities) {
    lines.push("", `## ${en} · ${chinese}`, "", "| code | what happened | 發生什麼事 |", "| --- | --- | --- |");
    for (const record of findingRecords.filter((one) => one.severity === severity)) {
      lines.push(
        `| [${escaped(record.code)}](${fileOf(record.code)}) | ${escaped(record.title.en)} | ${escaped(record.title["zh-TW"])} |`,
      );
    }
  }
  return `${lines.join("\n")}\n`;
}

/** Every file of docs/findings by name. */
export async function findingsPages(): Promise<Map<string, string>> {
  const pages = new Map<string, string>([["README.md", index()]]);
  for (const record of findingRecords) pages.set(fileOf(record.code), await page(record));
  return pages;
}

export const markers = {
  begin: "<!-- findings: written by scripts/findings-docs.ts -->",
  end: "<!-- end of findings -->",
};

/** What stands between the markers of a README. */
export function readmeList(language: "en" | "zh-TW"): string {
  const count = (severity: Severity) => findingRecords.filter((one) => one.severity === severity).length;
  const errors = findingRecords
    .filter(({ severity }) => severity === "error")
    .map(({ code }) => `[${code}](docs/findings/${fileOf(code)})`);
  const sentence =
    language === "en"
      ? `${findingRecords.length} findings, each [with its page](docs/findings/README.md): ${count("error")} errors, ${count("warning")} warnings, ${count("note")} notes. The errors:`
      : `共 ${findingRecords.length} 個診斷項目，[各有一頁說明](docs/findings/README.md)：${count("error")} 個錯誤、${count("warning")} 個警告、${count("note")} 則注意事項。錯誤有：`;
  return `${sentence}\n${errors.join(" · ")}`;
}

/** The README with the list as it should be; unchanged without markers. */
export function withList(text: string, language: "en" | "zh-TW"): string {
  const from = text.indexOf(markers.begin);
  const to = text.indexOf(markers.end);
  if (from < 0 || to < from) return text;
  return `${text.slice(0, from + markers.begin.length)}\n${readmeList(language)}\n${text.slice(to)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pages = await findingsPages();
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(folder)) if (!pages.has(file)) rmSync(new URL(file, folder));
  for (const [file, text] of pages) writeFileSync(new URL(file, folder), text);
  for (const [file, language] of [
    ["README.md", "en"],
    ["README.zh-TW.md", "zh-TW"],
  ] as const) {
    const path = new URL(file, root);
    writeFileSync(path, withList(readFileSync(path, "utf8"), language));
  }
  console.log(`${pages.size} pages`);
}
