/** `GET /v1/oic/<key>`: object in cache, the part of an object that this PoP and its peers hold together. */
import { keyInPath } from "@agarose/core";
import type { Context } from "hono";
import { pathOf, type AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import { peerState } from "../../request-monitor/monitor-shards.ts";
import { objectInCache } from "../../peers/peer-reading.ts";

const PREFIX = "/v1/oic/";

export async function peerOic(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PREFIX) ?? "";
  const invocation = new Invocation(c.env, c.executionCtx);
  const { settings } = invocation.isolate;
  const [{ version, k }, configuration] = await Promise.all([invocation.manifest(key), invocation.configuration()]);
  const here = configuration.cached[version]?.chunks ?? [];
  const holders = new Map(settings.peers ? await peerState(c.env).holders(version) : []);
  return c.json({
    key,
    version,
    k,
    oic: objectInCache(k, [here, ...holders.values()]),
    chunks: { [settings.pop]: here, ...Object.fromEntries(holders) },
  });
}
