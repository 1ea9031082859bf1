// The order page's words in English.

export const order = {
  name: "Order",
  title: "Attention alone does not see order",
  lead: "Two sentences of the same tokens go through a small transformer with random weights, and both end in the same mark ⏎. Without an encoding and without a mask, attention adds up a set: what the end mark becomes is the same, to the last digit. Then switch something on.",
  first: "First sentence",
  second: "Second sentence",
  presets: "Examples",
  encoding: "Position encoding",
  encodings: {
    none: "None",
    sinusoidal: "Sinusoidal",
    learned: "Learned absolute",
    rope: "RoPE",
    alibi: "ALiBi",
    t5: "T5 bias",
    kerple: "KERPLE",
  },
  mask: "Causal mask",
  secondLayer: "Second layer",
  lastToken: "What the last token has become",
  identical: (count: number) => `Identical: all ${count} numbers have the same bits.`,
  different: (largest: string) => `Different: by up to ${largest}.`,
  otherTokens: "These sentences do not hold the same tokens, so a difference says nothing about order.",
  difference: "Difference",
  explain: "Computed in float64 by a graph of the library, shown as float32.",
  digits: "Every digit",
  channel: "Channel",
  attention: "Attention of the last token",
  attentionHint: "The share of its attention that the end mark gives to each token.",
  layerHead: (layer: number, head: number) => `Layer ${layer}, head ${head}`,
  overview: "All of them at once",
  overviewLead:
    "The largest difference for these two sentences. A causal mask alone is enough from the second layer on: a token in the middle has seen another beginning, and the last one reads it there. That is how NoPE knows order.",
  variant: (causal: boolean, layers: number) =>
    `${causal ? "Causal mask" : "No mask"}, ${layers} ${layers === 1 ? "layer" : "layers"}`,
  same: "identical",
} as const;
