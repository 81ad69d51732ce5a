/** `POST /v1/purge`: removes `{"keys": [...]}`, `{"prefix": "photos/"}` or both from this PoP. */
import { AgaroseError } from "@agarose/core";
import type { Context } from "hono";
import * as v from "valibot";
import { purge, type PurgeReport, type PurgeRequest } from "../../cache/purge.ts";
import { log } from "../../runtime/log.ts";
import { problemOf } from "../../runtime/variables.ts";
import { Invocation } from "../../runtime/invocation.ts";
import { everyContinent } from "../../runtime/continents.ts";
import type { AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";

const PURGED_KEYS_MAX = 100;
/** 100 of the longest keys in JSON. */
export const PURGE_BYTES_MAX = 512 * 1024;

const schema = v.pipe(
  v.object({
    keys: v.optional(
      v.pipe(v.array(v.string()), v.maxLength(PURGED_KEYS_MAX, `must name at most ${PURGED_KEYS_MAX} keys`)),
      [],
    ),
    prefix: v.optional(v.string()),
  }),
  v.check(
    ({ keys, prefix }) => keys.length > 0 || prefix !== undefined,
    'names nothing: give "keys" or a "prefix", which may be "" for all',
  ),
);

/** Answers with a report of what was removed, as JSON. */
export async function purgeRoute(c: Context<AppEnv>): Promise<Response> {
  const request = parsePurge(await c.req.text());
  const reports: PurgeReport[] = [];
  for (const env of everyContinent(c.env)) reports.push(await purge(request, new Invocation(env, c.executionCtx)));
  const sum = (count: (report: PurgeReport) => number): number => reports.reduce((all, one) => all + count(one), 0);
  const report: PurgeReport = {
    epoch: Math.max(...reports.map(({ epoch }) => epoch)),
    objects: sum(({ objects }) => objects),
    stripes: sum(({ stripes }) => stripes),
    left: sum(({ left }) => left),
    errors: reports.flatMap(({ errors }) => errors),
  };
  log("info", "purge", { pop: settingsOf(c.env).pop, ...request, ...report });
  return c.json(report);
}

/** Returns the text as a request. Throws REQUEST_INVALID. */
export function parsePurge(text: string): PurgeRequest {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(undefined, "is not JSON"), schema), text);
  if (!result.success) throw new AgaroseError("REQUEST_INVALID", `purge ${problemOf(result.issues[0])}`);
  const { keys, prefix } = result.output;
  return { keys, prefix };
}
