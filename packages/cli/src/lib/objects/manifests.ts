/**
 * Manifests through the stores.
 */
import {
  acceptUnsigned,
  AgaroseError,
  findManifest,
  LATENCY_UNKNOWN,
  systemClock,
  toAgaroseError,
  type Clock,
  type Manifest,
  type SignatureCheck,
} from "@agarose/core";
import type { Store } from "../store/store.ts";
import { nodeSha256 } from "./sha256.ts";
import { regionsByName, regionsOf } from "../store/region-names.ts";
import { storeFetch, storeUrl } from "../store/stores.ts";

/**
 * Reads the current manifest of a key, and none older than generation `generationMin` unless a majority has nothing
 * newer. Throws what `findManifest` throws, or CREDENTIALS_REFUSED.
 */
export async function readManifest(
  key: string,
  stores: readonly Store[],
  signal: AbortSignal,
  trust: SignatureCheck = acceptUnsigned,
  clock: Clock = systemClock,
  generationMin = 0,
): Promise<Manifest> {
  let refused: AgaroseError | undefined;
  const fetch = storeFetch(stores);
  const known = regionsByName(regionsOf(stores));
  try {
    return await findManifest(key, {
      regions: known.map(({ name }) => ({ name, url: storeUrl(name), latency: LATENCY_UNKNOWN })),
      fetch: (url, init) =>
        fetch(url, init).catch((error: unknown) => {
          const cause = toAgaroseError(error, "SOURCE_FAILED");
          if (cause.code === "CREDENTIALS_REFUSED") refused ??= cause;
          throw cause;
        }),
      clock,
      sha256: nodeSha256,
      trust,
      signal,
      generationMin,
    });
  } catch (error) {
    throw toAgaroseError(error).code === "NO_SOURCE" && refused ? refused : error;
  }
}
