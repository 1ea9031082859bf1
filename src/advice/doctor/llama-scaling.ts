// What llama.cpp's flags come to, over what the file says.

import { flagOf, numberOf } from "./command.ts";
import type { Subject } from "./types.ts";

export interface LlamaScaling {
  /** null: neither a flag nor the file says; llama.cpp takes linear. */
  readonly type: string | null;
  /** How many times longer the context becomes. */
  readonly scale: number;
  /** Whether a flag says so. */
  readonly isFlag: boolean;
}

export function llamaScaling({ command, model }: Subject): LlamaScaling {
  const position = model?.groups.find((group) => group.position.kind === "rope")?.position;
  const rope = position?.kind === "rope" ? position.rope : null;
  const own = rope !== null && (rope.ropeType === "yarn" || rope.ropeType === "linear") ? (rope.factor ?? 1) : 1;
  const factor = numberOf(command, "--rope-scale");
  const frequency = numberOf(command, "--rope-freq-scale");
  const scale = frequency !== null && frequency > 0 ? 1 / frequency : (factor ?? own);
  const type = flagOf(command, "--rope-scaling")?.value ?? (rope?.ropeType === "yarn" ? "yarn" : null);
  const isFlag = factor !== null || frequency !== null || flagOf(command, "--rope-scaling") !== undefined;
  return { type, scale, isFlag };
}

/** The length that llama.cpp's flags reach; null where they say nothing. */
export function llamaReach(subject: Subject): number | null {
  if (subject.engine !== "llama.cpp" || subject.model === null) return null;
  const { scale, isFlag } = llamaScaling(subject);
  const original = numberOf(subject.command, "--yarn-orig-ctx") || subject.model.trainedLength;
  if (numberOf(subject.command, "--rope-freq-base") !== null) return Number.POSITIVE_INFINITY;
  return isFlag && original !== null ? Math.round(scale * original) : null;
}
