// Output that changes while a command runs: a line of progress on stderr with the time left, and a table on stdout that
// is drawn again. Both on a terminal only.

import { duration } from "./evaluation-run.ts";

/** Time left from work done: `work` is in any unit that passes in proportion to time. */
export class WorkLine {
  readonly #total: number;
  readonly #began: number = performance.now();
  readonly #isShown: boolean = process.stderr.isTTY === true;
  #last = 0;
  #drawn = false;

  constructor(total: number) {
    this.#total = total;
  }

  show(done: number, what: string): void {
    const now = performance.now();
    if (!this.#isShown || now - this.#last < 100) return;
    this.#last = now;
    const seconds = (now - this.#began) / 1000;
    const share = this.#total > 0 ? Math.min(1, done / this.#total) : 1;
    // Until something is done there is nothing to tell from.
    const left = share > 0.002 && seconds > 1 ? `, ${duration((seconds / share) * (1 - share))} left` : "";
    process.stderr.write(`\r\x1b[2K${(100 * share).toFixed(0).padStart(3)} %  ${what}${left}`);
    this.#drawn = true;
  }

  clear(): void {
    if (this.#drawn) process.stderr.write("\r\x1b[2K");
    this.#drawn = false;
  }
}

/** A text on stdout in the place of the one before it. */
export class LiveText {
  #lines = 0;

  draw(text: string): void {
    if (process.stdout.isTTY !== true) return;
    this.clear();
    process.stdout.write(text);
    this.#lines = text.split("\n").length - 1;
  }

  clear(): void {
    if (this.#lines > 0) process.stdout.write(`\x1b[${this.#lines}A\x1b[0J`);
    this.#lines = 0;
  }
}
