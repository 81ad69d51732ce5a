/** The plan of one object: its manifest, what is cached of it here and at peers, and how far the regions are. */
import { LATENCY_UNKNOWN, type Manifest, type Plan, type PlanRegion } from "@agarose/core";
import type { Context } from "hono";
import { deliveryMs, shardBytes, type Configuration, type RegionEstimate } from "../state/configuration.ts";
import { mayRead, type AppEnv } from "../http/http.ts";
import type { Invocation, Isolate } from "./isolate.ts";
import { holdersOf, objectInCache } from "../peers/peer-reading.ts";
import { telemetryToken } from "../http/routes/telemetry.ts";

export interface PlannedObject {
  readonly plan: Plan;
  readonly manifest: Manifest;
  /** Object in cache, 0 to 1. */
  readonly oic: number;
}

/**
 * The plan for whoever asks. Rejects with FORBIDDEN where the request may not read the key, and as the look for its manifest
 * does.
 *
 * @param knownVersion of a manifest that the client has: it is left out then.
 */
export async function planFor(
  c: Context<AppEnv>,
  invocation: Invocation,
  key: string,
  knownVersion?: string,
): Promise<PlannedObject> {
  const { isolate } = invocation;
  const isPrivate = await mayRead(c, key, isolate.settings);
  const [manifest, configuration, peers] = await Promise.all([
    invocation.manifest(key),
    invocation.configuration(),
    invocation.peers(),
  ]);
  const own = configuration.cached[manifest.version]?.chunks ?? [];
  const holders = holdersOf(peers, manifest.version, isolate.breakers, own);
  const plan = {
    ...(await planOf(manifest, configuration, isolate, knownVersion)),
    ...(holders.length > 0 ? { peers: holders } : {}),
    ...(isPrivate && { private: true }),
    ...(await telemetryToken(invocation, c.req.raw.headers)),
  };
  return { plan, manifest, oic: objectInCache(manifest.k, [own, ...holders.map(({ chunks }) => chunks)]) };
}

async function planOf(
  manifest: Manifest,
  { epoch, cached, regions }: Configuration,
  { settings, breakers, signer }: Isolate,
  knownVersion: string | undefined,
): Promise<Plan> {
  const planRegions = settings.regions.map(async (region): Promise<PlanRegion> => {
    const { name, url } = region;
    const unknown: RegionEstimate = { name, ...LATENCY_UNKNOWN, down: false };
    const estimate = regions.find((candidate) => candidate.name === name) ?? unknown;
    const { sdMs, down } = estimate;
    const signed = await signer.sign(region, manifest);
    return {
      name,
      url,
      meanMs: deliveryMs(estimate, shardBytes(manifest)),
      sdMs,
      ...(down || breakers.isOpen(name) ? { down: true } : {}),
      ...(signed && { signed }),
    };
  });
  return {
    pop: settings.pop,
    epoch,
    version: manifest.version,
    ...(knownVersion === manifest.version ? {} : { manifest }),
    cached: cached[manifest.version]?.chunks ?? [],
    regions: await Promise.all(planRegions),
    delta: settings.delta,
  };
}
