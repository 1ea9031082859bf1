// Order: two sentences of the same words, and what the last token has become in either.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { type OrderEncoding, type OrderOutput, orderEncodings } from "../../../src/evaluation/order-blindness.ts";
import { Choice, Switch, TextField } from "../../parts/controls.tsx";
import { short } from "../../shell/numbers.ts";
import { words } from "../../shell/preferences.ts";
import {
  answer,
  encodingText,
  first,
  keepAnswering,
  layersText,
  maskText,
  options,
  overview,
  second,
  variants,
} from "./state.ts";

const presets = [
  ["你打我", "我打你"],
  ["dog bites man", "man bites dog"],
  ["貓 追 狗 了", "狗 追 貓 了"],
] as const;

export function Order(): JSX.Element {
  const text = words.value.order;
  useEffect(keepAnswering, []);
  return (
    <>
      <h1>{text.title}</h1>
      <p class="lead">{text.lead}</p>
      <form class="card controls" onSubmit={(event) => event.preventDefault()}>
        <div class="row">
          <TextField label={text.first} value={first} />
          <TextField label={text.second} value={second} />
          <Choice
            label={text.encoding}
            value={encodingText}
            options={orderEncodings.map((name) => ({ value: name, label: text.encodings[name] }))}
          />
        </div>
        <div class="row chips">
          <Switch
            label={text.mask}
            checked={options.value.causal}
            onChange={(on) => {
              maskText.value = on ? "on" : "off";
            }}
          />
          <Switch
            label={text.secondLayer}
            checked={options.value.numLayers === 2}
            onChange={(on) => {
              layersText.value = on ? "2" : "1";
            }}
          />
          <fieldset class="presets">
            <legend>{text.presets}</legend>
            {presets.map(([a, b]) => (
              <button
                type="button"
                class="chip"
                key={a}
                aria-pressed={first.value === a && second.value === b}
                onClick={() => {
                  first.value = a;
                  second.value = b;
                }}
              >
                {a} / {b}
              </button>
            ))}
          </fieldset>
        </div>
        {answer.value.error === null ? null : (
          <p class="problem" role="alert">
            {answer.value.error}
          </p>
        )}
      </form>
      <Result />
      <Overview />
    </>
  );
}

/** Nine significant digits tell every float32 from its neighbours. */
const float32 = (value: number): string => value.toPrecision(9);

function Result(): JSX.Element | null {
  const text = words.value.order;
  const { comparison } = answer.value;
  if (comparison === null) return null;
  const { first: a, second: b, identical, largestDifference, sameTokens } = comparison;
  const largest = Math.max(...[...a.output, ...b.output].map(Math.abs));
  const differences = a.output.map((value, channel) => value - b.output[channel]!);
  return (
    <section class="card" aria-labelledby="last-token">
      <h2 id="last-token">{text.lastToken}</h2>
      <p class={identical ? "verdict good" : "verdict bad"} aria-live="polite" data-number="verdict">
        {identical ? text.identical(a.output.length) : text.different(short(largestDifference, 6))}
      </p>
      {sameTokens ? null : <p class="hint">{text.otherTokens}</p>}
      <div class="vectors">
        <Vector name={a.tokens.join(" ")} values={a.output} largest={largest} />
        <Vector name={b.tokens.join(" ")} values={b.output} largest={largest} />
        <Vector name={text.difference} values={differences} largest={largest} />
      </div>
      <p class="hint">{text.explain}</p>
      <details>
        <summary>{text.digits}</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
        <section class="scroll" aria-label={text.digits} tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">{text.channel}</th>
                <th scope="col">{a.tokens.join(" ")}</th>
                <th scope="col">{b.tokens.join(" ")}</th>
                <th scope="col">{text.difference}</th>
              </tr>
            </thead>
            <tbody data-number="outputs">
              {a.output.map((value, channel) => (
                <tr key={channel}>
                  <th scope="row">{channel}</th>
                  <td>{float32(value)}</td>
                  <td>{float32(b.output[channel]!)}</td>
                  <td>{differences[channel] === 0 ? "0" : differences[channel]!.toExponential(2)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </details>
      <h3 class="above">{text.attention}</h3>
      <p class="hint">{text.attentionHint}</p>
      <div class="pair">
        <Attention of={a} />
        <Attention of={b} />
      </div>
    </section>
  );
}

/** Numbers as colours: warm above zero, cool below. */
export function Vector(props: {
  readonly name: string;
  readonly values: readonly number[];
  readonly largest: number;
}): JSX.Element {
  const { name, values, largest } = props;
  return (
    <div class="vector">
      <div class="vector-name">{name}</div>
      <ol class="cells" aria-label={name}>
        {values.map((value, channel) => {
          const share = largest === 0 ? 0 : Math.round((100 * Math.abs(value)) / largest);
          const hue = value < 0 ? "cool" : "warm";
          return (
            <li
              key={channel}
              title={float32(value)}
              style={{ background: `color-mix(in oklab, var(--${hue}) ${share}%, var(--ground))` }}
            >
              {value === 0 ? "0" : value.toFixed(2).replace("-", "−")}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function Attention({ of }: { readonly of: OrderOutput }): JSX.Element {
  const text = words.value.order;
  return (
    <div class="scroll">
      <table class="attention">
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden">{text.attention}</span>
            </th>
            {of.tokens.map((token, t) => (
              <th scope="col" key={t}>
                {token}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {of.weights.flatMap((heads, layer) =>
            heads.map((weights, head) => (
              <tr key={`${layer} ${head}`}>
                <th scope="row">{text.layerHead(layer + 1, head + 1)}</th>
                {weights.map((weight, t) => (
                  <td key={t}>
                    <span class="bar" style={{ height: `${Math.round(26 * weight)}px` }} />
                    {weight.toFixed(3)}
                  </td>
                ))}
              </tr>
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}

function Overview(): JSX.Element {
  const text = words.value.order;
  const now = options.value;
  return (
    <section class="card" aria-labelledby="overview">
      <h2 id="overview">{text.overview}</h2>
      <p>{text.overviewLead}</p>
      <div class="scroll flat">
        <table class="overview">
          <thead>
            <tr>
              <th scope="col">{text.encoding}</th>
              {variants.map(({ causal, numLayers }) => (
                <th scope="col" key={`${causal} ${numLayers}`}>
                  {text.variant(causal, numLayers)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {orderEncodings.map((encoding, row) => (
              <tr key={encoding}>
                <th scope="row">{text.encodings[encoding]}</th>
                {overview.value.slice(row * variants.length, (row + 1) * variants.length).map((square) => (
                  <td key={`${square.options.causal} ${square.options.numLayers}`}>
                    <button
                      type="button"
                      class="square"
                      aria-pressed={
                        now.encoding === encoding &&
                        now.causal === square.options.causal &&
                        now.numLayers === square.options.numLayers
                      }
                      onClick={() => {
                        encodingText.value = encoding satisfies OrderEncoding;
                        maskText.value = square.options.causal ? "on" : "off";
                        layersText.value = String(square.options.numLayers);
                      }}
                    >
                      <SquareText of={square.answer?.comparison ?? null} />
                    </button>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function SquareText(props: {
  readonly of: { readonly identical: boolean; readonly largestDifference: number } | null;
}): JSX.Element {
  const text = words.value.order;
  const { of } = props;
  if (of === null) return <span>…</span>;
  return of.identical ? (
    <span class="good">{text.same}</span>
  ) : (
    <span class="bad">{short(of.largestDifference, 3)}</span>
  );
}
