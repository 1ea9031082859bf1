// A text or bytes as a file of the browser's downloads.

export function download(name: string, type: string, content: string | Uint8Array<ArrayBuffer>): void {
  const whole = typeof content === "string" ? `${type};charset=utf-8` : type;
  const address = URL.createObjectURL(new Blob([content], { type: whole }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken it by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
