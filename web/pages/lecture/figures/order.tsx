// Order blindness: one sentence in two orders through a small transformer.

import { effect, type Signal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { compareOrders, type OrderComparison, orderEncodings } from "../../../../src/evaluation/order-blindness.ts";
import { Choice, Switch } from "../../../parts/controls.tsx";
import { short } from "../../../shell/numbers.ts";
import { words } from "../../../shell/preferences.ts";
import { Vector } from "../../order/order.tsx";
import { depth, encoding, mask } from "../state.ts";

const result: Signal<OrderComparison | null> = signal(null);

function keepComparing(): () => void {
  let latest = 0;
  const end = effect(() => {
    const name = orderEncodings.find((one) => one === encoding.value) ?? "none";
    const options = { encoding: name, causal: mask.value === "on", numLayers: depth.value === "2" ? 2 : 1 };
    const mine = ++latest;
    void compareOrders("你打我", "我打你", options).then((found) => {
      if (mine === latest) result.value = found;
    });
  });
  return () => {
    latest++;
    end();
  };
}

export function OrderFigure(): JSX.Element {
  const text = words.value.order;
  useEffect(keepComparing, []);
  const of = result.value;
  return (
    <>
      <div class="row chips">
        <Choice
          label={text.encoding}
          value={encoding}
          options={orderEncodings.map((name) => ({ value: name, label: text.encodings[name] }))}
        />
        <Switch
          label={text.mask}
          checked={mask.value === "on"}
          onChange={(on) => {
            mask.value = on ? "on" : "off";
          }}
        />
        <Switch
          label={text.secondLayer}
          checked={depth.value === "2"}
          onChange={(on) => {
            depth.value = on ? "2" : "1";
          }}
        />
      </div>
      {of === null ? null : <Outputs of={of} />}
    </>
  );
}

function Outputs({ of: { first, second, identical, largestDifference } }: { readonly of: OrderComparison }) {
  const text = words.value.order;
  const largest = Math.max(...[...first.output, ...second.output].map(Math.abs));
  return (
    <>
      <p class={identical ? "verdict good" : "verdict bad"} aria-live="polite" data-number="order">
        {identical ? text.identical(first.output.length) : text.different(short(largestDifference, 6))}
      </p>
      <div class="vectors">
        {[first, second].map(({ tokens, output }) => (
          <Vector key={tokens.join()} name={tokens.join(" ")} values={output} largest={largest} />
        ))}
      </div>
    </>
  );
}
