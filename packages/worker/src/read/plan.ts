/** The plan of one object: its manifest, where its chunks are cached, and how far the regions are. */
import type { Manifest, Plan, PlanRegion } from "@agarose/core/format";
import { deliveryMs } from "@agarose/solver/planner";
import { holdersOf, objectInCache } from "../peers/peer-reading.ts";
import { estimateOf, shardBytes } from "../regions/region-latency.ts";
import type { Invocation } from "../runtime/invocation.ts";

/** A plan and what its reader's answer says beside it. */
export interface ServedPlan {
  readonly plan: Plan;
  readonly manifest: Manifest;
  /** OiC, object in cache: 0 to 1. */
  readonly oic: number;
}

/** The manifest that a client has. */
export interface KnownManifest {
  readonly version: string;
  /** Infinity where the client does not say it. */
  readonly generation: number;
}

/**
 * Resolves to the plan of `key`. Rejects as `Invocation.manifest` does.
 *
 * @param known the plan leaves its manifest out unless that is newer: a generation may bring other extra chunks.
 */
export async function planOf(invocation: Invocation, key: string, known?: KnownManifest): Promise<ServedPlan> {
  const { settings, breakers, signer } = invocation.isolate;
  const [manifest, { epoch, regions: estimates }, peers] = await Promise.all([
    invocation.manifest(key),
    invocation.configuration(),
    invocation.peers(),
  ]);
  const { version, k } = manifest;
  const { chunks: own, areProbable } = await invocation.cachedChunks(manifest);
  const holders = holdersOf(peers, version, breakers, own);
  const regions = settings.regions.map(async (region): Promise<PlanRegion> => {
    const { name, url } = region;
    const estimate = estimateOf(name, estimates);
    const signed = await signer.sign(region, manifest);
    return {
      name,
      url,
      meanMs: Math.max(1, deliveryMs(estimate, shardBytes(manifest))),
      sdMs: estimate.sdMs,
      ...(estimate.down || breakers.isOpen(name) ? { down: true } : {}),
      ...(signed && { signed }),
    };
  });
  const plan = {
    pop: settings.pop,
    epoch,
    version,
    ...(known?.version === version && known.generation >= manifest.generation ? {} : { manifest }),
    cached: own,
    ...(areProbable ? { probable: own } : {}),
    regions: await Promise.all(regions),
    delta: settings.delta,
    ...(holders.length > 0 ? { peers: holders } : {}),
  };
  return { plan, manifest, oic: objectInCache(k, [own, ...holders.map(({ chunks }) => chunks)]) };
}
