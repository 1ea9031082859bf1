// One scaling in the words of one engine, and what that engine makes of it.

import type { JSX } from "preact";
import { type EngineExport, type ExportNote, exportNoteText, exportTargets } from "../../../src/advice/export/index.ts";
import { Choice, TextField } from "../../parts/controls.tsx";
import { Code, CopyButton } from "../../parts/copy.tsx";
import { download } from "../../parts/download.ts";
import { short, whole } from "../../shell/numbers.ts";
import { language, words } from "../../shell/preferences.ts";
import { answer, exported, exportLength, exportTo, scaling } from "./state.ts";

const strategies = ["linear:4", "ntk:4", "dynamic:4", "yarn:4", "llama3:8"];

export function Export(): JSX.Element {
  const text = words.value.doctor;
  const { made, error } = exported.value;
  return (
    <section class="card controls" aria-labelledby="export">
      <h2 id="export">{text.exportTitle}</h2>
      <p>{text.exportLead}</p>
      <div class="row">
        <Choice
          label={text.to}
          value={exportTo}
          options={exportTargets.map((name) => ({ value: name, label: name }))}
        />
        <TextField label={text.scaling} value={scaling} hint={text.scalingHint} suggestions={strategies} />
        <TextField label={text.length} value={exportLength} hint={text.lengthHint} numeric />
      </div>
      {error === null ? null : (
        <p class="problem" role="alert">
          {error}
        </p>
      )}
      {made === null && error === null && answer.value.diagnosis?.model == null ? <p>{text.noExport}</p> : null}
      {made === null ? null : <Made of={made} />}
    </section>
  );
}

function Made({ of }: { readonly of: EngineExport }): JSX.Element {
  const text = words.value.doctor;
  return (
    <>
      <p class={of.exact ? "verdict good above" : "verdict bad above"} role="status" data-number="exact">
        {of.exact ? text.exact : text.inexact}
      </p>
      {of.nearest === null ? null : (
        <p>
          {text.nearest}
          {words.value.shell.colon}
          {exportNoteText(of.nearest, language.value)}
        </p>
      )}
      {of.commands.map((line) => (
        <div key={line}>
          <Code text={line} label={text.command1} />
          <p class="actions">
            <CopyButton text={line} />
          </p>
        </div>
      ))}
      {of.files.map(({ path, content }) =>
        content === null ? (
          <p key={path}>
            {text.patchedGguf(path)} <code>longhand export</code>
          </p>
        ) : (
          <details key={path}>
            <summary>{path}</summary>
            <Code text={content} label={path} />
            <p class="actions">
              <CopyButton text={content} />
              <button type="button" onClick={() => download(path, "text/plain", content)}>
                {text.downloadFile(path)}
              </button>
            </p>
          </details>
        ),
      )}
      <dl class="numbers above">
        {of.groups.map((group) => (
          <Group key={group.layers.join()} of={group} />
        ))}
        <div>
          <dt>{text.memory(whole(of.length))}</dt>
          <dd data-number="memory">{text.gigabytes(short(of.memory.bytes / 1e9, 4))}</dd>
        </div>
      </dl>
      <ul class="findings above">
        {[...of.notes, ...of.groups.flatMap(({ notes }) => notes)].map((note) => (
          <li key={note.message} data-note={note.code}>
            <Said note={note} />
          </li>
        ))}
      </ul>
      <p class="hint">
        {text.readFrom}
        {words.value.shell.colon}
        <span lang="en">{of.engine.readFrom}</span>
      </p>
    </>
  );
}

/** What an engine's source says is told by its kind in Chinese; the sentence itself is English. */
function Said({ note }: { readonly note: ExportNote }): JSX.Element {
  const { detail } = note.values;
  return (
    <>
      {exportNoteText(note, language.value)}
      {language.value === "en" || detail === undefined ? null : (
        <span class="hint" lang="en">
          {" "}
          {detail}
        </span>
      )}
    </>
  );
}

function Group({ of }: { readonly of: EngineExport["groups"][number] }): JSX.Element {
  const text = words.value.doctor;
  const name = text.layers(of.layers.length, of.layerType ?? "");
  if (of.unsupported !== null) {
    return (
      <div>
        <dt>{name}</dt>
        <dd class="bad" data-unsupported={of.unsupported.code}>
          {text.unsupported}
          {words.value.shell.colon}
          <Said note={of.unsupported} />
        </dd>
      </div>
    );
  }
  return (
    <>
      <div>
        <dt>
          {name}
          {words.value.shell.colon}
          {text.angle}
        </dt>
        <dd data-number="angle">{of.angleDifference === null ? "—" : text.radians(short(of.angleDifference, 4))}</dd>
      </div>
      <div>
        <dt>
          {name}
          {words.value.shell.colon}
          {text.scores}
        </dt>
        <dd data-number="score">
          {of.scoreFactor === null ? "—" : short(of.scoreFactor, 7)}
          {of.scoreFactor === null || of.scoreFactor === of.askedScoreFactor
            ? ""
            : ` (${text.asked(short(of.askedScoreFactor, 7))})`}
        </dd>
      </div>
    </>
  );
}
