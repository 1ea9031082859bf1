// Runs the examples of docstrings: plain JavaScript statements, where `expression; // => literal` states a value.

export interface Example {
  /** path:line of the fence. */
  readonly where: string;
  readonly code: string;
}

export interface Docstring {
  /** The exported name that it stands before; null for any other. */
  readonly name: string | null;
  readonly text: string;
  readonly examples: readonly Example[];
}

/** Every docstring of a source text, with the fences of its @example tags. */
export function docstrings(path: string, source: string): Docstring[] {
  const found: Docstring[] = [];
  for (const match of source.matchAll(/\/\*\*[\s\S]*?\*\//g)) {
    const firstLine = source.slice(0, match.index).split("\n").length;
    const lines = match[0]
      .split("\n")
      .map((line) => line.replace(/^\s*(\/\*\*|\*\/|\* ?)/, "").replace(/\*\/\s*$/, ""));
    const after = source.slice(match.index + match[0].length);
    const name = /^\s*export\s+(?:async\s+)?(?:function\*?|const|class)\s+(\w+)/.exec(after)?.[1] ?? null;
    found.push({ name, text: lines.join("\n"), examples: examplesOf(path, firstLine, lines) });
  }
  return found;
}

function examplesOf(path: string, firstLine: number, lines: readonly string[]): Example[] {
  const examples: Example[] = [];
  let inExample = false;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!.trim();
    if (line.startsWith("@")) inExample = line.startsWith("@example");
    if (!inExample || !line.startsWith("```")) continue;
    const end = lines.findIndex((other, i) => i > at && other.trim() === "```");
    if (line !== "```ts" || end < 0) {
      throw new Error(`${path}:${firstLine + at}: expected a closed \`\`\`ts fence in @example, got ${line}`);
    }
    examples.push({ where: `${path}:${firstLine + at}`, code: lines.slice(at + 1, end).join("\n") });
    at = end;
  }
  return examples;
}

interface Statement {
  readonly code: string;
  /** The stated value, as source text; null when nothing is stated. */
  readonly literal: string | null;
}

/** How many brackets are open at the end of this code; strings and comments do not count. */
function openBrackets(code: string): number {
  const bare = code
    .replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g, '""')
    .replace(/\/\/.*$/gm, "");
  return (bare.match(/[([{]/g)?.length ?? 0) - (bare.match(/[)\]}]/g)?.length ?? 0);
}

/** Statements, each a run of whole lines that ends with a semicolon or a closing brace at bracket depth 0. */
export function statements(code: string): Statement[] {
  const lines = code.split("\n");
  const out: Statement[] = [];
  let pending: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    const stated = lines[at]!.indexOf("// =>");
    if (stated < 0) {
      pending.push(lines[at]!);
      const text = pending.join("\n");
      const next = lines[at + 1]?.trimStart() ?? "";
      const ended = openBrackets(text) === 0 && /[;}]\s*(\/\/.*)?$/.test(lines[at]!);
      // A value may be stated on the line below its statement.
      if (ended && !next.startsWith("// =>")) {
        out.push({ code: text, literal: null });
        pending = [];
      }
      continue;
    }
    pending.push(lines[at]!.slice(0, stated));
    let literal = lines[at]!.slice(stated + "// =>".length);
    while (openBrackets(literal) > 0 && lines[at + 1]?.trimStart().startsWith("//")) {
      literal += `\n${lines[++at]!.trimStart().slice(2)}`;
    }
    out.push({ code: pending.join("\n"), literal: literal.trim() });
    pending = [];
  }
  if (pending.join("").trim() !== "") out.push({ code: pending.join("\n"), literal: null });
  return out;
}

const AsyncFunction = (async () => {}).constructor as new (
  ...args: string[]
) => (
  load: (module: string) => unknown,
  check: (got: unknown, literal: unknown, text: string) => void,
) => Promise<void>;

/** The example as a function body: imports become destructuring, stated values become checks. */
export function compile({ where, code }: Example): string {
  return statements(code)
    .map(({ code: statement, literal }) => {
      const body = statement.replace(
        /^\s*import\s+(type\s+)?\{([^}]*)\}\s+from\s+"([^"]+)";?/gm,
        (_, type: string | undefined, names: string, module: string) =>
          type
            ? ""
            : `const {${names.replace(/\btype\s+\w+,?/g, "").replace(/\s+as\s+/g, ": ")}} = await load("${module}");`,
      );
      if (literal === null) return body;
      // Comments and imports above the expression stay statements of their own.
      const start = body.search(/(?<=^|\n)(?!\s*(\/\/|const \{[^}]*\} = await load|$))[^\n]/);
      const expression = body.slice(start).trim().replace(/;$/, "");
      if (start < 0 || expression === "" || /^(const|let|var|function|class|for|if|return)\b/.test(expression)) {
        throw new Error(
          `${where}: expected an expression before "// => ${literal}", got ${JSON.stringify(expression)}`,
        );
      }
      return `${body.slice(0, start)}check(${expression}\n, (${literal}\n), ${JSON.stringify(`${expression}  // => ${literal}`)});`;
    })
    .join("\n");
}

/** Runs an example; returns how many values it stated. Throws on the first that differs. */
export async function runExample(example: Example, load: (module: string) => Promise<unknown>): Promise<number> {
  let checked = 0;
  await new AsyncFunction("load", "check", compile(example))(load, (got, expected, text) => {
    checked++;
    if (!matches(got, expected)) throw new Error(`${example.where}: ${text}\n  got ${format(got)}`);
  });
  return checked;
}

/** Deep equality; numbers to 1e-12 relative, typed arrays as arrays. */
export function matches(got: unknown, expected: unknown): boolean {
  if (typeof got === "number" && typeof expected === "number") {
    if (Object.is(got, expected) || got === expected) return true;
    return Math.abs(got - expected) <= 1e-12 * Math.max(Math.abs(got), Math.abs(expected));
  }
  if (typeof got !== "object" || typeof expected !== "object" || got === null || expected === null) {
    return Object.is(got, expected);
  }
  const [a, b] = [plain(got), plain(expected)];
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  const others = Object.keys(b);
  return (
    keys.length === others.length &&
    keys.every((key) => key in b && matches((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}

function plain(value: object): object {
  if (ArrayBuffer.isView(value) && !(value instanceof DataView))
    return Array.from(value as unknown as ArrayLike<unknown>);
  return value;
}

function format(value: unknown): string {
  const shown = typeof value === "object" && value !== null ? plain(value) : value;
  return (
    JSON.stringify(shown, (_, v) => (typeof v === "bigint" ? `${v}n` : typeof v === "function" ? "function" : v)) ??
    String(value)
  );
}
