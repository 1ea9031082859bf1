// The axis that every chart of hands shares: tokens a turn, logarithmic, from the fastest hand to past the slowest and
// past the target.

import type { InspectedGroup, Inspection } from "../inspect.ts";

export interface HandAxis {
  /** Powers of ten at the ends: the axis runs from 10^from to 10^to. */
  readonly from: number;
  readonly to: number;
  /** 0 at the left end, 1 at the right. */
  at(tokens: number): number;
}

/** Whether there is a clock to draw. */
export function hasHands(group: InspectedGroup): boolean {
  return group.hands.length > 0;
}

/** Whether some hand turns otherwise than it did in training. */
export function isScaled(group: InspectedGroup): boolean {
  return group.hands.some((hand) => hand.wavelength !== hand.trainedWavelength);
}

/** The axis for all groups of an inspection, so that their charts can be compared. */
export function handAxis(inspection: Inspection): HandAxis {
  let slowest = Math.max(inspection.targetLength ?? 1, inspection.trainedLength ?? 1);
  let fastest = Infinity;
  for (const group of inspection.groups) {
    for (const hand of group.hands) {
      for (const wavelength of [hand.wavelength, hand.trainedWavelength]) {
        if (wavelength === null) continue;
        slowest = Math.max(slowest, wavelength);
        fastest = Math.min(fastest, wavelength);
      }
    }
  }
  const from = Number.isFinite(fastest) ? Math.floor(Math.log10(fastest)) : 0;
  const to = Math.max(from + 1, Math.log10(slowest) + 0.05);
  return { from, to, at: (tokens) => (Math.log10(tokens) - from) / (to - from) };
}

/** 1, 10, 100, 1k, … 1M, … as axis labels. */
export function powerLabel(power: number): string {
  const units = ["", "k", "M", "G", "T"];
  const step = Math.floor(power / 3);
  if (power < 0) return `1e${power}`;
  return step < units.length ? `${10 ** (power - 3 * step)}${units[step]}` : `1e${power}`;
}

/** 0–11, 13, 15–31. */
function layerRanges(layers: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < layers.length; ) {
    let j = i;
    while (j + 1 < layers.length && layers[j + 1] === layers[j]! + 1) j++;
    parts.push(j === i ? `${layers[i]}` : j === i + 1 ? `${layers[i]}, ${layers[j]}` : `${layers[i]}–${layers[j]}`);
    i = j + 1;
  }
  return parts.join(", ");
}

/** As `layerRanges`, or a regular stride as "3, 7, … 47 (every 4th)", or a count, so that long lists stay readable. */
function layerList(layers: readonly number[], numLayers: number): string {
  const ranges = layerRanges(layers);
  if (ranges.length <= 28 || layers.length < 4) return `layers ${ranges}`;
  const stride = layers[1]! - layers[0]!;
  if (stride > 1 && layers.every((layer, i) => i === 0 || layer - layers[i - 1]! === stride)) {
    return `layers ${layers[0]}, ${layers[1]}, … ${layers.at(-1)} (every ${ordinal(stride)})`;
  }
  return `${layers.length} of ${numLayers} layers`;
}

function ordinal(n: number): string {
  return n === 2 ? "2nd" : n === 3 ? "3rd" : `${n}th`;
}

/** What a group's encoding is, in a few words. */
export function groupTitle(group: InspectedGroup): string {
  const number = (x: number) => x.toLocaleString("en-US", { maximumFractionDigits: 4 });
  switch (group.kind) {
    case "nope":
      return "no position encoding (NoPE)";
    case "alibi":
      return `ALiBi, ${group.slopes?.length} heads`;
    case "t5":
      return `T5 relative bias, ${group.buckets?.numBuckets} buckets to distance ${group.buckets?.maxDistance}, ${group.buckets?.bidirectional ? "both ways" : "looking back"}`;
    case "kerple":
      return "KERPLE, learned by head";
    case "fire":
      return "FIRE, a learned function of the distance's share";
    case "learned":
      return `learned absolute, ${number(group.maxPositions ?? 0)} rows`;
    case "sinusoidal":
      return `sinusoidal, theta ${number(group.theta ?? 0)}`;
    default: {
      const rope = group.rope;
      if (rope === null) return "RoPE dropped (no rotation)";
      const name = rope.ropeType === "default" ? "RoPE" : `RoPE ${rope.ropeType}`;
      const factor = "factor" in rope && typeof rope.factor === "number" ? `, factor ${number(rope.factor)}` : "";
      const share =
        group.rotaryDim !== null && group.rotaryDim < group.headDim
          ? `, ${group.rotaryDim} of ${group.headDim} channels`
          : "";
      return `${name}, theta ${number(rope.ropeTheta)}${factor}${share}`;
    }
  }
}

/** "32 layers · 32 heads (8 key/value) · head dim 128". */
export function shapeTitle({ numLayers, numHeads, numKeyValueHeads, headDim }: Inspection["model"]): string {
  const shared = numKeyValueHeads === numHeads ? "" : ` (${numKeyValueHeads} key/value)`;
  return `${numLayers} layers · ${numHeads} heads${shared} · head dim ${headDim}`;
}

/** "sliding_attention, layers 0–4, window 512". */
export function groupPlace(group: InspectedGroup, { numLayers }: Inspection["model"]): string {
  return [group.layerType, layerList(group.layers, numLayers), reachTitle(group)].filter(Boolean).join(", ");
}

/** "window 1,024", "chunks of 8,192" or nothing. */
function reachTitle(group: InspectedGroup): string {
  const number = (x: number) => x.toLocaleString("en-US");
  if (group.slidingWindow !== null) return `window ${number(group.slidingWindow)}`;
  if (group.attentionChunkSize !== null) return `chunks of ${number(group.attentionChunkSize)}`;
  return "";
}
