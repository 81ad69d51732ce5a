/** What all answers have in common: CORS, the name of the PoP, tokens, body limits, and errors as JSON with a code. */
import { AgaroseError, errorAnswer, systemClock } from "@agarose/core";
import type { Context, MiddlewareHandler } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { bodyLimit } from "hono/body-limit";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { countAnswer, type AnalyticsBinding } from "./analytics.ts";
import { equalSecrets } from "../platform/crypto.ts";
import { log } from "../platform/log.ts";
import { RateLimiter } from "../platform/rate-limiter.ts";
import { traceFields, traceOf, type Trace } from "../tracing/trace.ts";
import { routeOf } from "../platform/routes.ts";
import { Invocation } from "../read/invocation.ts";
import { isolateOf, type Bindings } from "../read/isolate.ts";
import { clientAddress } from "../request-monitor/telemetry-token.ts";
import { checkAccess } from "./access.ts";
import { settingsOf, type VARIABLES } from "./settings.ts";

/** Bindings and variables of the Worker (wrangler.toml). */
export type Env = Bindings & { readonly [Name in keyof typeof VARIABLES]?: string } & {
  /** Takes a data point for each answer; without it, there are the counters of each isolate alone. */
  readonly ANALYTICS?: AnalyticsBinding;
  /** What the process uses, on Node. A Worker at Cloudflare cannot know it. */
  readonly PROCESS?: ProcessBinding;
};

/** Says what the process of a PoP on Node uses. */
export interface ProcessBinding {
  /** Bytes of resident memory, and seconds of CPU time since the start. */
  usage(): { readonly residentBytes: number; readonly cpuSeconds: number };
}

/** The Hono environment of every route. */
export interface AppEnv {
  Bindings: Env;
  Variables: {
    /** Set by `traceTheRequest`. */
    trace: Trace | undefined;
  };
}

/** Objects are public: any page may read them, and see what a read says about itself. */
export const openToAllOrigins: MiddlewareHandler<AppEnv> = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD", "POST", "OPTIONS"],
  allowHeaders: [
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "authorization",
    "cache-control",
    "content-type",
    // Pages that trace their requests send these.
    "traceparent",
    "tracestate",
  ],
  exposeHeaders: [
    "accept-ranges",
    "content-encoding",
    "content-length",
    "content-range",
    "etag",
    "last-modified",
    "server-timing",
    "x-agarose-error",
    "x-agarose-oic",
    "x-agarose-pop",
    "x-agarose-read",
  ],
  maxAge: 86_400,
});

/** Finds the trace of each request. With `LOG_TRACES`, a line says how the request was answered. */
export const traceTheRequest: MiddlewareHandler<AppEnv> = async (c, next) => {
  const trace = traceOf(c.req.raw.headers, new URL(c.req.url).searchParams);
  c.set("trace", trace);
  if (!trace?.sampled || !settingsOf(c.env).logTraces) return next();
  const at = Date.now();
  await next();
  // Until the head of the answer: its body is sent later.
  const answer = { route: routeOf(pathOf(c)), status: c.res.status, at, ms: Date.now() - at };
  log("info", "traced request", { pop: settingsOf(c.env).pop, ...traceFields(trace), ...answer });
};

/** Names the PoP in every answer, and counts it. */
export const nameThePop: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next();
  const { headers } = c.res;
  // An object may be for its own site alone.
  if (!headers.has("cross-origin-resource-policy")) headers.set("cross-origin-resource-policy", "cross-origin");
  headers.set("timing-allow-origin", "*");
  headers.set("x-agarose-pop", c.env.POP ?? "");
  // Workers Caching would keep a 200 that says nothing for two hours, and metrics are such answers.
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  const { env, req, res } = c;
  countAnswer(env.ANALYTICS, {
    pop: env.POP ?? "",
    route: routeOf(pathOf(c)),
    status: res.status,
    headers,
    entry: req.raw.cf?.["colo"] as string | undefined,
    version: env.VERSION?.id,
  });
  // A PoP with wrong variables has no memory to count in.
  if (c.res.status !== 500) {
    isolateOf(c.env).traffic.answered(pathOf(c), c.res.status, headers.get("x-agarose-error"));
  }
};

