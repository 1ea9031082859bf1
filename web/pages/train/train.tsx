// Train: small models side by side, one an encoding, in this page or by the lab's server.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { type RecipeEncoding, recipeEncodings, recipeSizes, taskNames } from "../../../src/training/index.ts";
import { findAdapter, mayHaveAdapter } from "../../parts/adapter.ts";
import { Choice, Switch, TextField } from "../../parts/controls.tsx";
import { useDropping } from "../../parts/dropping.ts";
import { short, whole } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import { findServer, mayUseServer } from "../../shell/server.ts";
import { Chart, type Curve } from "./chart.tsx";
import {
  active,
  batch,
  chosen,
  clear,
  device,
  largest,
  length,
  onTheServer,
  ownText,
  plan,
  type Run,
  runs,
  runsOn,
  seed,
  size,
  source,
  start,
  startError,
  starting,
  task,
  toggle,
  tokens,
} from "./state.ts";
import "./train.css";

const colourOf = (encoding: RecipeEncoding): string => `train-${encoding}`;
/** Colours alone do not tell nine curves apart. */
const dashes: { readonly [E in RecipeEncoding]?: readonly number[] } = {
  none: [2, 4],
  sinusoidal: [8, 4],
  learned: [8, 3, 2, 3],
  "kerple-log": [6, 3],
  "kerple-power": [3, 3],
  fire: [10, 3],
};

export function Train(): JSX.Element {
  const text = words.value.train;
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <Settings />
      {startError.value === null ? null : (
        <p class="problem" role="alert">
          {startError.value}
        </p>
      )}
      {runs.value.length === 0 ? (
        <p class="card" role="status">
          {starting.value ? text.starting : text.empty}
        </p>
      ) : (
        <>
          <Losses />
          <Lengths />
          <div class="train-runs">
            {runs.value.map((run) => (
              <RunCard key={run.id} run={run} />
            ))}
          </div>
        </>
      )}
    </>
  );
}

/** Choices of a number, with the one that a link asks for. */
const numbers = (values: readonly number[], now: string): { value: string; label: string }[] =>
  [...new Set([...values.map(String), now])].map((value) => ({
    value,
    label: Number.isFinite(Number(value)) ? whole(Number(value)) : value,
  }));

function Settings(): JSX.Element {
  const text = words.value.train;
  const { error } = plan.value;
  const cores = navigator.hardwareConcurrency || 1;
  useEffect(() => {
    if (device.value === "webgpu") findAdapter();
  }, [device.value]);
  useEffect(() => void findServer(), []);
  return (
    <form
      class="card controls"
      onSubmit={(event) => {
        event.preventDefault();
        if (plan.value.recipes.length > 0) void start(false);
      }}
    >
      <fieldset class="curves">
        <legend>{text.encodings}</legend>
        {recipeEncodings.map((name) => (
          <Switch
            key={name}
            label={text.names[name]}
            colour={`var(--${colourOf(name)})`}
            checked={chosen.value.includes(name)}
            onChange={(on) => toggle(name, on)}
          />
        ))}
      </fieldset>
      <div class="row">
        <Choice
          label={text.size}
          value={size}
          options={(Object.keys(recipeSizes) as (keyof typeof recipeSizes)[]).map((value) => ({
            value,
            label: text.sizes[value],
          }))}
        />
        <Choice
          label={text.on}
          value={source}
          options={[
            { value: "text", label: text.text },
            ...taskNames.map((value) => ({ value, label: text.tasks[value] })),
          ]}
        />
        {task.value === null ? (
          <Choice label={text.length} value={length} options={numbers([32, 64, 128, 256], length.value)} />
        ) : (
          <Choice label={text.largest} value={largest} options={numbers([5, 10, 20, 40], largest.value)} />
        )}
        <Choice
          label={text.tokens}
          value={tokens}
          options={numbers([100_000, 200_000, 500_000, 1_000_000, 4_000_000], tokens.value)}
        />
        <Choice
          label={text.device}
          value={device}
          options={[
            ...(mayUseServer.value || device.value === "server" ? [{ value: "server", label: text.server }] : []),
            { value: "wasm", label: text.wasm },
            ...(mayHaveAdapter() || device.value === "webgpu" ? [{ value: "webgpu", label: text.webgpu }] : []),
          ]}
        />
      </div>
      {device.value === "server" && !onTheServer.value ? <p class="hint">{text.noServer}</p> : null}
      {task.value === null ? <TextSource /> : null}
      <details class="train-more">
        <summary>{text.more}</summary>
        <div class="row">
          <TextField label={text.seed} value={seed} numeric />
          <TextField label={text.batch} value={batch} numeric hint={text.batchHint} />
        </div>
        {mayHaveAdapter() ? null : <p class="hint">{text.noWebgpu}</p>}
      </details>
      {error === null ? null : (
        <p class="problem" role="alert">
          {error}
        </p>
      )}
      {chosen.value.length > cores && !onTheServer.value ? (
        <p class="hint">{text.tooMany(chosen.value.length, cores)}</p>
      ) : null}
      {chosen.value.length === 0 ? <p class="hint">{text.nothingChosen}</p> : null}
      <div class="actions train-start">
        <button type="submit" class="train-main" disabled={plan.value.recipes.length === 0 || starting.value}>
          {runs.value.length === 0 ? text.start : text.again}
        </button>
        {runs.value.length === 0 ? (
          <button
            type="button"
            disabled={plan.value.recipes.length === 0 || starting.value}
            onClick={() => void start(true)}
          >
            {text.startHeld}
          </button>
        ) : null}
        <AllActions />
      </div>
    </form>
  );
}

