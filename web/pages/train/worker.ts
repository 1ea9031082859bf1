// The worker of one run: the library trains, this passes on what is asked and what is told.

import { LiveTraining, type TrainingWord } from "../../../src/evaluation/live-training.ts";
import { pageBackend, threadsEach } from "../../parts/runtime.ts";
import type { ToWorker } from "./messages.ts";

const tell = (word: TrainingWord): void => self.postMessage(word);

let training: LiveTraining | undefined;

self.onmessage = ({ data: message }: MessageEvent<ToWorker>) => {
  if (message.kind !== "start") {
    void training?.ask(message.kind);
    return;
  }
  const { question, provider, models } = message;
  try {
    training = new LiveTraining(question, {
      backend: pageBackend(provider),
      threads: threadsEach(models, provider),
      onWord: tell,
    });
    void training.start();
  } catch (error) {
    tell({ kind: "error", message: error instanceof Error ? error.message : String(error) });
  }
};
