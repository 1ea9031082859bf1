import { defineConfig, type UserConfig } from "tsdown";

/** Node's modules are asked for when a path is opened, never in a browser; but webpack and esbuild refuse to bundle for a
 *  browser what so much as names them in an import. */
const builtinsByName: NonNullable<UserConfig["plugins"]> = {
  name: "builtins-by-name",
  renderChunk: (code: string) => code.replace(/\bimport\((["']node:[\w/]+["'])\)/g, "process.getBuiltinModule($1)"),
};

// One entry a sub-path export of package.json, and the command line.
const config: UserConfig = defineConfig({
  entry: {
    index: "src/index.ts",
    tensor: "src/tensor/index.ts",
    encodings: "src/encodings/index.ts",
    graph: "src/graph/index.ts",
    formats: "src/formats/index.ts",
    models: "src/models/index.ts",
    engine: "src/engine/index.ts",
    training: "src/training/index.ts",
    endpoints: "src/endpoints/index.ts",
    evaluation: "src/evaluation/index.ts",
    advice: "src/advice/index.ts",
    cli: "src/cli/cli.ts",
  },
  format: "esm",
  platform: "neutral",
  target: "node20",
  dts: { oxc: true },
  fixedExtension: false,
  plugins: [builtinsByName],
  deps: { neverBundle: [/^node:/] },
  clean: true,
});
export default config;
