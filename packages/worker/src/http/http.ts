/** The shared parts of routes: their environment, the invocation of a request, and errors as JSON with a code. */
import { AgaroseError } from "@agarose/core";
import { errorAnswer } from "@agarose/core/http";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import { clientAddress } from "../runtime/client-address.ts";
import { Invocation } from "../runtime/invocation.ts";
import type { Bindings } from "../runtime/isolate.ts";
import { log } from "../runtime/log.ts";
import { settingsOf, type VARIABLES } from "../runtime/settings.ts";
import { traceFields, type Trace } from "../runtime/trace.ts";
import { checkAccess } from "./access.ts";
import type { AnalyticsBinding } from "./analytics.ts";

/** Bindings and variables of the Worker (wrangler.toml). */
export type Env = Bindings & { readonly [Name in keyof typeof VARIABLES]?: string } & {
  /** Takes a data point for each answer; without it, there are the counters of each isolate alone. */
  readonly ANALYTICS?: AnalyticsBinding;
  /** Resources of the process, on Node. A Worker at Cloudflare cannot know it. */
  readonly PROCESS?: ProcessBinding;
};

/** Says what the process of a PoP on Node uses. */
interface ProcessBinding {
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

/** Reports `error` with its status and code; defects of this program also go to the log. */
export function refuse(error: unknown, c: Context<AppEnv>): Response {
  if (error instanceof HTTPException) return error.getResponse();
  const { status, headers, body } = errorAnswer(error);
  if (status === 500) log("error", "request failed", { error, ...traceFields(c.get("trace")) });
  if (!asksPassword(c, status)) return new Response(body, { status, headers });
  const authenticate = { "www-authenticate": 'Basic realm="agarose", charset="UTF-8"' };
  return new Response(body, { status: 401, headers: { ...headers, ...authenticate } });
}

/** Whether the browser shall ask its user for the password of a link, which is still good. */
function asksPassword({ req }: Context<AppEnv>, status: number): boolean {
  return status === 403 && req.query("password") !== undefined && Number(req.query("expires")) > Date.now() / 1000;
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
