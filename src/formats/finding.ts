// What a reader or a check has to say about a file. `inspect` and `doctor` print these, --json carries them whole.

export type Severity =
  /** The file cannot mean what it says; using it gives wrong results. */
  | "error"
  /** Two readers of this file will disagree, or a setting is likely a mistake. */
  | "warning"
  /** Something that the file does not say was assumed. */
  | "note";

export interface Finding {
  /** Stable, kebab-case: what tests and scripts match on. */
  readonly code: string;
  readonly severity: Severity;
  /** The key path or byte that it is about, as in the file: "rope_scaling.factor", "tensor rope_freqs.weight". */
  readonly where: string;
  /** What stands there; null when the key is absent. */
  readonly got: unknown;
  /** What was expected, or what was assumed. */
  readonly expected: string;
  /** The consequence, in one sentence. */
  readonly why: string;
  /** What to write instead; empty when nothing needs to change. */
  readonly fix: string;
}
