// Changes JSON text without touching the rest of it: spaces, the order of keys, 8.0 and 1e6 stay as a person wrote them.
// Operations are add, replace and remove of RFC 6902, by JSON pointers of RFC 6901.

import type { Operation } from "./types.ts";

type JsonOperation = Extract<Operation, { readonly path: string }>;

interface Member {
  readonly key: string;
  /** Of the key's first quote, or of an element's value. */
  readonly start: number;
  readonly value: Node;
}

interface Node {
  readonly start: number;
  readonly end: number;
  readonly kind: "object" | "array" | "plain";
  readonly members: readonly Member[];
}

/** Spans of every value. The text must be JSON that parses. */
function spans(text: string): Node {
  let at = 0;
  const space = (): void => {
    while (/\s/.test(text[at] ?? "")) at++;
  };
  const string = (): string => {
    const start = at;
    for (at++; text[at] !== '"'; at++) if (text[at] === "\\") at++;
    at++;
    return JSON.parse(text.slice(start, at)) as string;
  };
  const value = (): Node => {
    space();
    const start = at;
    const c = text[at];
    if (c !== "{" && c !== "[") {
      if (c === '"') string();
      else while (at < text.length && !/[\s,\]}]/.test(text[at]!)) at++;
      return { start, end: at, kind: "plain", members: [] };
    }
    const isObject = c === "{";
    const members: Member[] = [];
    at++;
    for (space(); text[at] !== "}" && text[at] !== "]"; space()) {
      if (text[at] === ",") {
        at++;
        continue;
      }
      const from = at;
      let key = String(members.length);
      if (isObject) {
        key = string();
        space();
        at++;
      }
      members.push({ key, start: from, value: value() });
    }
    at++;
    return { start, end: at, kind: isObject ? "object" : "array", members };
  };
  return value();
}

/** The keys of a JSON pointer. */
export function pointerKeys(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .slice(1)
    .split("/")
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** "rope_scaling.factor" and "layer_types[3]" of the readers' findings as JSON pointers. */
export function pointerOf(path: string): string {
  if (path === "") return "";
  const keys = path.replace(/\[(\d+)\]/g, ".$1").split(".");
  return keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** The value at a pointer; undefined where there is none. */
export function valueAt(value: unknown, pointer: string): unknown {
  return pointerKeys(pointer).reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null && Object.hasOwn(at, key)
        ? (at as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}

/** Applies one operation to JSON text; null when its place does not exist. */
export function patchText(text: string, operation: JsonOperation): string | null {
  const keys = pointerKeys(operation.path);
  const name = keys.pop();
  if (name === undefined) return null;
  let node = spans(text);
  for (const key of keys) {
    const member = node.members.find((one) => one.key === key);
    if (member === undefined) return null;
    node = member.value;
  }
  if (node.kind === "plain") return null;
  const index = node.members.findIndex((one) => one.key === name);
  const member = node.members[index];
  if (operation.op === "remove") return member === undefined ? null : removed(text, node, index);
  if (member === undefined && operation.op === "replace") return null;
  const indent = indentOf(text, node);
  if (member !== undefined) {
    const { start, end } = member.value;
    return text.slice(0, start) + written(operation.value, indent) + text.slice(end);
  }
  if (node.kind !== "object") return null;
  const entry = `${JSON.stringify(name)}: ${written(operation.value, indent)}`;
  const lastMember = node.members.at(-1);
  if (lastMember === undefined) {
    return `${text.slice(0, node.start)}{${indent === null ? "" : indent}${entry}${indent === null ? "" : outer(indent)}}${text.slice(node.end)}`;
  }
  const end = lastMember.value.end;
  return `${text.slice(0, end)},${indent ?? " "}${entry}${text.slice(end)}`;
}

function removed(text: string, node: Node, index: number): string {
  const { members } = node;
  const previous = members[index - 1];
  const next = members[index + 1];
  if (next !== undefined) return text.slice(0, members[index]!.start) + text.slice(next.start);
  const from = previous === undefined ? node.start + 1 : previous.value.end;
  const until = previous === undefined ? node.end - 1 : members[index]!.value.end;
  return text.slice(0, from) + text.slice(until);
}

/** The line end and indent before the members of an object; null where they stand on one line. */
function indentOf(text: string, node: Node): string | null {
  const first = node.members[0];
  if (first === undefined) return null;
  const before = text.slice(node.start + 1, first.start);
  return before.includes("\n") ? before.slice(before.lastIndexOf("\n")) : null;
}

const outer = (indent: string): string => indent.replace(/ {2}$/, "");

/** A value as JSON at this indent; short dicts stay on one line. */
function written(value: unknown, indent: string | null): string {
  const line = oneLine(value);
  if (indent === null || typeof value !== "object" || value === null || line.length <= 60) return line;
  return JSON.stringify(value, null, 2).replaceAll("\n", indent);
}

function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}: ${oneLine(inner)}`)
      .join(", ")}}`;
  }
  return JSON.stringify(value);
}
