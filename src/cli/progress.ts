// A line of progress on stderr that writes over itself, on a terminal only.

/** Shows "what 1,024 / 4,096, 210/s"; `end` clears the line. */
export interface ProgressLine {
  /** `note` stands behind the numbers. */
  show(what: string, done: number, total: number, note?: string): void;
  end(): void;
}

const silent: ProgressLine = { show() {}, end() {} };

export function progressLine(stream: NodeJS.WriteStream = process.stderr): ProgressLine {
  if (!stream.isTTY) return silent;
  let last = 0;
  let begin = performance.now();
  let shown = "";
  return {
    show(what, done, total, note) {
      const now = performance.now();
      if (what !== shown) {
        begin = now;
        shown = what;
      } else if (now - last < 100 && done < total) {
        return;
      }
      last = now;
      const rate = done / ((now - begin) / 1000);
      const speed = now - begin > 500 ? `, ${rate.toFixed(0)}/s, ${((total - done) / rate).toFixed(0)} s left` : "";
      const behind = note === undefined ? "" : `, ${note}`;
      stream.write(`\r\x1b[2K${what} ${done.toLocaleString("en")} / ${total.toLocaleString("en")}${speed}${behind}`);
    },
    end() {
      if (shown !== "") stream.write("\r\x1b[2K");
      shown = "";
    },
  };
}
