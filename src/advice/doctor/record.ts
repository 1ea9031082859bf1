// Helpers of the records: texts in two languages, and operations that several findings share.

import { isObject } from "../../formats/huggingface/values.ts";
import { pointerOf, valueAt } from "./json-text.ts";
import type { Both, Operation, Subject } from "./types.ts";

export function both(en: string, chinese: string): Both {
  return { en, "zh-TW": chinese };
}

/** The same in both languages, as code or numbers are. */
export function code(text: string): Both {
  return both(text, text);
}

/** 131,072: numbers for people. */
export function tokens(n: number): string {
  return n.toLocaleString("en-US");
}

/** A setting as it stands, short enough for a line. */
export function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export const set = (path: string, value: unknown): Operation => ({ op: "add", path, value });
export const drop = (path: string): Operation => ({ op: "remove", path });
export const setFlag = (flag: string, value: string): Operation => ({ op: "set-flag", flag, value });
export const dropFlag = (flag: string): Operation => ({ op: "remove-flag", flag });

/** The pointer to the object or list that holds this place. */
export function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf("/"));
}

/** The last key of a pointer. */
export function nameOf(pointer: string): string {
  return pointer.slice(pointer.lastIndexOf("/") + 1);
}

/** The dict of rotary settings: its pointer and itself; the older spelling first, as transformers lets it win. */
export function ropeDict(subject: Subject): { path: string; dict: Readonly<Record<string, unknown>> } | null {
  for (const name of ["rope_scaling", "rope_parameters"]) {
    const path = `${subject.textPath}/${name}`;
    const dict = valueAt(subject.effective, path);
    if (isObject(dict) && Object.keys(dict).length > 0) return { path, dict };
  }
  return null;
}

/** A key of the text model's part. */
export function ownValue(subject: Subject, key: string): unknown {
  return valueAt(subject.effective, `${subject.textPath}${pointerOf(key)}`);
}

/** JSON for a flag of a Python server, which takes a factor without a decimal point for something else (linear). */
export function flagJson(value: unknown): string {
  return JSON.stringify(value).replace(/"factor":(\d+)(?=[,}])/g, '"factor":$1.0');
}

/** The text model's own model_type: of a multimodal file, that of the part that is read. */
export function textModelType(subject: Subject): string {
  const own = valueAt(subject.effective, `${subject.textPath}/model_type`);
  return typeof own === "string" && own !== "" ? own : (subject.model?.modelType ?? "");
}
