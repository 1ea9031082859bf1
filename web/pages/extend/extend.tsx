// Extend: a model, a text, strategies and a target; what comes out grows while it runs.

import { type Signal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId } from "preact/hooks";
import { findAdapter, mayHaveAdapter } from "../../parts/adapter.ts";
import { Choice, type Option, Switch, TextField } from "../../parts/controls.tsx";
import { useDropping } from "../../parts/dropping.ts";
import { RunShown } from "../../parts/run-view.tsx";
import { addressWith, visit } from "../../shell/address.ts";
import { short, whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { mayUseServer } from "../../shell/server.ts";
import "./extend.css";
import {
  builtIns,
  cancel,
  choose,
  chosen,
  facts,
  files,
  findBuiltIns,
  isBusy,
  keepPlanning,
  live,
  needlesText,
  ownText,
  path,
  place,
  planned,
  question,
  reader,
  reading,
  resume,
  saveReport,
  start,
  target,
  textKind,
  where,
  windowsText,
} from "./state.ts";

export function Extend(): JSX.Element {
  const text = words.value.extend;
  useEffect(() => {
    void findBuiltIns();
    return keepPlanning();
  }, []);
  useEffect(() => {
    if (where.value === "gpu") findAdapter();
  }, [where.value]);
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <form
        class="card controls extend"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <div class="row">
          <ModelChoice />
          <TextField label={text.target} value={target} hint={targetHint()} />
          <TextField label={text.windows} value={windowsText} numeric hint={text.windowsHint} />
          <TextField label={text.needles} value={needlesText} numeric hint={text.needlesHint} />
          <WhereChoice />
        </div>
        {reader.value === "path" ? <PathField /> : null}
        <ModelFiles />
        <ModelNote />
        <TextChoice />
        <Strategies />
        <Start />
      </form>
      <Result />
    </>
  );
}

function targetHint(): string {
  const text = words.value.extend;
  const of = facts.value;
  if (of === null) return text.targetHint;
  return of.trainedLength === null
    ? text.targetUntrained(whole(of.target))
    : text.targetTrained(whole(of.target), whole(of.trainedLength));
}

function ModelChoice(): JSX.Element {
  const text = words.value.extend;
  const options: Option[] = builtIns.value.map((name) => ({ value: name, label: name }));
  const own = files.value.find(({ name }) => !/^(tokenizer|special_tokens)/.test(name)) ?? files.value[0];
  if (own !== undefined || reader.value === "file") {
    options.push({ value: "file", label: text.file(own?.name ?? "—") });
  }
  if (mayUseServer.value || reader.value === "path") options.push({ value: "path", label: text.path });
  // A link may name a model before the list of them has come.
  if (!options.some(({ value }) => value === reader.value)) options.push({ value: reader.value, label: reader.value });
  return <Choice label={text.model} value={reader} options={options} />;
}

const serverOnly: Signal<string> = signal("server");

function WhereChoice(): JSX.Element {
  const text = words.value.extend;
  const options: Option[] = [{ value: "page", label: text.wherePage }];
  if (mayHaveAdapter()) options.push({ value: "gpu", label: text.whereGpu });
  if (mayUseServer.value) options.push({ value: "server", label: text.whereServer });
  return reader.value === "path" ? (
    <Choice label={text.where} value={serverOnly} options={[{ value: "server", label: text.whereServer }]} />
  ) : (
    <Choice
      label={text.where}
      value={where}
      options={
        options.some((option) => option.value === where.value)
          ? options
          : [...options, { value: where.value, label: text.whereAbsent }]
      }
    />
  );
}

function PathField(): JSX.Element {
  const text = words.value.extend;
  return (
    <div class="extend-path">
      <TextField label={text.pathLabel} value={path} hint={mayUseServer.value ? text.pathHint : text.pathToken} wide />
    </div>
  );
}

/** Where files are dropped or chosen. */
function DropZone(props: {
  readonly children: string;
  readonly choose: string;
  readonly note: string;
  readonly accept: string;
  readonly multiple?: boolean;
  readonly onFiles: (files: readonly File[]) => void;
}): JSX.Element {
  const { children, choose: label, note, accept, multiple = false, onFiles } = props;
  const dropping = useDropping<HTMLDivElement>(onFiles);
  return (
    <div {...dropping}>
      <span>{children} </span>
      <label class="file">
        <span>{label}</span>
        <input
          type="file"
          multiple={multiple}
          accept={accept}
          onChange={(event) => onFiles([...(event.currentTarget.files ?? [])])}
        />
      </label>
      <small>{note}</small>
    </div>
  );
}

