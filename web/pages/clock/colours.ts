// A hand's colour says how much of its turn training has shown.

import type { Hand } from "../../../src/encodings/rope/hands.ts";

/** The name of a colour of the style sheet. */
export function colourOf(hand: Hand): "many" | "some" | "part" | "little" | "still" {
  if (hand.trainedWavelength === null) return "still";
  if (hand.turnsInTraining >= 10) return "many";
  if (hand.turnsInTraining >= 1) return "some";
  return hand.turnsInTraining >= 0.25 ? "part" : "little";
}
