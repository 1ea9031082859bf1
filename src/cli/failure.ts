// How a command ends: 0 done, 1 a check failed, 2 wrong usage or input, 70 a bug of ours, 130 interrupted.

import { EndpointError } from "../endpoints/index.ts";
import { MissingPackageError } from "../engine/onnxruntime/runtime.ts";
import { FormatError } from "../formats/bytes/format-error.ts";
import { MissingWeightError } from "../graph/errors.ts";
import { Interrupted } from "./interrupt.ts";

export const exitCodes = { done: 0, checkFailed: 1, usage: 2, bug: 70, interrupted: 130 } as const;

/** The message and the exit code of whatever a command threw. */
export function describeFailure(command: string, error: unknown): { message: string; exitCode: number } {
  if (error instanceof Interrupted) {
    return { message: `longhand ${command}: interrupted`, exitCode: exitCodes.interrupted };
  }
  const isInput =
    error instanceof FormatError ||
    error instanceof RangeError ||
    error instanceof EndpointError ||
    error instanceof MissingWeightError ||
    error instanceof MissingPackageError;
  if (isInput) {
    // What a function of the same name says of itself would stand there twice.
    const own = `${command}: `;
    const text = error.message.startsWith(own) ? error.message.slice(own.length) : error.message;
    return { message: `longhand ${command}: ${text}`, exitCode: exitCodes.usage };
  }
  const system = error as NodeJS.ErrnoException;
  if (typeof system?.code === "string" && typeof system.syscall === "string") {
    return { message: `longhand ${command}: ${system.message}`, exitCode: exitCodes.usage };
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { message: `longhand ${command}: internal: ${stack}\nThis is a bug in longhand.`, exitCode: exitCodes.bug };
}
