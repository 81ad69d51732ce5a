/** Counts the answers: in the memory of the isolate, and in Analytics Engine where it is bound. */
import type { MiddlewareHandler } from "hono";
import { isolateOf } from "../../runtime/isolate.ts";
import { countAnswer } from "../analytics.ts";
import { pathOf, type AppEnv } from "../http.ts";
import { routeOf } from "../routes.ts";

/** Counts every answer. */
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
