// How a strategy stands in a result: what can be handed back to --scaling or --drop.

/** `{ scaling }` as its short form, a rope_parameters object, or null for drop's own option. */
export function scalingOf(encoding: Readonly<Record<string, unknown>>): unknown {
  const { scaling, drop } = encoding as {
    scaling?: { kind: string; name?: string; factor?: number; value?: unknown };
    drop?: unknown;
  };
  if (scaling === undefined) return { drop };
  if (scaling.kind === "parameters") return scaling.value;
  if (scaling.kind !== "short") return scaling.kind;
  return scaling.name === "dynamic-linear" || scaling.name === "dynamic-yarn"
    ? scaling.name
    : `${scaling.name}:${scaling.factor}`;
}
