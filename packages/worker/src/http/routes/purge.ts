/** `POST /v1/purge`: `{"keys": [...]}`, `{"prefix": "photos/"}` or both; what this PoP has of them goes. */
import { AgaroseError } from "@agarose/core";
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import { log } from "../../platform/log.ts";
import { purge, type PurgeRequest } from "../../cache-manager/purge.ts";

const KEYS_MAX = 100;

export async function purgeRoute(c: Context<AppEnv>): Promise<Response> {
  const request = parsePurge(await c.req.text());
  const invocation = new Invocation(c.env, c.executionCtx);
  const report = await purge(request, invocation);
  log("info", "purge", { pop: invocation.isolate.settings.pop, ...request, ...report });
  return c.json(report);
}

/** Throws REQUEST_INVALID. */
export function parsePurge(text: string): PurgeRequest {
  let json: { keys?: unknown; prefix?: unknown } | null;
  try {
    json = JSON.parse(text) as typeof json;
  } catch (error) {
    throw new AgaroseError("REQUEST_INVALID", "purge is not JSON", {}, error);
  }
  const { keys = [], prefix } = json ?? {};
  if (!Array.isArray(keys) || keys.length > KEYS_MAX || !keys.every((key) => typeof key === "string")) {
    throw new AgaroseError("REQUEST_INVALID", `purge has "keys" that are no list of at most ${KEYS_MAX} keys`);
  }
  if (prefix !== undefined && typeof prefix !== "string") {
    throw new AgaroseError("REQUEST_INVALID", 'purge has a "prefix" that is no text');
  }
  if (keys.length === 0 && prefix === undefined) {
    throw new AgaroseError(
      "REQUEST_INVALID",
      'purge names nothing: give "keys" or a "prefix", which may be "" for all',
    );
  }
  return { keys, prefix };
}
