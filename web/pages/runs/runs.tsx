// Runs: every run folder of this machine's lab; one is shown as its report shows it, several are laid over one another.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { settingName } from "../../../src/evaluation/report/setting-names.ts";
import type { JsonDifference } from "../../../src/evaluation/run-folder/json.ts";
import { Choice, TextField } from "../../parts/controls.tsx";
import { RunCharts } from "../../parts/run-charts.tsx";
import { RunShown, Verdict } from "../../parts/run-view.tsx";
import { visit } from "../../shell/address.ts";
import { whole } from "../../shell/numbers.ts";
import { language, words } from "../../shell/preferences.ts";
import { mayUseServer } from "../../shell/server.ts";
import "./runs.css";
import {
  choose,
  chosen,
  differences,
  filter,
  findRuns,
  found,
  keepShowing,
  kind,
  kinds,
  type ListedRun,
  list,
  mostChosen,
  overlaid,
  reportAddress,
  shown,
} from "./state.ts";

export function Runs(): JSX.Element {
  const text = words.value.runs;
  useEffect(keepShowing, []);
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <Body />
    </>
  );
}

function Body(): JSX.Element {
  const text = words.value.runs;
  const now = list.value;
  if (now.kind === "loading") return <p role="status">{text.loading}</p>;
  if (now.kind === "no-server") {
    return (
      <section class="card" aria-label={text.title}>
        <p role="status">{text.noServer}</p>
        <p class="mono">
          <code>npx longhand lab</code>
        </p>
      </section>
    );
  }
  if (now.kind === "error") {
    return (
      <p class="problem" role="alert">
        {now.message}
      </p>
    );
  }
  return (
    <>
      <Listed folder={now.folder} count={now.runs.length} />
      <Chosen />
    </>
  );
}

function Listed({ folder, count }: { readonly folder: string; readonly count: number }): JSX.Element {
  const text = words.value.runs;
  return (
    <section class="card" aria-labelledby="runs-list">
      <h2 id="runs-list">{text.list}</h2>
      <p class="hint runs-folder">
        <bdi>{folder}</bdi>
      </p>
      {count === 0 ? (
        <p role="status">{text.empty}</p>
      ) : (
        <>
          <form class="controls" onSubmit={(event) => event.preventDefault()}>
            <div class="row runs-filter">
              <TextField label={text.filter} value={filter} hint={text.filterHint} />
              <Choice
                label={text.kind}
                value={kind}
                options={[
                  { value: "", label: text.allKinds },
                  ...kinds.value.map((value) => ({ value, label: kindName(value) })),
                ]}
              />
              <button type="button" class="runs-again" onClick={() => void findRuns()}>
                {text.again}
              </button>
            </div>
          </form>
          {found.value.length === 0 ? <p role="status">{text.nothing}</p> : <Table runs={found.value} />}
        </>
      )}
    </section>
  );
}

function kindName(of: string): string {
  const { kindNames } = words.value.runs;
  return kindNames[of as keyof typeof kindNames] ?? of;
}

function Table({ runs }: { readonly runs: readonly ListedRun[] }): JSX.Element {
  const text = words.value.runs;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="scroll runs-scroll" aria-label={text.list} tabIndex={0}>
      <table class="run-table runs-table">
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden">{text.show}</span>
            </th>
            <th scope="col" class="name">
              {text.run}
            </th>
            <th scope="col" class="name">
              {text.kind}
            </th>
            <th scope="col" class="name">
              {text.what}
            </th>
            <th scope="col">{text.rows}</th>
            <th scope="col">{text.begun}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <Row key={run.id} run={run} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ run }: { readonly run: ListedRun }): JSX.Element {
  const text = words.value.runs;
  const { id, model, target, about, rows, wantedRows, startedAt, error } = run;
  const on = chosen.value.includes(id);
  const what = [model, target === null ? null : text.toTarget(whole(target)), about.join(", ")].filter(Boolean);
  return (
    <tr data-run={id} class={on ? "on" : undefined}>
      <td>
        <input
          type="checkbox"
          aria-label={text.showRun(id)}
          checked={on}
          disabled={error !== null || (!on && chosen.value.length >= mostChosen)}
          onChange={(event) =>
            choose(event.currentTarget.checked ? [...chosen.value, id] : chosen.value.filter((one) => one !== id))
          }
        />
      </td>
      <th scope="row">
        <button type="button" class="runs-only" disabled={error !== null} onClick={() => choose([id])}>
          <bdi>{id}</bdi>
        </button>
      </th>
      <td class="name">{run.kind === null ? "–" : kindName(run.kind)}</td>
      <td class="name runs-what">
        {error === null ? <bdi>{what.join(" · ")}</bdi> : <span class="problem">{error}</span>}
      </td>
      <td>
        {whole(rows)}
        {wantedRows === null || wantedRows <= rows ? null : ` / ${whole(wantedRows)}`}
      </td>
      <td>{startedAt === null ? "–" : startedAt.slice(0, 16).replace("T", " ")}</td>
    </tr>
  );
}

