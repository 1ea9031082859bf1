// The worker of training.ts: one training a message.

import { type TrainingCase, train } from "./training.ts";

self.onmessage = async ({ data }: MessageEvent<TrainingCase>) => {
  try {
    self.postMessage({ report: await train(data) });
  } catch (error) {
    self.postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
};
