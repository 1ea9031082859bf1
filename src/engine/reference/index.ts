// The reference backend: TypeScript alone, every kernel a plain loop. It defines what the ops mean, and it runs
// wherever JavaScript does; it is for small models and for tests.

import { dtypes, isFloat } from "../../tensor/index.ts";
import type { Backend } from "../backend.ts";
import { bindWeights } from "../binding.ts";
import { statesFor } from "../states.ts";
import { ReferenceSession, weightTensors } from "./session.ts";

/**
 * The reference backend.
 * @example
 * ```ts
 * import { referenceBackend } from "longhand/engine";
 * import { graphBuilder } from "longhand/graph";
 * import { fromNumbers } from "longhand/tensor";
 * const g = graphBuilder("twice");
 * g.output("y", g.multiply(g.input("x", "f32", ["n"]), 2));
 * const session = await referenceBackend.load(g.build());
 * const { y } = await session.run({ x: fromNumbers("f32", [3], [1, 2, 3]) });
 * Array.from(y.data); // => [2, 4, 6]
 * ```
 */
export const referenceBackend: Backend = {
  name: "reference",
  capabilities: {
    device: "javascript",
    computes: dtypes.filter(isFloat),
    fileWeights: true,
    fusedAttention: true,
  },
  async load(graph, weights, options = {}) {
    const sources = bindWeights(graph, weights);
    return new ReferenceSession(graph, await weightTensors(sources), statesFor(graph, options, ReferenceSession));
  },
};
