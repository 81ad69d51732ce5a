/** The treatment of every answer: its headers, its trace, and that it is counted. */
import type { MiddlewareHandler } from "hono";
import { isolateOf } from "../../runtime/isolate.ts";
import { log } from "../../runtime/log.ts";
import { settingsOf } from "../../runtime/settings.ts";
import { traceFields, traceOf } from "../../runtime/trace.ts";
import { countAnswer } from "../analytics.ts";
import { pathOf, type AppEnv } from "../http.ts";
import { routeOf } from "../routes.ts";

/** Counts every answer: in the memory of the isolate, and in Analytics Engine where it is bound. */
export const countAnswers: MiddlewareHandler<AppEnv> = async (c, next) => {
  const at = Date.now();
  await next();
  const { env, req, res } = c;
  const { headers, status } = res;
  countAnswer(env.ANALYTICS, {
    pop: env.POP ?? "",
    route: routeOf(pathOf(c)),
    status,
    headers,
    entry: req.raw.cf?.["colo"] as string | undefined,
    version: env.VERSION?.id,
  });
  // A PoP with wrong variables has no memory to count in.
  if (status !== 500) {
    isolateOf(env).traffic.answered(pathOf(c), status, headers.get("x-agarose-error"), (Date.now() - at) / 1000);
  }
};

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
