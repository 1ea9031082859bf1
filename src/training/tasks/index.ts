// Synthetic tasks by name, in one total table: a name without a generator does not compile.

import { nearestName } from "../../graph/index.ts";
import { type AdditionOptions, addition } from "./addition.ts";
import { type AssociativeRecallOptions, associativeRecall } from "./associative-recall.ts";
import { copy } from "./copy.ts";
import { type PasskeyOptions, passkey } from "./passkey.ts";
import { reverse } from "./reverse.ts";
import { type SortingOptions, sorting } from "./sorting.ts";
import { type Task, type TaskName, taskNames } from "./task.ts";

/** Options of each task. */
export interface TaskOptions {
  copy: Record<never, never>;
  reverse: Record<never, never>;
  addition: AdditionOptions;
  sorting: SortingOptions;
  recall: AssociativeRecallOptions;
  passkey: PasskeyOptions;
}

/** The generators, by the task's name. */
export const tasks: { readonly [N in TaskName]: (options?: TaskOptions[N]) => Task } = {
  copy,
  reverse,
  addition,
  sorting,
  recall: associativeRecall,
  passkey,
};

/**
 * A task by a name and options that come from outside (a command line, a file).
 *
 * @throws RangeError for an unknown name or option, naming the nearest known one
 * @example
 * ```ts
 * import { createTask } from "longhand/training";
 * createTask("passkey", { depth: 0.5 }).unit; // => "characters of the haystack"
 * ```
 */
export function createTask(name: string, options: object = {}): Task {
  if (!Object.hasOwn(tasks, name)) {
    const near = nearestName(name, taskNames);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    throw new RangeError(`createTask: expected a task of ${taskNames.join(", ")}, got ${name}${hint}`);
  }
  return tasks[name as TaskName](options);
}

export { type AdditionOptions, addition } from "./addition.ts";
export { type AssociativeRecallOptions, associativeRecall } from "./associative-recall.ts";
export { exampleBatch, type TaskBatchOptions, taskBatches, taskLength } from "./batches.ts";
export { copy } from "./copy.ts";
export { evaluateTask, type Scorer, type TaskEvaluationOptions, type TaskResult } from "./evaluate.ts";
export { type PasskeyOptions, passkey } from "./passkey.ts";
export { reverse } from "./reverse.ts";
export { type SortingOptions, sorting } from "./sorting.ts";
export {
  type Example,
  exampleStream,
  exampleText,
  expectSize,
  type Task,
  type TaskName,
  type Turn,
  taskNames,
} from "./task.ts";
export { wilsonInterval } from "./wilson.ts";
