/**
 * Takes Agarose out of a browser again.
 */
import { CACHE_NAME } from "../shared/config-file.ts";
import { OFFLINE_CACHE_NAME } from "../offline/offline-entries.ts";

/**
 * Ends the registration that this page is under, or that of `scope`, and deletes what it has kept. Pages that are open stay
 * under their worker until they are loaded anew. Resolves to whether there was a registration.
 */
export async function unregister(scope?: string): Promise<boolean> {
  const registration = await globalThis.navigator?.serviceWorker?.getRegistration(scope);
  const ended = (await registration?.unregister()) ?? false;
  await Promise.all([CACHE_NAME, OFFLINE_CACHE_NAME].map((name) => globalThis.caches?.delete(name)));
  return ended;
}
