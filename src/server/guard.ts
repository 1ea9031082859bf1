// Who may talk to the lab: a browser on this machine, from the lab's own page. A name that an attacker's DNS points at
// 127.0.0.1 arrives with that name as Host (DNS rebinding); another site's page arrives with its own Origin.

import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";

/** Names of this machine that a person may type. */
const ownNames = ["127.0.0.1", "localhost"];

/** Nothing from elsewhere: no script, style, picture, font, frame or connection. wasm-unsafe-eval lets WebAssembly compile. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const securityHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": contentSecurityPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  // Under these two a page may share memory between threads, which WebAssembly's threads need.
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/** Why a request is refused; null when it is not. */
export function whyRefused(headers: Headers, port: number): string | null {
  const own = ownNames.map((name) => `${name}:${port}`);
  const host = headers.get("host") ?? "";
  if (!own.includes(host)) return `Host: expected ${own[0]}, got another name; open http://${own[0]}/`;
  const origin = headers.get("origin");
  if (origin !== null && !own.some((name) => origin === `http://${name}`)) {
    return "Origin: expected the lab's own page, got another site";
  }
  // A link from elsewhere may open the page; nothing else of another site's may load from here.
  const site = headers.get("sec-fetch-site");
  const navigates = headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";
  if ((site === "cross-site" || site === "same-site") && !navigates) {
    return "Sec-Fetch-Site: expected the lab's own page, got another site";
  }
  return null;
}

/** The header that carries the token. */
export const tokenHeader = "x-longhand-token";

/** Whether a request may write, or read outside the runs' folder: it knows what the terminal said. */
export function hasToken(headers: Headers, token: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  // Of equal lengths, so that the time it takes tells nothing.
  return timingSafeEqual(hash(headers.get(tokenHeader) ?? ""), hash(token));
}

/** Refuses what does not carry the token. */
export function tokenGuard(token: string): MiddlewareHandler {
  return async (c, next) => {
    if (!hasToken(c.req.raw.headers, token)) {
      return c.text("longhand lab: expected the token; open the address that the terminal shows\n", 401);
    }
    await next();
  };
}

/** Methods that the local API takes; elsewhere there is only reading. */
const apiMethods = ["GET", "HEAD", "POST", "DELETE"];

/** Refuses what is not the lab's own page, and sets the headers that hold the page to this machine. */
export function guard(port: () => number): MiddlewareHandler {
  return async (c, next) => {
    for (const [name, value] of Object.entries(securityHeaders)) c.header(name, value);
    const refused = whyRefused(c.req.raw.headers, port());
    if (refused !== null) return c.text(`longhand lab: ${refused}\n`, 403);
    const allowed = c.req.path.startsWith("/api/") ? apiMethods : apiMethods.slice(0, 2);
    if (!allowed.includes(c.req.method)) {
      return c.text(`longhand lab: expected ${allowed.join(" or ")}, got ${c.req.method}\n`, 405);
    }
    await next();
  };
}
