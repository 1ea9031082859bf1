// What a checkpoint has learned about positions: rows of a table, and biases by distance. Read once, when a model is
// loaded; the graph is fed with them, so they are no parameters of it.

import { type FireOptions, fire } from "../encodings/fire.ts";
import { kerple } from "../encodings/kerple.ts";
import type { AttentionBiasEncoding } from "../encodings/position-encoding.ts";
import { t5RelativeBias } from "../encodings/t5-relative-bias.ts";
import type { Checkpoint } from "./checkpoint.ts";

export interface LearnedPositions {
  /** Of a learned table, [N, E]; null without one. */
  readonly rows: Float32Array | null;
  /** By index of the description's group. */
  readonly biases: Readonly<Record<number, AttentionBiasEncoding>>;
  /** The weights that were read. */
  readonly weights: readonly string[];
}

/**
 * Reads what a decoder has learned about positions. The numbers of a group's bias stand in its first layer.
 *
 * @throws as `Checkpoint.readFloat32`; RangeError for numbers that are no kernel (KERPLE's r1 below 0)
 */
export async function readLearnedPositions(checkpoint: Checkpoint): Promise<LearnedPositions> {
  const weights: string[] = [];
  const read = (name: string, shape: readonly number[]): Promise<Float32Array> => {
    weights.push(name);
    return checkpoint.readFloat32(name, shape);
  };
  let rows: Float32Array | null = null;
  const biases: Record<number, AttentionBiasEncoding> = {};
  for (const [index, { position, layers }] of checkpoint.spec.groups.entries()) {
    const own = (name: string, shape: readonly number[]): Promise<Float32Array> =>
      read(`layers.${layers[0]}.${name}`, shape);
    switch (position.kind) {
      case "learned":
        rows ??= await read("positions.weight", [position.numPositions + position.offset, position.hiddenSize]);
        break;
      case "t5": {
        const { numHeads, numBuckets, maxDistance, bidirectional } = position;
        const table = await own("relativeBias.weight", [numBuckets, numHeads]);
        biases[index] = t5RelativeBias({ numHeads, numBuckets, maxDistance, bidirectional, weights: table });
        break;
      }
      case "kerple": {
        const { numHeads, variant } = position;
        const r1 = await own("kerple.r1", [numHeads]);
        biases[index] = kerple({ kind: variant, r1, r2: await own("kerple.r2", [numHeads]) });
        break;
      }
      case "fire": {
        const { numHeads, hiddenUnits } = position;
        const layer = async (at: number, outputs: number, inputs: number): Promise<FireOptions["layers"][number]> => ({
          weight: await own(`fire.layers.${at}.weight`, [outputs, inputs]),
          bias: await own(`fire.layers.${at}.bias`, [outputs]),
        });
        biases[index] = fire({
          layers: [await layer(0, hiddenUnits, 1), await layer(1, numHeads, hiddenUnits)],
          c: (await own("fire.c", []))[0]!,
          threshold: (await own("fire.threshold", []))[0]!,
        });
        break;
      }
    }
  }
  return { rows, biases, weights };
}
