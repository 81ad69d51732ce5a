/** What all answers have in common: CORS, the name of the PoP, and errors as JSON with a code. */
import { AgaroseError, errorAnswer } from "@agarose/core";
import type { Context, MiddlewareHandler } from "hono";
import { checkAccess } from "./access.ts";
import type { Env, Settings } from "./settings.ts";
import { isolateOf } from "../read/isolate.ts";
import { log } from "../platform/log.ts";

/** The Hono environment of every route. */
export interface AppEnv {
  Bindings: Env;
}

const EXPOSED =
  "accept-ranges, content-length, content-range, etag, last-modified, server-timing, x-agarose-error, x-agarose-oic, x-agarose-pop, x-agarose-read";

/** Objects are public: any page may read them, and see what a read says about itself. */
export const openToAllOrigins: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next();
  const { headers } = c.res;
  headers.set("access-control-allow-origin", "*");
  headers.set("access-control-expose-headers", EXPOSED);
  headers.set("cross-origin-resource-policy", "cross-origin");
  headers.set("timing-allow-origin", "*");
  headers.set("x-agarose-pop", c.env.POP);
  // A PoP of wrong variables has no memory to count in.
  if (c.res.status !== 500) {
    isolateOf(c.env).traffic.answered(pathOf(c), c.res.status, headers.get("x-agarose-error"));
  }
};

/** The answer to a preflight request. */
export function preflight(): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
      "access-control-allow-headers":
        "range, if-match, if-none-match, if-modified-since, if-unmodified-since, if-range, authorization, cache-control, content-type",
      "access-control-max-age": "86400",
    },
  });
}

/** Reports `error` with its status and code; defects of ours also go to the log. */
export function refuse(error: unknown): Response {
  const { status, headers, body } = errorAnswer(error);
  if (status === 500) log("error", "request failed", { error });
  return new Response(body, { status, headers });
}

/** The answer to a path that is none of ours, or to a method that it does not have. */
export function noSuchRoute({ req }: Context<AppEnv>): Response {
  const { method, path } = req;
  const { headers, body } = errorAnswer(
    new AgaroseError("REQUEST_INVALID", `there is no ${method} ${path} here`, { method, path }),
  );
  return new Response(body, { status: 404, headers });
}

/** Lets a request read `key`, and says whether the key is private. Throws FORBIDDEN. */
export function mayRead(c: Context<AppEnv>, key: string, settings: Settings): Promise<boolean> {
  const authorization = c.req.header("authorization");
  const query = new URL(c.req.url).searchParams;
  return checkAccess({ key, authorization, query, nowMs: Date.now() }, settings.access);
}

/** The path as it was sent: percent-encoded, where Hono's own is decoded in part. */
export function pathOf(c: Context<AppEnv>): string {
  return new URL(c.req.url).pathname;
}
