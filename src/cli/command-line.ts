// The command that was typed, to be shown again.

/** The same command, with the folder that it writes to named: what goes on with an interrupted run. */
export function resumeCommand(folder: string): string {
  const typed = process.argv.slice(2);
  const named = typed.some((part) => part === "--out" || part.startsWith("--out="));
  return ["longhand", ...typed, ...(named ? [] : ["--out", folder])].map(quoted).join(" ");
}

/** As a POSIX shell reads it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
