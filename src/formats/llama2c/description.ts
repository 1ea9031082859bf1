// A llama2.c header as a ModelDescription. The file holds sizes only; everything about positions is the format's own
// convention: RoPE on neighbouring channels, theta 10000 (run.c computes it so).

import type { ModelDescription } from "../model-description.ts";
import type { Llama2cHeader } from "./header.ts";

/** What a llama2.c checkpoint is: a Llama with RoPE, theta and layout assumed. */
export function describeLlama2c(header: Llama2cHeader): ModelDescription {
  const { hiddenSize, numLayers, numHeads, numKeyValueHeads, vocabSize, maxPositionEmbeddings } = header;
  const headDim = hiddenSize / numHeads;
  return {
    name: header.file.replace(/\.bin$/i, ""),
    format: "llama2.c",
    modelType: "llama",
    numLayers,
    hiddenSize,
    numHeads,
    numKeyValueHeads,
    headDim,
    vocabSize,
    numParameters: header.numParameters,
    maxPositionEmbeddings,
    trainedLength: maxPositionEmbeddings,
    groups: [
      {
        layers: Array.from({ length: numLayers }, (_, layer) => layer),
        position: {
          site: "query-key",
          kind: "rope",
          headDim,
          layout: "interleaved",
          rope: { ropeType: "default", ropeTheta: 10_000 },
        },
        slidingWindow: null,
        attentionChunkSize: null,
        logitTemperature: null,
        softmaxFactor: 1,
      },
    ],
    findings: [
      {
        code: "assumed-rope-theta",
        severity: "note",
        where: "rope_theta",
        got: null,
        expected: "10000",
        why: "a llama2.c file has no theta; its reader computes with 10000",
        fix: "",
      },
      {
        code: "assumed-rotary-layout",
        severity: "note",
        where: "rope",
        got: null,
        expected: "interleaved",
        why: "a llama2.c file does not say which channels pair up; its reader rotates neighbours",
        fix: "",
      },
    ],
  };
}
