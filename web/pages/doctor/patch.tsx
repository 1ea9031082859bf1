// What the doctor would change, as a patch of config.json and as a new command.

import type { JSX } from "preact";
import { Code, CopyButton } from "../../parts/copy.tsx";
import { download } from "../../parts/download.ts";
import { words } from "../../shell/preferences.ts";
import { command, repair, setConfig } from "./state.ts";

export function Patch(): JSX.Element | null {
  const text = words.value.doctor;
  const of = repair.value;
  if (of === null) return null;
  const { fixed, patch, command: line } = of;
  return (
    <section class="card" aria-labelledby="patch">
      <h2 id="patch">{text.patch}</h2>
      {patch === "" && line === null ? (
        <p role="status">{text.patchNone}</p>
      ) : (
        <>
          <p>
            {text.patchLead} {text.fixed(fixed.applied.length)}
          </p>
          {patch === "" ? null : (
            <>
              <Diff text={patch} />
              <p class="actions">
                <CopyButton text={patch} />
                <button type="button" onClick={() => download("config.json.patch", "text/x-diff", patch)}>
                  {text.downloadPatch}
                </button>
                <button type="button" onClick={() => download("config.json", "application/json", fixed.config!)}>
                  {text.downloadFixed}
                </button>
              </p>
            </>
          )}
          {line === null ? null : (
            <>
              <h3 class="above">{text.newCommand}</h3>
              <Code text={line} label={text.newCommand} />
              <p class="actions">
                <CopyButton text={line} />
              </p>
            </>
          )}
          <p class="actions above">
            <button
              type="button"
              onClick={() => {
                if (patch !== "") setConfig(fixed.config!);
                if (line !== null) command.value = line;
              }}
            >
              {text.apply}
            </button>
          </p>
        </>
      )}
    </section>
  );
}

const kinds: Readonly<Record<string, string>> = { "+": "added", "-": "removed", "@": "place" };

/** Added lines and removed ones, told apart by their signs and by colour. */
function Diff({ text }: { readonly text: string }): JSX.Element {
  const [, , ...lines] = text.trimEnd().split("\n");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="code-block" aria-label={words.value.doctor.patch} tabIndex={0}>
      <pre data-number="patch">
        {lines.map((line, at) => (
          <span key={at} class={kinds[line.charAt(0)]}>
            {`${line}\n`}
          </span>
        ))}
      </pre>
    </section>
  );
}
