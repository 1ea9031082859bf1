// The lab's own server: whether there is one, the token that lets this page write, and questions to it. The same page also
// stands on servers that only hand out files.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";

export interface LabServer {
  readonly version: string;
  /** Whether this page may start runs and read models of the server's machine. */
  readonly hasToken: boolean;
}

const found: Signal<LabServer | null | undefined> = signal(undefined);
/** null: nothing but files is served; undefined: not known yet. */
export const server: ReadonlySignal<LabServer | null | undefined> = found;
/** Whether there is one that this page may give work to. */
export const mayUseServer: ReadonlySignal<boolean> = computed(() => found.value?.hasToken === true);

const tokenHeader = "x-longhand-token";
let token = "";

/** Takes the token from the address, where it stands after the # when the lab is opened, and out of sight. Call once, before
 *  the address is kept. */
export function takeToken(): void {
  const given = /^#token=([\w-]+)$/.exec(window.location.hash)?.[1];
  try {
    // For as long as this tab lives: a reload keeps it, another tab does not have it.
    if (given !== undefined) window.sessionStorage.setItem("longhand-token", given);
    token = given ?? window.sessionStorage.getItem("longhand-token") ?? "";
  } catch {
    token = given ?? "";
  }
  if (given !== undefined) {
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }
}

let asking: Promise<void> | undefined;
/** Asks once which server this is. */
export function findServer(): Promise<void> {
  asking ??= (async () => {
    const answer = await fetch("./api/lab", { headers: { [tokenHeader]: token } }).catch(() => null);
    const facts: unknown = answer?.ok ? await answer.json().catch(() => null) : null;
    const isLab = typeof facts === "object" && facts !== null && "version" in facts && "hasToken" in facts;
    found.value = isLab ? (facts as LabServer) : null;
  })();
  return asking;
}

/** Asks the server; its words are the error's when it refuses. */
export async function ask(
  path: string,
  options: { method?: string; body?: unknown; form?: FormData; signal?: AbortSignal } = {},
): Promise<Response> {
  const { method = "GET", body, form, signal: abort } = options;
  const answer = await fetch(`./api/${path}`, {
    method,
    headers: { [tokenHeader]: token, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(form === undefined ? {} : { body: form }),
    ...(abort === undefined ? {} : { signal: abort }),
  });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `HTTP ${answer.status}`);
  return answer;
}

export async function askJson<T>(path: string, options: Parameters<typeof ask>[1] = {}): Promise<T> {
  return (await (await ask(path, options)).json()) as T;
}

/** The JSON objects of an answer, a line each, as they come. */
export async function* linesOf<T>(answer: Response): AsyncGenerator<T> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line) as T;
  }
}