function ModelFiles(): JSX.Element {
  const text = words.value.extend;
  return (
    <details class="extend-files" open={reader.value === "file"}>
      <summary>{text.ownModel}</summary>
      <DropZone
        choose={text.choose}
        note={text.dropModelNote}
        accept=".json,.safetensors,.gguf,.bin,.model,.txt"
        multiple
        onFiles={(given) => {
          if (given.length === 0) return;
          files.value = given;
          reader.value = "file";
        }}
      >
        {text.dropModel}
      </DropZone>
    </details>
  );
}

function ModelNote(): JSX.Element | null {
  const text = words.value.extend;
  const now = reading.value;
  if (now.kind === "error") {
    return (
      <p class="problem" role="alert">
        {now.message}
      </p>
    );
  }
  if (now.kind === "ready") return null;
  return (
    <p class="hint" role="status">
      {now.kind === "loading" ? text.readingModel : now.kind === "gone" ? text.modelGone : text.noPath}
    </p>
  );
}

function TextChoice(): JSX.Element {
  const text = words.value.extend;
  const id = useId();
  const own = textKind.value === "own";
  return (
    <fieldset class="extend-text">
      <legend>{text.text}</legend>
      <div class="extend-kinds">
        {(["sample", "own"] as const).map((kind) => (
          <label class="switch" key={kind}>
            <input
              type="radio"
              name="text"
              checked={textKind.value === kind}
              onChange={() => {
                textKind.value = kind;
              }}
            />
            <span>{kind === "sample" ? text.sample : text.own}</span>
          </label>
        ))}
      </div>
      {own ? (
        <>
          <label class="hidden" for={id}>
            {text.ownLabel}
          </label>
          <textarea
            id={id}
            rows={5}
            placeholder={text.ownPlaceholder}
            value={ownText.value.text}
            onInput={(event) => {
              ownText.value = { name: "pasted.txt", text: event.currentTarget.value };
            }}
          />
          <DropZone
            choose={text.choose}
            note={text.dropTextNote}
            accept=".txt,.md,.json,.csv,.html,text/*"
            onFiles={([file]) => {
              if (file === undefined) return;
              void file.text().then((content) => {
                ownText.value = { name: file.name, text: content };
              });
            }}
          >
            {text.dropText}
          </DropZone>
          {question.value === null ? (
            <p class="hint" role="status">
              {text.noText}
            </p>
          ) : null}
        </>
      ) : (
        <p class="hint">{text.sampleNote}</p>
      )}
    </fieldset>
  );
}

const more: Signal<string> = signal("");

function Strategies(): JSX.Element | null {
  const text = words.value.extend;
  const choices = facts.value?.choices;
  if (choices === undefined) return null;
  const known = choices.map(({ name }) => name);
  const others = chosen.value.filter((name) => !known.includes(name));
  // Without these two a comparison says nothing: the library always runs them.
  const always = (name: string): boolean => name === "none" || /^window\b/.test(name);
  const toggle = (name: string, on: boolean): void =>
    choose(on ? [...chosen.value, name] : chosen.value.filter((one) => one !== name));
  const add = (): void => {
    const name = more.value.trim();
    if (name !== "" && !chosen.value.includes(name)) choose([...chosen.value, name]);
    more.value = "";
  };
  return (
    <fieldset class="extend-strategies">
      <legend>{text.strategies}</legend>
      <div class="curves">
        {[...known, ...others].map((name) =>
          always(name) ? (
            <label class="switch" key={name}>
              <input type="checkbox" checked disabled />
              <span>
                <bdi>{name}</bdi>
              </span>
            </label>
          ) : (
            <Switch key={name} label={name} checked={chosen.value.includes(name)} onChange={(on) => toggle(name, on)} />
          ),
        )}
      </div>
      <div class="extend-more">
        <TextField label={text.another} value={more} hint={text.anotherHint} />
        <button type="button" onClick={add}>
          {text.add}
        </button>
      </div>
    </fieldset>
  );
}