const copied = signal(false);

function Chosen(): JSX.Element | null {
  const text = words.value.runs;
  const ids = chosen.value;
  if (ids.length === 0) return <p role="status">{text.chooseOne}</p>;
  return (
    <section class="card" aria-labelledby="runs-shown">
      <h2 id="runs-shown" class="runs-heading">
        {ids.length === 1 ? <bdi>{ids[0]}</bdi> : text.overlay(ids.length)}
      </h2>
      <Downloads />
      {ids.length === 1 ? <One id={ids[0]!} /> : <Several />}
    </section>
  );
}

const formats = ["html", "csv", "jsonl", "svg", "parquet"] as const;

function Downloads(): JSX.Element {
  const text = words.value.runs;
  const ids = chosen.value;
  const views = ids.flatMap((id) => {
    const one = shown.value.get(id);
    return one?.kind === "ready" ? [one.view] : [];
  });
  // A table has the columns of one kind.
  const sameKind = new Set(views.map(({ section }) => section.kind)).size === 1;
  return (
    <div class="actions runs-actions">
      {views.length < ids.length
        ? null
        : formats
            .filter((format) => sameKind || (format !== "csv" && format !== "parquet"))
            .map((format) => (
              <a class="button" key={format} href={reportAddress(format, language.value)} download>
                {text.save[format]}
              </a>
            ))}
      <button
        type="button"
        onClick={() => {
          void navigator.clipboard?.writeText(window.location.href).then(() => {
            copied.value = true;
            setTimeout(() => {
              copied.value = false;
            }, 2000);
          });
        }}
      >
        {copied.value ? text.copied : text.copyLink}
      </button>
      {ids.length === 1 && views[0]?.section.kind === "compare" && !views[0].section.complete && mayUseServer.value ? (
        <button type="button" onClick={() => visit({ page: "extend", run: ids[0]! })}>
          {text.goOn}
        </button>
      ) : null}
    </div>
  );
}

function State({ id }: { readonly id: string }): JSX.Element | null {
  const text = words.value.runs;
  const one = shown.value.get(id) ?? { kind: "loading" };
  if (one.kind === "loading") return <p role="status">{text.loadingRun}</p>;
  if (one.kind === "error") {
    return (
      <p class="problem" role="alert">
        <bdi>{id}</bdi>: {one.message}
      </p>
    );
  }
  return one.view.section.complete ? null : <p class="hint">{text.incomplete(one.view.rows)}</p>;
}

function One({ id }: { readonly id: string }): JSX.Element {
  const one = shown.value.get(id);
  return (
    <>
      <State id={id} />
      {one?.kind === "ready" ? (
        <>
          <RunShown view={one.view} />
          <Manifest id={id} />
        </>
      ) : null}
    </>
  );
}

function Manifest({ id }: { readonly id: string }): JSX.Element | null {
  const text = words.value.runs;
  const one = shown.value.get(id);
  if (one?.kind !== "ready") return null;
  return (
    <details class="run-positions">
      <summary>{text.manifest}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre class="scroll runs-manifest" tabIndex={0}>
        {JSON.stringify(one.manifest, null, 2)}
      </pre>
    </details>
  );
}

function Several(): JSX.Element {
  const text = words.value.runs;
  const ids = chosen.value;
  return (
    <>
      {ids.map((id) => (
        <State key={id} id={id} />
      ))}
      <RunCharts charts={overlaid.value} />
      {ids.map((id) => {
        const one = shown.value.get(id);
        return one?.kind !== "ready" || one.view.verdict.length === 0 ? null : (
          <div key={id}>
            <h3 class="above">
              <bdi>{id}</bdi>
            </h3>
            <Verdict view={one.view} />
          </div>
        );
      })}
      {differences.value === null ? null : (
        <>
          <h3 class="above">{text.differences}</h3>
          {differences.value.length === 0 ? (
            <p>{text.noDifferences}</p>
          ) : (
            <Differences all={differences.value} ids={ids} />
          )}
        </>
      )}
    </>
  );
}

/** A row for each setting that differs, a column for each run. */
function Differences({
  all,
  ids,
}: {
  readonly all: readonly JsonDifference[];
  readonly ids: readonly string[];
}): JSX.Element {
  const text = words.value.runs;
  const side = (value: string | undefined): JSX.Element =>
    value === undefined ? (
      <td>{text.nothingThere}</td>
    ) : (
      <td>
        <code>{value}</code>
      </td>
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="scroll flat" aria-label={text.differences} tabIndex={0}>
      <table class="run-table runs-differences">
        <thead>
          <tr>
            <th scope="col" class="name">
              {text.setting}
            </th>
            {ids.map((id) => (
              <th scope="col" class="name" key={id}>
                <bdi>{id}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody data-number="differences">
          {all.map(({ code, values: { place, there, here } }) => (
            <tr key={place} data-difference={code}>
              <th scope="row">
                {settingName(place)?.[language.value]} <code>{place}</code>
              </th>
              {side(there)}
              {side(here)}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