function AllActions(): JSX.Element | null {
  const text = words.value.train;
  const all = runs.value;
  if (all.length === 0) return null;
  const going = active.value;
  const held = going.filter(({ phase }) => phase.value === "held");
  const ask = (kind: "hold" | "resume" | "step" | "stop") => () => {
    for (const run of going) run.ask(kind);
  };
  const droppable = going.filter((run) => run.canDrop && run.dropAt.value === null);
  return (
    <>
      {going.length === 0 ? null : (
        <>
          {held.length < going.length ? (
            <button type="button" onClick={ask("hold")}>
              {text.holdAll}
            </button>
          ) : (
            <button type="button" onClick={ask("resume")}>
              {text.resumeAll}
            </button>
          )}
          <button type="button" onClick={ask("step")}>
            {text.stepAll}
          </button>
          {droppable.length === 0 ? null : (
            <button
              type="button"
              onClick={() => {
                for (const run of droppable) run.ask("drop");
              }}
            >
              {text.dropAll}
            </button>
          )}
          <button type="button" onClick={ask("stop")}>
            {text.stopAll}
          </button>
        </>
      )}
      <button type="button" onClick={clear}>
        {text.clear}
      </button>
    </>
  );
}

/** The text that is trained on: what comes with the lab, or a file, or what is pasted. */
function TextSource(): JSX.Element {
  const text = words.value.train;
  const own = ownText.value;
  const take = async (file: File | undefined): Promise<void> => {
    if (file !== undefined) ownText.value = { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) };
  };
  const dropping = useDropping<HTMLFieldSetElement>((files) => void take(files[0]));
  return (
    <>
      <fieldset {...dropping}>
        <legend class="hidden">{text.text}</legend>
        <strong>{own === null ? text.sample : text.own(own.name, whole(own.bytes.length))}</strong>
        {own === null ? (
          <>
            <span>{text.drop}</span>
            <label class="file">
              <input
                type="file"
                accept="text/*,.txt,.md"
                onChange={(event) => void take(event.currentTarget.files?.[0])}
              />
              <span>{text.choose}</span>
            </label>
          </>
        ) : (
          <button
            type="button"
            onClick={() => {
              ownText.value = null;
            }}
          >
            {text.useSample}
          </button>
        )}
        <small>{onTheServer.value ? text.textNoteServer : text.textNote}</small>
      </fieldset>
      <details class="train-more">
        <summary>{text.paste}</summary>
        <textarea
          class="train-paste"
          rows={5}
          aria-label={text.paste}
          onInput={(event) => {
            const { value } = event.currentTarget;
            ownText.value = value === "" ? null : { name: text.pasted, bytes: new TextEncoder().encode(value) };
          }}
        />
      </details>
    </>
  );
}

function Losses(): JSX.Element {
  const text = words.value.train;
  const curves = runs.value.map((run): Curve => {
    const dropAt = run.dropAt.value;
    return {
      ...looks(run),
      points: run.losses.value,
      mark: dropAt === null ? undefined : dropAt * run.recipe.batchSize * run.recipe.length,
    };
  });
  return (
    <section class="card" aria-labelledby="train-curve">
      <h2 id="train-curve">{text.curve}</h2>
      <p class="hint">{runsOn.value === null ? text.curveLead : text.curveLeadTask}</p>
      <Legend />
      <Chart label={text.curve} curves={curves} axisX={text.axisTokens} axisY={text.axisLoss} />
    </section>
  );
}

function looks({ encoding }: Run): Pick<Curve, "name" | "colour" | "dash"> {
  const dash = dashes[encoding];
  const name = words.value.train.names[encoding];
  return { name, colour: colourOf(encoding), ...(dash === undefined ? {} : { dash }) };
}

function Legend(): JSX.Element {
  const text = words.value.train;
  return (
    <ul class="legend train-legend">
      {runs.value.map(({ id, encoding }) => (
        <li key={id}>
          <svg viewBox="0 0 28 8" width="28" height="8" aria-hidden="true">
            <line
              x1="0"
              y1="4"
              x2="28"
              y2="4"
              stroke={`var(--${colourOf(encoding)})`}
              stroke-width="2.5"
              stroke-dasharray={dashes[encoding]?.join(" ")}
            />
          </svg>
          {text.names[encoding]}
        </li>
      ))}
    </ul>
  );
}

