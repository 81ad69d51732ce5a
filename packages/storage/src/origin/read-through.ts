/** Reads of keys that the regions know nothing of: the object of the origin is adopted first. */
import { rm } from "node:fs/promises";
import { toAgaroseError } from "@agarose/core";
import type { Manifest } from "@agarose/core/format";
import type { S3Store } from "../buckets/s3-store.ts";
import { makeTempFolder } from "../files/owned-files.ts";
import { Pace } from "../listing/pace.ts";
import { readManifest, type ReadHow } from "../objects/manifests.ts";
import type { DeploymentParts } from "../parts.ts";
import { adoptObject } from "./adopt-object.ts";
import { listedNow } from "./origin-object.ts";

/** Adoptions under way, so that many readers of a key bring it once. */
const underWay = new WeakMap<S3Store, Adoptions>();
type Adoptions = Map<string, Promise<boolean | undefined>>;

/**
 * `readManifest`, which adopts the object of the origin where the regions have neither an object nor a tombstone. It
 * throws as `readManifest` and `putObject` do, and SOURCE_FAILED or READ_TIMEOUT when the origin does not answer.
 */
export async function readOrAdopt(key: string, context: DeploymentParts, how: ReadHow = {}): Promise<Manifest> {
  try {
    return await readManifest(key, context, how);
  } catch (cause) {
    const { origin } = context;
    // A generation is that of a tombstone.
    const { code, details } = toAgaroseError(cause);
    if (!origin || code !== "OBJECT_NOT_FOUND" || "generation" in details) throw cause;
    if (!(await adoptTogether(key, origin, context))) throw cause;
    return readManifest(key, context, how);
  }
}

async function adoptTogether(key: string, origin: S3Store, context: DeploymentParts): Promise<boolean> {
  const running: Adoptions = underWay.get(origin) ?? new Map();
  underWay.set(origin, running);
  for (;;) {
    const adoption = running.get(key) ?? adoptNow(key, origin, context).finally(() => running.delete(key));
    running.set(key, adoption);
    const isKnown = await adoption;
    context.signal.throwIfAborted();
    // The reader that began it has left.
    if (isKnown !== undefined) return isKnown;
  }
}

/** Whether the regions may know the key now; undefined where it was aborted. */
async function adoptNow(key: string, origin: S3Store, context: DeploymentParts): Promise<boolean | undefined> {
  try {
    const listed = await listedNow(key, origin, context.signal);
    if (!listed) return false;
    const folder = await makeTempFolder("adopt");
    try {
      const result = await adoptObject(listed, { origin, folder, pace: new Pace(undefined, context) }, context);
      if (result.outcome === "failed") throw result.error;
      return true;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  } catch (error) {
    if (context.signal.aborted) return undefined;
    throw error;
  }
}
