// The doctor on ten broken configurations, as public bug reports show them: what is wrong, what --fix would change, and
// what is left after that. Run after a build: node examples/01-doctor.mjs [en|zh-TW]

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { diagnose, doctorText, repair } from "longhand/advice";

const language = process.argv[2] === "zh-TW" ? "zh-TW" : "en";
const folder = new URL("broken/", import.meta.url);

for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  const name = file.replace(/\.json$/, "");
  const commandFile = new URL(`${name}.txt`, folder);
  const input = {
    config: readFileSync(new URL(file, folder), "utf8"),
    ...(existsSync(commandFile) ? { command: readFileSync(commandFile, "utf8").trim() } : {}),
  };
  process.stdout.write(doctorText(diagnose(input), { language, name, notes: false }));

  const { applied, diagnosis: after } = repair(input);
  const left = after.findings.filter(({ severity }) => severity !== "note").map(({ code }) => code);
  console.log(
    language === "en"
      ? `--fix: ${applied.join(", ") || "nothing"}; then ${left.join(", ") || "nothing is left"}\n`
      : `--fix：${applied.length === 0 ? "沒有可以修正的" : `修正 ${applied.join("、")}`}；${left.length === 0 ? "之後沒有錯誤或警告" : `之後還有 ${left.join("、")}`}\n`,
  );
}
