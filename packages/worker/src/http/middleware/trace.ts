/** The trace of each request. */
import type { MiddlewareHandler } from "hono";
import { log } from "../../runtime/log.ts";
import { settingsOf } from "../../runtime/settings.ts";
import { traceFields, traceOf } from "../../runtime/trace.ts";
import { pathOf, type AppEnv } from "../http.ts";
import { routeOf } from "../routes.ts";

/** Finds the trace of each request. With `LOG_TRACES`, a line says how the request was answered. */
export const traceTheRequest: MiddlewareHandler<AppEnv> = async (c, next) => {
  const trace = traceOf(c.req.raw.headers, new URL(c.req.url).searchParams);
  c.set("trace", trace);
  if (!trace?.sampled || !settingsOf(c.env).logTraces) return next();
  const at = Date.now();
  await next();
  // Until the head of the answer: its body is sent later.
  const answer = {
    "http.route": routeOf(pathOf(c)),
    "http.response.status_code": c.res.status,
    at,
    ms: Date.now() - at,
  };
  log("info", "traced request", { pop: settingsOf(c.env).pop, ...traceFields(trace), ...answer });
};
