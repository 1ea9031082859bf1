import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/setup.ts"],
    testTimeout: 240_000,
    // Two workers: the machines that this must run on have two cores.
    maxWorkers: 2,
  },
});
export default config;