/** Refuses every request with CONFIG_INVALID while a variable is wrong. */
export const checkSettings: MiddlewareHandler<AppEnv> = async (c, next) => {
  settingsOf(c.env);
  await next();
};

const TOKEN_NEEDED = errorAnswer(
  new AgaroseError(
    "FORBIDDEN",
    "this route needs `Authorization: Bearer <ADMIN_TOKEN>`, and is closed while that secret is not set",
  ),
);
/** Wrong admin tokens that one client may send to an isolate. */
const guesses = new RateLimiter(systemClock, { burst: 10, perSecond: 1 / 60 });

/** Answers 401, or 400 to a malformed header, with WWW-Authenticate. */
const refusal = (status: number) => ({
  message: () => new Response(TOKEN_NEEDED.body, { status, headers: TOKEN_NEEDED.headers }),
});

/** Lets requests with `Authorization: Bearer <ADMIN_TOKEN>` pass. */
export const adminOnly: MiddlewareHandler<AppEnv> = bearerAuth({
  realm: "agarose",
  verifyToken: async (token, c: Context<AppEnv>) => {
    const { adminToken } = settingsOf(c.env).access;
    const client = clientAddress(c.req.raw.headers);
    if (guesses.isBlocked(client)) {
      throw new AgaroseError("RATE_LIMITED", "this client has sent too many wrong tokens: retry in a minute");
    }
    if (adminToken !== undefined && (await equalSecrets(token, adminToken))) return true;
    await guesses.spend(client);
    return false;
  },
  noAuthenticationHeader: refusal(401),
  invalidAuthenticationHeader: refusal(400),
  invalidToken: refusal(401),
});

/** Refuses bodies of more than `bytes` bytes with REQUEST_INVALID. */
export function bodyOfAtMost(bytes: number): MiddlewareHandler<AppEnv> {
  return bodyLimit({
    maxSize: bytes,
    onError: () => {
      throw new AgaroseError("REQUEST_INVALID", `the body is larger than ${bytes} bytes`, { max: bytes });
    },
  });
}

/** Reports `error` with its status and code; defects of this program also go to the log. */
export function refuse(error: unknown, c: Context<AppEnv>): Response {
  if (error instanceof HTTPException) return error.getResponse();
  const { status, headers, body } = errorAnswer(error);
  if (status === 500) log("error", "request failed", { error, ...traceFields(c.get("trace")) });
  return new Response(body, { status, headers });
}

/** The answer to a path or method that no route has. */
export function noSuchRoute({ req }: Context<AppEnv>): Response {
  const { method, path } = req;
  const { headers, body } = errorAnswer(
    new AgaroseError("REQUEST_INVALID", `there is no ${method} ${path} here`, { method, path }),
  );
  return new Response(body, { status: 404, headers });
}

/** Resolves and rejects as `checkAccess` does. */
export function checkReader(c: Context<AppEnv>, key: string): Promise<string | undefined> {
  const authorization = c.req.header("authorization");
  const query = new URL(c.req.url).searchParams;
  return checkAccess({ key, authorization, query, nowMs: Date.now() }, settingsOf(c.env).access);
}

/** Returns the invocation of a request. Throws CONFIG_INVALID. */
export function invocationOf(c: Context<AppEnv>): Invocation {
  return new Invocation(c.env, c.executionCtx, {
    client: clientAddress(c.req.raw.headers),
    trace: c.get("trace"),
  });
}

/** Returns the path as it was sent, percent-encoded; Hono's own path is decoded in part. */
export function pathOf(c: Context<AppEnv>): string {
  return new URL(c.req.url).pathname;
}
