// Installs the packages when they are missing or older than the lock file. No dependency of its own.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs a command in the project's folder and ends this process with its code when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    shell: process.platform === "win32",
    ...options,
  });
  if (result.error) throw result.error;
  if (result.status !== 0) process.exit(result.status ?? 1);
}

export function ensureInstalled() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`longhand: expected Node 20.19 or later, got ${process.versions.node}; install a newer Node`);
    process.exit(2);
  }
  const lock = join(root, "package-lock.json");
  const marker = join(root, "node_modules", ".package-lock.json");
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(lock).mtimeMs) return;
  // No package here needs its install script; onnxruntime-node's would look for CUDA on the network.
  run("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], {
    env: { ...process.env, ONNXRUNTIME_NODE_INSTALL_CUDA: "skip" },
  });
}
