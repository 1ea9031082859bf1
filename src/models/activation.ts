// The middle of an MLP, as ops.

import type { GraphBuilder, Value } from "../graph/index.ts";
import type { Activation } from "./spec.ts";

export function activate(g: GraphBuilder, x: Value, activation: Activation): Value {
  switch (activation) {
    case "silu":
      return g.silu(x);
    case "gelu":
      return g.gelu(x, "none");
    case "gelu-tanh":
      return g.gelu(x, "tanh");
    case "relu":
      return g.relu(x);
    case "relu2": {
      const positive = g.relu(x);
      return g.multiply(positive, positive);
    }
  }
}
