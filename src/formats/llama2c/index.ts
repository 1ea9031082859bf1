// llama2.c checkpoints: header and description.

export { describeLlama2c } from "./description.ts";
export { type Llama2cHeader, readLlama2cHeader } from "./header.ts";
