// Properties run from a fixed seed, so that a red test means a change and not luck. Other seeds find new cases:
// LONGHAND_SEED=$RANDOM npm test -- test/properties

import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env.LONGHAND_SEED ?? 20261130) });
