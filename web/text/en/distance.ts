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
    "These are added to the score before the softmax. ALiBi and KERPLE only ever fall: ALiBi of eight heads is drawn for its steepest head and its flattest (dashed), KERPLE is its logarithmic kernel with both numbers 1. T5's numbers are learned, one a bucket and head: those of the four heads of longhand-t5.",
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
    t5: "T5 (longhand-t5)",
  },
  bucket: "T5's bucket",
  vectors: {
    title: "The same with real vectors",
    lead: "One query and one key of the first layer of a built-in model, the key moved away token by token: what would enter the softmax. In the first layer both depend on the token alone (a byte, here). The model was trained at 256, and the scalings take their factor from above.",
    model: "Model",
    query: "Query of the byte",
    key: "Key of the byte",
    head: "Head",
    score: "score",
    oneByte: "One letter of ASCII, please.",
    curves: {
      own: "As trained",
      linear: "Linear",
      ntk: "NTK",
      yarn: "YaRN",
      drop: "Positions dropped",
    },
  },
  head: (name: string, head: number) => `${name}, head ${head}`,
  at: (distance: string) => `At distance ${distance}`,
  nothing: "Switch a curve on to see it.",
} as const;
