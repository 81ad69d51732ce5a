/** Which objects keys name now, as far as the limits of an invocation allow to look. */
import { toAgaroseError, type Manifest } from "@agarose/core";
import { CONNECTIONS_MAX } from "../../platform/connections.ts";
import { inParallel } from "../../platform/async.ts";
import { shapeOf, type ObjectShape } from "./object-shape.ts";

/** How to look keys up. */
export interface LookUpOptions {
  readonly findManifest: (key: string) => Promise<Manifest>;
  /** Returns whether the platform allows another manifest. */
  readonly mayLookUp: () => boolean;
  readonly onError: (error: unknown) => void;
}

/** What keys name. */
export interface LookedUp {
  /** By key; undefined where there is nothing to cache. Keys that could not be looked up are missing. */
  readonly objects: ReadonlyMap<string, ObjectShape | undefined>;
  /** By version. */
  readonly manifests: Map<string, Manifest>;
}

/** These errors prove that no object exists. Any other failure proves nothing. */
const GONE: ReadonlySet<string> = new Set(["OBJECT_NOT_FOUND", "KEY_INVALID", "KEY_TOO_LONG"]);

/** Looks up each key once. Never rejects. */
export async function lookUp(keys: Iterable<string>, options: LookUpOptions): Promise<LookedUp> {
  const objects = new Map<string, ObjectShape | undefined>();
  const manifests = new Map<string, Manifest>();
  await inParallel(CONNECTIONS_MAX, [...new Set(keys)], async (key) => {
    if (!options.mayLookUp()) return;
    try {
      const manifest = await options.findManifest(key);
      objects.set(key, shapeOf(manifest));
      manifests.set(manifest.version, manifest);
    } catch (error) {
      if (GONE.has(toAgaroseError(error).code)) objects.set(key, undefined);
      else options.onError(error);
    }
  });
  return { objects, manifests };
}
