/** The caches of Cache Storage that Agarose uses. */

/** Holds the configuration file. */
export const CACHE_NAME = "agarose";
/** Holds plans and stripes for offline reads. */
export const OFFLINE_CACHE_NAME = "agarose-offline";
/** Every cache of Agarose. */
export const CACHE_NAMES: readonly string[] = [CACHE_NAME, OFFLINE_CACHE_NAME];
