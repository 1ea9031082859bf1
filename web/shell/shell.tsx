// The frame around every page: where one can go, and how it looks.

import type { ComponentType, JSX } from "preact";
import { Component } from "preact";
import type { Words } from "../text/words.ts";
import { addressWith, parameter, visit } from "./address.ts";
import { chooseLanguage, chooseTheme, language, type Theme, theme, words } from "./preferences.ts";

export interface Page {
  readonly id: string;
  readonly name: (words: Words) => string;
  readonly view: ComponentType;
}

const themes: readonly Theme[] = ["light", "dark", "system"];

export function Shell({ pages }: { readonly pages: readonly Page[] }): JSX.Element {
  const text = words.value.shell;
  const current = parameter("page", pages[0]!.id);
  const page = pages.find(({ id }) => id === current.value) ?? pages[0]!;
  const View = page.view;
  document.title = `${page.name(words.value)} · ${text.title}`;
  return (
    <>
      <a class="skip" href="#page">
        {text.skip}
      </a>
      <header>
        <a
          class="brand"
          href={addressWith({ page: pages[0]!.id })}
          onClick={(event) => follow(event, pages[0]!.id)}
          aria-label={text.title}
        >
          <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
            <circle cx="16" cy="16" r="14" fill="var(--accent)" />
            <path d="M16 16V5M16 16l7 5" stroke="var(--paper)" stroke-width="2.6" stroke-linecap="round" />
          </svg>
          <span>Longhand</span>
        </a>
        <nav aria-label={text.pages}>
          {pages.map(({ id, name }) => (
            <a
              key={id}
              href={addressWith({ page: id })}
              aria-current={id === page.id ? "page" : undefined}
              onClick={(event) => follow(event, id)}
            >
              {name(words.value)}
            </a>
          ))}
        </nav>
        <div class="preferences">
          <fieldset class="segments">
            <legend class="hidden">{text.language}</legend>
            <button type="button" lang="en" aria-pressed={language.value === "en"} onClick={() => chooseLanguage("en")}>
              EN
            </button>
            <button
              type="button"
              lang="zh-Hant-TW"
              aria-pressed={language.value === "zh-TW"}
              onClick={() => chooseLanguage("zh-TW")}
            >
              中文
            </button>
          </fieldset>
          <fieldset class="segments">
            <legend class="hidden">{text.theme}</legend>
            {themes.map((one) => (
              <button type="button" key={one} aria-pressed={theme.value === one} onClick={() => chooseTheme(one)}>
                {text[one]}
              </button>
            ))}
          </fieldset>
        </div>
      </header>
      <main id="page" tabIndex={-1}>
        <Guarded key={page.id} message={text.failed}>
          <View />
        </Guarded>
      </main>
      <footer>{text.offline}</footer>
    </>
  );
}

function follow(event: MouseEvent, page: string): void {
  // A click that asks for a new tab or window is the browser's.
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  visit({ page });
  window.scrollTo(0, 0);
  document.getElementById("page")?.focus({ preventScroll: true });
}

/** An error of one page leaves the others usable. */
class Guarded extends Component<
  { readonly message: string; readonly children: JSX.Element },
  { error: string | null }
> {
  override state: { error: string | null } = { error: null };
  override componentDidCatch(error: unknown): void {
    this.setState({ error: error instanceof Error ? error.message : String(error) });
  }
  override render(): JSX.Element {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <p class="problem" role="alert">
        {this.props.message}: {error}
      </p>
    );
  }
}
