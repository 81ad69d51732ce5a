/** Removes Agarose from a browser. */
import { CACHE_NAMES } from "../common/cache-names.ts";

/**
 * Removes the registration of this page, or of `scope`, and deletes its stored data. Open pages keep their worker until
 * they reload. Resolves to whether there was a registration.
 */
export async function unregister(scope?: string): Promise<boolean> {
  const registration = await globalThis.navigator?.serviceWorker?.getRegistration(scope);
  const ended = (await registration?.unregister()) ?? false;
  await Promise.all(CACHE_NAMES.map((name) => globalThis.caches?.delete(name)));
  return ended;
}
