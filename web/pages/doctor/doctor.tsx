// Doctor: a configuration and a command line, what is wrong with them, the change that repairs it, and the export.

import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { doctorEngines } from "../../../src/advice/doctor/types.ts";
import { Choice, TextField } from "../../parts/controls.tsx";
import { useDropping } from "../../parts/dropping.ts";
import { whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { Export } from "./export.tsx";
import { Findings } from "./findings.tsx";
import { Patch } from "./patch.tsx";
import {
  answer,
  clear,
  command,
  config,
  configIsTooLong,
  dropped,
  engineText,
  examples,
  isEmpty,
  readFiles,
  setConfig,
  showExample,
  target,
  version,
} from "./state.ts";

export function Doctor(): JSX.Element {
  const text = words.value.doctor;
  const { diagnosis, error } = answer.value;
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <Form />
      {error === null ? null : (
        <p class="card problem" role="alert">
          {error}
        </p>
      )}
      {isEmpty.value && dropped.value?.error == null ? (
        <p class="card" role="status">
          {text.empty}
        </p>
      ) : null}
      {diagnosis === null ? null : (
        <>
          <Findings of={diagnosis} />
          <Patch />
          <Export />
        </>
      )}
    </>
  );
}

function Form(): JSX.Element {
  const text = words.value.doctor;
  return (
    <form class="card controls" onSubmit={(event) => event.preventDefault()}>
      <div class="pair">
        <Area label={text.config} hint={text.configHint} value={config.value} onInput={setConfig} rows={12} />
        <div>
          <Area
            label={text.command}
            hint={text.commandHint}
            value={command.value}
            onInput={(value) => {
              command.value = value;
            }}
            rows={4}
          />
          <div class="row above">
            <Choice
              label={text.engine}
              value={engineText}
              options={[
                { value: "", label: text.anyEngine },
                ...doctorEngines.map((name) => ({ value: name, label: name })),
              ]}
            />
            <TextField label={text.version} value={version} hint={text.versionHint} />
            <TextField label={text.target} value={target} hint={text.targetHint} numeric />
          </div>
        </div>
      </div>
      <DropZone />
      <fieldset class="presets above">
        <legend>{text.examples}</legend>
        {examples.map((code) => (
          <button type="button" class="chip" key={code} lang="en" onClick={() => showExample(code)}>
            {code}
          </button>
        ))}
      </fieldset>
    </form>
  );
}

function Area(props: {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly rows: number;
  readonly onInput: (text: string) => void;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <textarea
        id={id}
        class="code"
        rows={props.rows}
        spellcheck={false}
        autocomplete="off"
        placeholder={props.hint}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </div>
  );
}

function DropZone(): JSX.Element {
  const text = words.value.doctor;
  const given = dropped.value;
  const dropping = useDropping<HTMLDivElement>((files) => void readFiles(files));
  return (
    <div {...dropping}>
      {text.drop}
      <label class="file">
        <input
          type="file"
          multiple
          onChange={(event) => {
            void readFiles([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
        <span>{text.choose}</span>
      </label>
      <button type="button" onClick={clear}>
        {text.clear}
      </button>
      {given === null || given.error !== null ? null : (
        <small role="status">
          {text.file(given.name)} {given.tensors === null ? "" : text.tensors(whole(given.tensors.size))}
        </small>
      )}
      {given?.error == null ? null : (
        <p class="problem" role="alert">
          {given.error}
        </p>
      )}
      {configIsTooLong.value ? <small>{text.tooLong}</small> : null}
    </div>
  );
}
