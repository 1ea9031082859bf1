// The browser that the browser tests run in: a Chromium that is there, or Debian's, installed when that is allowed.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const places = [
  process.env.LONGHAND_CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of a Chromium, or null. */
export function findChromium() {
  return places.find((path) => path !== undefined && existsSync(path)) ?? null;
}

/** As findChromium, after an attempt to install Debian's package where this process may. */
export function ensureChromium() {
  const found = findChromium();
  if (found !== null || process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return found;
  console.error("longhand: installing Debian's chromium for the browser tests");
  const options = {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  };
  spawnSync("apt-get", ["update", "-qq"], options);
  spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], options);
  return findChromium();
}
