// Versions as engines write them: "4.57.6", "v0.11.1", "b9842".

/** Numbers of a version; null for text that holds none. */
function parts(version: string): number[] | null {
  const match = /^[vb]?(\d+(?:\.\d+)*)/.exec(version.trim());
  return match === null ? null : match[1]!.split(".").map(Number);
}

/** Throws RangeError for what is no version. */
export function checkVersion(version: string): string {
  if (parts(version) === null) {
    throw new RangeError(`--engine-version: expected a version, as 4.57.6 or b9842, got ${JSON.stringify(version)}`);
  }
  return version.trim();
}

/** Whether a version comes before another one. */
export function isBefore(version: string | null, other: string): boolean {
  if (version === null) return false;
  const a = parts(version)!;
  const b = parts(other)!;
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
