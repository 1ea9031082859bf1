// The loop of the doctor's fuzzing, for the test and the long run.

import { applyFixes } from "../../src/advice/doctor/apply-fixes.ts";
import { diagnose } from "../../src/advice/doctor/diagnose.ts";
import { doctorText } from "../../src/advice/doctor/text.ts";
import { doctorEngines } from "../../src/advice/doctor/types.ts";
import { damaged, damagedCommand, knownConfigurations, randomNumbers } from "./doctor.ts";

/**
 * Diagnoses `runs` damaged inputs, prints them, repairs what can be repaired and diagnoses again.
 *
 * @returns how many had findings, and how many repairs were made; throws on the first unexpected exception, with its run
 */
export function damageAndDiagnose(runs: number, seed: number): { runs: number; findings: number; repaired: number } {
  const known = [...knownConfigurations().values()].map((text) => JSON.parse(text) as unknown);
  const random = randomNumbers(seed);
  let findings = 0;
  let repaired = 0;
  for (let run = 0; run < runs; run++) {
    const config = damaged(known[Math.floor(random() * known.length)], random);
    const command = random() < 0.4 ? damagedCommand(random) : null;
    const engine =
      command === null && random() < 0.5 ? doctorEngines[Math.floor(random() * doctorEngines.length)]! : null;
    const target = random() < 0.5 ? 1 + Math.floor(random() * 2 ** 20) : null;
    let text = JSON.stringify(config);
    if (random() < 0.02) text = text.slice(0, Math.floor(random() * text.length));
    const input = {
      config: text,
      ...(command === null ? {} : { command }),
      ...(engine === null ? {} : { engine }),
      ...(target === null ? {} : { target }),
    };
    try {
      const diagnosis = diagnose(input);
      if (diagnosis.findings.length > 0) findings++;
      doctorText(diagnosis, { language: run % 2 === 0 ? "en" : "zh-TW" });
      JSON.stringify(diagnosis);
      const fixed = applyFixes({ config: text, ...(command === null ? {} : { command }) }, diagnosis.findings);
      if (fixed.applied.length === 0) continue;
      repaired++;
      const { config: newConfig, command: newCommand } = fixed;
      diagnose({
        ...input,
        ...(newConfig === null ? {} : { config: newConfig }),
        ...(newCommand === null ? {} : { command: newCommand }),
      });
    } catch (error) {
      // A quote that does not end is no command.
      if (error instanceof RangeError && /^command: expected/.test(error.message)) continue;
      throw new Error(`run ${run} of seed ${seed}: ${JSON.stringify(input)}`, { cause: error });
    }
  }
  return { runs, findings, repaired };
}
