// What an engine computes from a form against what was asked for, and the choice among forms: the first exact one, else
// the nearest.

import type { DialectResult } from "../../encodings/rope/dialects/index.ts";
import type { Form } from "./forms.ts";
import { type ExportNote, exportNote, noteOfDialect } from "./notes.ts";
import type { ExportedGroup } from "./types.ts";
import type { Wanted } from "./wanted.ts";

/** Relative: float32 holds a frequency to 6e-8, engines round a few times. */
const tolerance = 1e-6;

/** A form in an engine's words, and what the engine makes of it. */
export interface Expressed<W> {
  readonly written: W;
  readonly result: DialectResult;
  /** On top of the result's attention factor: a key that the dialect does not know of. */
  readonly attentionMultiplier?: number;
  /** As rope_parameters of transformers 5. */
  readonly settings: Readonly<Record<string, unknown>> | null;
}

export interface Chosen<W> {
  readonly form: Form;
  readonly written: W;
  readonly group: ExportedGroup;
}

export function compareGroup<W>(wanted: Wanted, length: number, expressed: Expressed<W>): ExportedGroup {
  const { group } = wanted;
  const asked = wanted.attentionFactor ** 2 * wanted.softmaxFactor;
  const common = {
    layers: group.layers,
    ...(group.layerType === undefined ? {} : { layerType: group.layerType }),
    written: expressed.settings,
    askedScoreFactor: asked,
  };
  const { result } = expressed;
  // Notes of one key are about the form, not about the exactness.
  const notes = result.notes.map(noteOfDialect);
  if (!result.supported) {
    return {
      ...common,
      unsupported: exportNote("engine-refuses", { detail: result.reason }),
      exact: false,
      frequencyDifference: null,
      frequencyPair: null,
      angleDifference: null,
      anglePair: null,
      scoreFactor: null,
      inverseFrequencies: [],
      attentionFactor: null,
      notes,
    };
  }
  const theirs = result.inverseFrequencies;
  const ours = wanted.inverseFrequencies;
  let [frequencyDifference, frequencyPair, angleDifference, anglePair] = [0, 0, 0, 0];
  for (let i = 0; i < Math.max(theirs.length, ours.length); i++) {
    const x = theirs[i] ?? 0;
    const y = ours[i] ?? 0;
    // A pair that stands still: engines write a divisor so large that no angle can be told from 0.
    const difference = Math.max(x, y) < 1e-15 ? 0 : Math.abs(x - y) / Math.max(x, y);
    if (difference > frequencyDifference) [frequencyDifference, frequencyPair] = [difference, i];
    const angle = Math.abs(x - y) * (length - 1);
    if (angle > angleDifference) [angleDifference, anglePair] = [angle, i];
  }
  const attentionFactor = result.attentionFactor * (expressed.attentionMultiplier ?? 1);
  const scoreFactor = attentionFactor ** 2 * result.softmaxFactor;
  const exact = frequencyDifference <= tolerance && Math.abs(scoreFactor / asked - 1) <= tolerance;
  return {
    ...common,
    unsupported: null,
    exact,
    frequencyDifference,
    frequencyPair,
    angleDifference,
    anglePair,
    scoreFactor,
    inverseFrequencies: Array.from(theirs),
    attentionFactor,
    notes,
  };
}

/** null where the engine takes none of the forms: `reason` says why not the first. */
export function chooseForm<W>(
  wanted: Wanted,
  length: number,
  forms: readonly Form[],
  express: (form: Form) => Expressed<W> | null,
): { readonly chosen: Chosen<W>; readonly reason: null } | { readonly chosen: null; readonly reason: ExportNote } {
  let best: Chosen<W> | null = null;
  let reason = exportNote("no-words");
  for (const [index, form] of forms.entries()) {
    const expressed = express(form);
    if (expressed === null) continue;
    const group = compareGroup(wanted, length, expressed);
    if (group.unsupported !== null) {
      if (index === 0) reason = group.unsupported;
      continue;
    }
    const chosen = { form, written: expressed.written, group };
    if (group.exact) return { chosen, reason: null };
    if (best === null || distance(group, wanted) < distance(best.group, wanted)) best = chosen;
  }
  return best === null ? { chosen: null, reason } : { chosen: best, reason: null };
}

/** Mean relative difference over the pairs: angles past half a turn compare no more. A wrong factor on the scores counts
 *  as its logarithm. */
function distance(group: ExportedGroup, { inverseFrequencies: asked }: Wanted): number {
  const theirs = group.inverseFrequencies;
  const pairs = Math.max(asked.length, theirs.length);
  let sum = 0;
  for (let i = 0; i < pairs; i++) {
    const x = theirs[i] ?? 0;
    const y = asked[i] ?? 0;
    if (x !== y) sum += Math.abs(x - y) / Math.max(x, y);
  }
  return sum / pairs + Math.abs(Math.log((group.scoreFactor ?? 1) / group.askedScoreFactor));
}
