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

/** One adoption for all readers of a key. It ends with the last of them. */
interface Adoption {
  /** Whether the regions may know the key now. */
  readonly work: Promise<boolean>;
  readonly stop: AbortController;
  readers: number;
}

/** Those under way, by key. */
const underWay = new WeakMap<S3Store, Map<string, Adoption>>();

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

/** Adopts the object of the origin, if there is one, and returns whether the regions may know the key now. */
export async function adoptTogether(key: string, origin: S3Store, context: DeploymentParts): Promise<boolean> {
  const { signal } = context;
  signal.throwIfAborted();
  const running = underWay.get(origin) ?? new Map<string, Adoption>();
  underWay.set(origin, running);
  const adoption = running.get(key) ?? begin(key, origin, context);
  running.set(key, adoption);
  const forget = (): void => void (running.get(key) === adoption && running.delete(key));
  adoption.work.then(forget, forget);
  adoption.readers++;
  const left = Promise.withResolvers<never>();
  const leave = (): void => left.reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([adoption.work, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    if (--adoption.readers === 0) {
      forget();
      adoption.stop.abort();
    }
  }
}

function begin(key: string, origin: S3Store, context: DeploymentParts): Adoption {
  const stop = new AbortController();
  return { work: adoptNow(key, origin, { ...context, signal: stop.signal }), stop, readers: 0 };
}

async function adoptNow(key: string, origin: S3Store, context: DeploymentParts): Promise<boolean> {
  const listed = await listedNow(key, origin, context.signal);
  if (!listed) return false;
  const folder = await makeTempFolder("adopt");
  try {
    const result = await adoptObject(listed, { origin, folder, pace: new Pace(undefined, context) }, context);
    if (result.outcome !== "failed") return true;
    // It is listed, and there is none: to readers it is as absent as any other.
    if (result.error.code === "OBJECT_NOT_FOUND") return false;
    throw result.error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
