// Markup that is escaped by construction: a template's values are text unless they are markup already. Everything in a run
// folder is a stranger's: names may hold tags, quotes, control characters, marks that turn the direction of writing.

export type Language = "en" | "zh-TW";

export interface Markup {
  readonly markup: string;
}

/** A sentence in both languages. */
export interface Both<T = string | Markup> {
  readonly en: T;
  readonly "zh-TW": T;
}

export type MarkupValue = Markup | string | number | null | undefined | false | readonly MarkupValue[];

/** Invisible characters that change what a reader sees, and those that XML cannot hold: shown by their number. */
const unseen = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu;

/** Text without characters that hide or reorder others: `[U+202E]` in their place. */
export function visibleText(text: string): string {
  return text.replace(unseen, (c) => `[U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Text as it may stand in HTML and XML, also within quotes. */
export function escapeMarkup(text: string): string {
  return visibleText(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** A template of markup: its own text is taken as it is, its values are escaped. */
export function markup(strings: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  return { markup: strings.map((text, i) => (i === 0 ? text : written(values[i - 1]) + text)).join("") };
}

/** Markup of our own, as it is. */
export function trusted(text: string): Markup {
  return { markup: text };
}

function written(value: MarkupValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value === "string") return escapeMarkup(value);
  if (typeof value === "number") return String(value);
  return "markup" in value ? value.markup : value.map(written).join("");
}

/** Both languages, of which a page shows one; one language where only that is wanted. */
export function inLanguages(text: Both, languages: readonly Language[], element: "span" | "tspan" = "span"): Markup {
  if (languages.length === 1) return markup`${text[languages[0]!]}`;
  const one = (language: Language): Markup => {
    const [cls, lang] = language === "en" ? ["en", "en"] : ["zh", "zh-Hant-TW"];
    return markup`<${trusted(element)} class="${cls}" lang="${lang}">${text[language]}</${trusted(element)}>`;
  };
  return text.en === text["zh-TW"] ? markup`${text.en}` : markup`${languages.map(one)}`;
}

export function both<T extends string | Markup>(en: T, zh: T): Both<T> {
  return { en, "zh-TW": zh };
}
