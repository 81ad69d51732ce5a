/** `GET /healthz`: this PoP runs and is configured soundly. Asks nobody else, so it is cheap to poll. */
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { isolateOf } from "../../read/isolate.ts";

export function healthz(c: Context<AppEnv>): Response {
  const { pop } = isolateOf(c.env).settings;
  return c.json({ ok: true, pop }, 200, { "cache-control": "no-store" });
}
