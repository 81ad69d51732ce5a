/** Which objects keys name now. The limits of an invocation bound how many keys it looks up. */
import { toAgaroseError } from "@agarose/core";
import { inParallel } from "@agarose/core/async";
import { chunkBytes, chunkRegions, stripeCount, type Manifest } from "@agarose/core/format";
import type { ObjectShape } from "@agarose/solver/planner";
import { CONNECTIONS_MAX } from "../runtime/connections.ts";
import { shardBytes } from "../regions/region-latency.ts";

interface LookUpOptions {
  readonly findManifest: (key: string) => Promise<Manifest>;
  /** Returns whether the platform allows another manifest. */
  readonly mayLookUp: () => boolean;
  readonly onError: (error: unknown) => void;
  /** Objects to find at most; keys without an object do not count. Default: no limit. */
  readonly foundMax?: number;
}

interface LookedUp {
  /** By key; undefined where there is nothing to cache. Keys that could not be looked up are missing. */
  readonly objects: ReadonlyMap<string, ObjectShape | undefined>;
  /** By version. */
  readonly manifests: Map<string, Manifest>;
  /** Keys without an object. */
  readonly absent: readonly string[];
}

/** These errors prove that no object exists. Any other failure proves nothing. */
const GONE: ReadonlySet<string> = new Set(["OBJECT_NOT_FOUND", "KEY_INVALID", "KEY_TOO_LONG"]);

/** Keys without an object that one period looks up at most: each costs a request to every region. */
export const ABSENT_MAX = 100;

/** Looks up each key once. Never rejects. */
export async function lookUp(keys: Iterable<string>, options: LookUpOptions): Promise<LookedUp> {
  const { foundMax = Number.POSITIVE_INFINITY } = options;
  const objects = new Map<string, ObjectShape | undefined>();
  const manifests = new Map<string, Manifest>();
  const absent: string[] = [];
  await inParallel(CONNECTIONS_MAX, [...new Set(keys)], async (key) => {
    if (manifests.size >= foundMax || absent.length >= ABSENT_MAX || !options.mayLookUp()) return;
    try {
      const manifest = await options.findManifest(key);
      objects.set(key, shapeOf(manifest));
      manifests.set(manifest.version, manifest);
    } catch (error) {
      if (!GONE.has(toAgaroseError(error).code)) return options.onError(error);
      objects.set(key, undefined);
      absent.push(key);
    }
  });
  return { objects, manifests, absent };
}

/**
 * Returns what planning needs of an object: its manifest without the hashes, which are most of it. Undefined for an
 * empty or inline object, which has no chunk to cache.
 */
function shapeOf(manifest: Manifest): ObjectShape | undefined {
  const stripes = stripeCount(manifest);
  if (stripes === 0 || manifest.inline !== undefined) return undefined;
  const { key, version, k, m } = manifest;
  return {
    key,
    version,
    k,
    m,
    placement: chunkRegions(manifest),
    stripes,
    chunkBytes: chunkBytes(manifest),
    shardBytes: shardBytes(manifest),
  };
}
