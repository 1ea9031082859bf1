// The doctor on damaged configurations and command lines: a long run by hand.
//   node --import ./scripts/ts-hook.mjs bench/fuzz-doctor.ts [runs] [seed]

import { damageAndDiagnose } from "../test/support/doctor-fuzz.ts";

const runs = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? 1);
const start = performance.now();
const result = damageAndDiagnose(runs, seed);
const seconds = (performance.now() - start) / 1000;
console.log(`${runs} runs, ${result.findings} with findings, ${result.repaired} repaired, ${seconds.toFixed(1)} s`);
console.log(JSON.stringify({ bench: "fuzz-doctor", seed, ...result, seconds }));
