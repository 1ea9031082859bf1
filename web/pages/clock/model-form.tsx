// Which model's hands: built in, typed, or read from the headers of files that are dropped.

import type { JSX } from "preact";
import { Choice, type Option, TextField } from "../../parts/controls.tsx";
import { useDropping } from "../../parts/dropping.ts";
import { words } from "../../shell/preferences.ts";
import {
  builtInNames,
  description,
  droppedName,
  groupIndex,
  headDim,
  model,
  readFiles,
  reading,
  scaling,
  scalingError,
  target,
  targetError,
  theta,
  trained,
} from "./state.ts";

/** Published shapes: base, head dimension, trained length. */
const shapes = [
  { name: "Llama 2", theta: 10000, dim: 128, trained: 4096 },
  { name: "Llama 3", theta: 500000, dim: 128, trained: 8192 },
  { name: "Qwen2.5", theta: 1000000, dim: 128, trained: 32768 },
  { name: "gpt-oss", theta: 150000, dim: 64, trained: 4096 },
] as const;

const strategies = ["linear:4", "ntk:4", "dynamic:4", "yarn:4", "llama3:8", "drop"];

export function ModelForm(): JSX.Element {
  const text = words.value.clock;
  const options: Option[] = [
    { value: "typed", label: text.typed },
    ...builtInNames.value.map((name) => ({ value: name, label: text.builtIn(name) })),
  ];
  if (model.value === "file") options.push({ value: "file", label: text.file(droppedName.value ?? "—") });
  else if (droppedName.value !== null) options.push({ value: "file", label: text.file(droppedName.value) });
  // A link may name a model before the list of them has come.
  if (!options.some(({ value }) => value === model.value)) {
    options.push({ value: model.value, label: text.builtIn(model.value) });
  }
  const groups = description.value?.groups ?? [];
  const dropping = useDropping<HTMLDivElement>((given) => void readFiles(given));
  return (
    <form class="card controls" onSubmit={(event) => event.preventDefault()}>
      <div class="row">
        <Choice label={text.model} value={model} options={options} />
        {model.value === "typed" ? (
          <>
            <TextField label={text.theta} value={theta} numeric />
            <TextField label={text.headDim} value={headDim} numeric />
            <TextField label={text.trained} value={trained} numeric />
          </>
        ) : null}
        {groups.length < 2 ? null : (
          <Choice
            label={text.layers}
            value={groupIndex}
            options={groups.map(({ layers, layerType }, index) => ({
              value: String(index),
              label: text.layersOf(layers.length, layerType ?? ""),
            }))}
          />
        )}
        <TextField label={text.target} value={target} hint={text.targetHint} error={targetError.value} />
        <TextField
          label={text.scaling}
          value={scaling}
          hint={text.scalingHint}
          error={scalingError.value}
          suggestions={strategies}
        />
      </div>
      <div class="row chips">
        {model.value === "typed" ? (
          <fieldset>
            <legend>{text.shapes}</legend>
            {shapes.map((shape) => (
              <button
                type="button"
                class="chip"
                key={shape.name}
                aria-pressed={
                  theta.value === String(shape.theta) &&
                  headDim.value === String(shape.dim) &&
                  trained.value === String(shape.trained)
                }
                onClick={() => {
                  theta.value = String(shape.theta);
                  headDim.value = String(shape.dim);
                  trained.value = String(shape.trained);
                }}
              >
                {shape.name}
              </button>
            ))}
          </fieldset>
        ) : null}
        <fieldset>
          <legend>{text.scaling}</legend>
          {["", ...strategies].map((name) => (
            <button
              type="button"
              class="chip"
              key={name}
              aria-pressed={scaling.value.trim() === name}
              onClick={() => {
                scaling.value = name;
              }}
            >
              {name === "" ? text.scalingNone : name}
            </button>
          ))}
        </fieldset>
      </div>
      <div {...dropping}>
        <span>{text.drop} </span>
        <label class="file">
          <span>{text.choose}</span>
          <input
            type="file"
            multiple
            accept=".json,.safetensors,.gguf,.bin"
            onChange={(event) => void readFiles([...(event.currentTarget.files ?? [])])}
          />
        </label>
        <small>{text.dropNote}</small>
      </div>
      {reading.value.kind === "error" ? (
        <p class="problem" role="alert">
          {reading.value.message}
        </p>
      ) : null}
    </form>
  );
}
