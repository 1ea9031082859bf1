// Language and theme. The address says them where it does; else the last choice on this machine; else the browser.

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import * as en from "../text/en/index.ts";
import type { Words } from "../text/words.ts";
import * as zhTW from "../text/zh-TW/index.ts";
import { parameter } from "./address.ts";

export type Language = "en" | "zh-TW";
export type Theme = "light" | "dark" | "system";

const kept = (name: string): string | null => {
  try {
    return window.localStorage.getItem(`longhand-${name}`);
  } catch {
    // A browser may forbid it; the lab then forgets.
    return null;
  }
};
const keep = (name: string, value: string): void => {
  try {
    window.localStorage.setItem(`longhand-${name}`, value);
  } catch {}
};

const languageChoice = parameter("lang", "");
const themeChoice = parameter("theme", "");

export const language: ReadonlySignal<Language> = computed(() => {
  const asked = languageChoice.value || kept("lang") || navigator.language;
  return /^zh/i.test(asked) ? "zh-TW" : "en";
});
export const theme: ReadonlySignal<Theme> = computed(() => {
  const asked = themeChoice.value || kept("theme");
  return asked === "light" || asked === "dark" ? asked : "system";
});
export const words: ReadonlySignal<Words> = computed(() => (language.value === "en" ? en : zhTW));

export function chooseLanguage(value: Language): void {
  keep("lang", value);
  languageChoice.value = value;
}
export function chooseTheme(value: Theme): void {
  keep("theme", value);
  themeChoice.value = value;
}

const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
const systemIsDark: Signal<boolean> = signal(darkSystem.matches);
darkSystem.addEventListener("change", () => {
  systemIsDark.value = darkSystem.matches;
});
/** What is shown in the end; canvases draw by it. */
export const isDark: ReadonlySignal<boolean> = computed(
  () => theme.value === "dark" || (theme.value === "system" && systemIsDark.value),
);

export const motionIsReduced: boolean = window.matchMedia("(prefers-reduced-motion: reduce)").matches;

effect(() => {
  document.documentElement.lang = language.value === "en" ? "en" : "zh-Hant-TW";
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
});
