// Rotary tables of one's own: frequencies from a file, in place of a model's, for the groups that they name.

import { show } from "../encodings/errors.ts";
import type { PositionEncoding } from "../encodings/position-encoding.ts";
import { rope } from "../encodings/rope/rope.ts";
import type { ModelDescription } from "../formats/model-description.ts";
import { strategyApplies } from "./strategy.ts";

const who = "--table";

/**
 * Reads a parsed table: `{ inverseFrequencies, attentionFactor? }` for the rotary groups that a strategy speaks of, or
 * `{ groups: [{ layers, inverseFrequencies, attentionFactor? }] }`, what `longhand inspect --json` prints: edit it and
 * hand it back.
 *
 * @returns encodings by index of the description's group
 * @throws RangeError for a table that is no such object, layers that are not a group's, or a wrong number of frequencies
 */
export function readTables(value: unknown, description: ModelDescription): Record<number, PositionEncoding> {
  const out: Record<number, PositionEncoding> = {};
  if (!isObject(value)) throw new RangeError(`${who}: expected an object, got ${show(value)}`);
  if (value.groups === undefined) {
    description.groups.forEach((group, index) => {
      if (group.position.site === "query-key" && strategyApplies(group, description))
        out[index] = encoding(index, value);
    });
    if (Object.keys(out).length === 0) throw new RangeError(`${who}: expected a model with rotary positions, got none`);
    return out;
  }
  if (!Array.isArray(value.groups))
    throw new RangeError(`${who}: expected groups to be a list, got ${show(value.groups)}`);
  for (const entry of value.groups as unknown[]) {
    if (!isObject(entry) || !Array.isArray(entry.layers)) {
      throw new RangeError(`${who}: expected each group to have layers, got ${show(entry)}`);
    }
    const layers = entry.layers.join();
    const index = description.groups.findIndex((group) => group.layers.join() === layers);
    if (index < 0) {
      const known = description.groups.map((group) => `[${group.layers.join(", ")}]`).join(" and ");
      throw new RangeError(`${who}: expected the layers of a group (${known}), got [${entry.layers.join(", ")}]`);
    }
    // What inspect prints of groups without rotation has no frequencies.
    if (description.groups[index]!.position.site !== "query-key") continue;
    out[index] = encoding(index, entry);
  }
  return out;

  function encoding(index: number, entry: Readonly<Record<string, unknown>>): PositionEncoding {
    const { position } = description.groups[index]!;
    if (position.site !== "query-key") throw new Error("internal: only rotary groups have tables");
    const { inverseFrequencies, attentionFactor } = entry;
    if (!Array.isArray(inverseFrequencies)) {
      throw new RangeError(`${who}: expected inverseFrequencies to be a list, got ${show(inverseFrequencies)}`);
    }
    if (attentionFactor !== undefined && typeof attentionFactor !== "number") {
      throw new RangeError(`${who}: expected attentionFactor to be a number, got ${show(attentionFactor)}`);
    }
    const { headDim, layout } = position;
    const isWhole = 2 * inverseFrequencies.length === headDim;
    const share = position.rope.partialRotaryFactor;
    return rope({
      headDim,
      layout,
      maxPositionEmbeddings: 1,
      rope: {
        ropeType: "table",
        ropeTheta: position.rope.ropeTheta,
        inverseFrequencies: inverseFrequencies as number[],
        ...(attentionFactor === undefined ? {} : { attentionFactor }),
        ...(isWhole || share === undefined ? {} : { partialRotaryFactor: share }),
      },
    });
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
