/** The headers of every answer. */
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../http.ts";

/** Names the PoP in every answer, and says what caches and pages may do with it. */
export const headersOfAll: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next();
  const { headers } = c.res;
  // An object may be for its own site alone.
  if (!headers.has("cross-origin-resource-policy")) headers.set("cross-origin-resource-policy", "cross-origin");
  headers.set("timing-allow-origin", "*");
  headers.set("x-agarose-pop", c.env.POP ?? "");
  // Workers Caching would keep a 200 that says nothing for two hours, and metrics are such answers.
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
};