function Lengths(): JSX.Element {
  const text = words.value.train;
  const isTask = runsOn.value !== null;
  const tested = runs.value.flatMap((run) => (run.test.value === null ? [] : [{ run, ...run.test.value }]));
  const columns = tested.reduce<(typeof tested)[number] | undefined>(
    (most, one) => (most === undefined || one.points.length > most.points.length ? one : most),
    undefined,
  );
  const curves = tested.map(
    ({ run, points }): Curve => ({ ...looks(run), points: points.map(({ to, loss }) => [to, loss]) }),
  );
  return (
    <section class="card" aria-labelledby="train-lengths">
      <h2 id="train-lengths">{text.lengths}</h2>
      <p class="hint">{isTask ? text.lengthsLeadTask : text.lengthsLead}</p>
      {columns === undefined ? (
        <p role="status">{text.waiting}</p>
      ) : (
        <>
          <Chart
            label={text.lengths}
            curves={curves}
            axisX={isTask ? text.axisSize : text.axisPosition}
            axisY={text.axisLoss}
            doublings
            dots
            mark={{ x: columns.trained, text: text.trainedTo }}
          />
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
          <section class="scroll flat" aria-label={text.lengths} tabIndex={0}>
            <table class="overview">
              <thead>
                <tr>
                  <th scope="col">{text.encoding}</th>
                  {columns.points.map(({ from, to }) => (
                    <th scope="col" key={to}>
                      {from === to ? whole(to) : text.to(whole(from), whole(to))}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {tested.map(({ run, points, trained }) => (
                  <tr key={run.id} data-lengths={run.encoding}>
                    <th scope="row">{text.names[run.encoding]}</th>
                    {columns.points.map(({ to }) => {
                      const point = points.find((one) => one.to === to);
                      return (
                        <td key={to} class={point !== undefined && to <= trained ? "train-inside" : ""}>
                          {point === undefined ? "–" : point.loss.toFixed(3)}
                          {point?.accuracy === undefined ? null : (
                            <small>{text.accuracy((100 * point.accuracy).toFixed(0))}</small>
                          )}
                        </td>
                      );
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        </>
      )}
    </section>
  );
}

function RunCard({ run }: { readonly run: Run }): JSX.Element {
  const text = words.value.train;
  const { encoding, recipe } = run;
  const name = text.names[encoding];
  const phase = run.phase.value;
  const last = run.losses.value.at(-1);
  const going = phase === "running" || phase === "held";
  const dropAt = run.dropAt.value;
  return (
    <article class="card train-run" aria-label={text.run(name)} data-run={encoding}>
      <h3>
        <span class="swatch" style={{ background: `var(--${colourOf(encoding)})` }} />
        {name} <span class={`train-phase ${phase}`}>{text.phases[phase]}</span>
      </h3>
      <progress max={recipe.steps} value={run.step.value} aria-label={text.steps} />
      <dl class="numbers">
        <dt>{text.steps}</dt>
        <dd data-number="step">{text.of(whole(run.step.value), whole(recipe.steps))}</dd>
        <dt>{text.seen}</dt>
        <dd>{whole(run.step.value * recipe.batchSize * recipe.length)}</dd>
        <dt>{text.loss}</dt>
        <dd data-number="loss">{last === undefined ? "–" : last[1].toFixed(6)}</dd>
        <dt>{text.gradient}</dt>
        <dd>{run.gradientNorm.value === null ? "–" : short(run.gradientNorm.value, 4)}</dd>
        <dt>{text.speed}</dt>
        <dd data-number="speed">{run.tokensPerSecond.value === null ? "–" : whole(run.tokensPerSecond.value)}</dd>
      </dl>
      {dropAt === null ? null : <p class="hint">{text.droppedAt(whole(dropAt))}</p>}
      {run.error.value === null ? null : (
        <p class="problem" role="alert">
          {run.error.value}
        </p>
      )}
      <div class="actions">
        {going ? (
          <>
            <button type="button" onClick={() => run.ask(phase === "held" ? "resume" : "hold")}>
              {phase === "held" ? text.resume : text.hold}
            </button>
            <button type="button" onClick={() => run.ask("step")}>
              {text.step}
            </button>
            {encoding === "none" || dropAt !== null ? null : (
              <button
                type="button"
                disabled={!run.canDrop}
                title={run.canDrop ? undefined : text.noDrop}
                onClick={() => run.ask("drop")}
              >
                {text.dropOne}
              </button>
            )}
            <button type="button" onClick={() => run.ask("stop")}>
              {text.stop}
            </button>
          </>
        ) : null}
        {going || phase === "ended" ? (
          <button type="button" title={text.downloadNote} onClick={() => run.ask("model")}>
            {text.download}
          </button>
        ) : null}
      </div>
      <details>
        <summary>{text.command}</summary>
        <code class="train-command">{run.command}</code>
      </details>
    </article>
  );
}
