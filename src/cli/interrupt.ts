// Ctrl-C: the first stops a command at its next step, the second at once. Exit 130 either way.

/** Why a command was stopped. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** Runs a command with a signal that Ctrl-C (or a terminating signal) aborts. */
export async function interruptible<T>(body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Interrupted("interrupted"));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    return await body(controller.signal);
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  }
}