function Start(): JSX.Element {
  const text = words.value.extend;
  const now = planned.value;
  const ready = facts.value !== null && question.value !== null && now.kind !== "error";
  return (
    <>
      {now.kind === "error" ? (
        <p class="problem" role="alert">
          {now.message}
        </p>
      ) : null}
      <div class="extend-start">
        {isBusy.value ? (
          <button type="button" onClick={() => void cancel()} disabled={live.value?.phase === "cancelling"}>
            {live.value?.phase === "cancelling" ? text.cancelling : text.cancel}
          </button>
        ) : (
          <button type="submit" class="primary" disabled={!ready}>
            {live.value?.phase === "cancelled" && live.value.on === place.value ? text.goOn : text.start}
          </button>
        )}
        {now.kind === "ready" ? (
          <p class="hint" data-number="plan">
            {text.plan(
              whole(now.plan.textTokens),
              now.plan.windows,
              whole(now.plan.target),
              now.plan.strategies.length,
              whole(now.plan.tokens),
            )}
            {place.value === "server" ? ` ${text.planServer(short(now.plan.memoryBytes / 1e6, 3))}` : ""}
          </p>
        ) : null}
      </div>
    </>
  );
}

function Result(): JSX.Element {
  const text = words.value.extend;
  const now = live.value;
  if (now === null) {
    return (
      <section class="card" aria-label={text.result}>
        <p role="status">{text.empty}</p>
      </section>
    );
  }
  return (
    <section class="card" aria-labelledby="extend-result">
      <h2 id="extend-result">{now.view === null ? text.result : text.resultOf(now.view.section.title)}</h2>
      <Progress />
      {now.message === null ? null : (
        <p class="problem" role="alert">
          {now.message}
        </p>
      )}
      {now.view === null ? null : <RunShown view={now.view} />}
      {now.view === null || isBusy.value ? null : <Keep />}
    </section>
  );
}

function Progress(): JSX.Element | null {
  const text = words.value.extend;
  const now = live.value!;
  if (!isBusy.value) {
    return now.phase === "error" ? null : (
      <p role="status" class="hint" data-phase={now.phase}>
        {now.phase === "done" ? text.done : text.cancelled(now.view?.rows ?? 0)}
      </p>
    );
  }
  const said =
    now.phase === "preparing"
      ? text.preparing
      : now.phase === "loading"
        ? text.loading
        : now.phase === "cancelling"
          ? text.cancelling
          : text.running(now.strategy ?? "", text.steps[(now.step ?? "loss") as keyof typeof text.steps] ?? "");
  const left = now.secondsLeft === null ? "" : text.left(Math.max(1, Math.round(now.secondsLeft)));
  return (
    <div class="extend-progress" data-phase={now.phase}>
      <progress max={1} value={now.phase === "preparing" ? undefined : now.share} aria-label={text.progress} />
      <p class="hint" aria-live="off">
        {now.before > 0 ? `${text.resumed(now.before)} ` : ""}
        {said} {left}
      </p>
    </div>
  );
}

const formats = ["html", "csv", "jsonl", "svg"] as const;

/** What can be done with a result. */
function Keep(): JSX.Element {
  const text = words.value.extend;
  const now = live.value!;
  const { run } = now;
  return (
    <div class="actions extend-keep">
      {run === null
        ? formats.map((format) => (
            <button type="button" key={format} onClick={() => saveReport(format)}>
              {text.save[format]}
            </button>
          ))
        : formats.map((format) => (
            <a
              class="button"
              key={format}
              href={`./api/runs/report?id=${encodeURIComponent(run)}&format=${format}`}
              download
            >
              {text.save[format]}
            </a>
          ))}
      {run === null ? null : (
        <a
          class="button"
          href={addressWith({ page: "runs", runs: run })}
          onClick={(event) => {
            event.preventDefault();
            visit({ page: "runs", runs: run });
          }}
        >
          {text.inRuns}
        </a>
      )}
      {run !== null && mayUseServer.value && now.view?.section.complete === false ? (
        <button type="button" onClick={() => void resume(run)}>
          {text.goOn}
        </button>
      ) : null}
    </div>
  );
}
