// The distance page's words in English.

export const distance = {
  name: "Distance",
  title: "What a distance costs",
  lead: "The score of a query against a key some tokens before it, when both hold the same ideal vectors: all that is left is what the encoding makes of the distance.",
  factor: "Factor of the scalings",
  reach: "Longest distance",
  read: "Read at distance",
  rotary: "Rotary and sinusoidal",
  rotaryLead:
    "A score is a mean of cosines, one a hand; half of it for sinusoidal rows, and YaRN's is multiplied by its attention factor twice. It falls slowly and in ripples: a key far away may score higher than a nearer one. A scaling turns the hands more slowly, and so moves the curve out. Dynamic is drawn as it is at the longest distance.",
  bias: "Biases on the score",
  biasLead:
    "These are taken off the score before the softmax, and they only ever fall. ALiBi of eight heads is drawn for its steepest head and its flattest (dashed); KERPLE is its logarithmic kernel with both numbers 1.",
  curves: {
    rope: "RoPE as trained",
    linear: "Linear",
    ntk: "NTK",
    dynamic: "Dynamic NTK",
    yarn: "YaRN",
    llama3: "Llama 3",
    sinusoidal: "Sinusoidal",
    alibi: "ALiBi",
    kerple: "KERPLE",
  },
  head: (name: string, head: number) => `${name}, head ${head}`,
  at: (distance: string) => `At distance ${distance}`,
  nothing: "Switch a curve on to see it.",
} as const;
