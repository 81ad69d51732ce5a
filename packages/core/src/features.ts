/** Parts of Agarose that a build can omit. */

/** False in a build without encryption; not defined in any other. */
declare const AGAROSE_ENCRYPTION: boolean | undefined;

/**
 * Whether this build decrypts. A bundler that defines `AGAROSE_ENCRYPTION` as `false` drops that code: to such a reader
 * an encrypted object is one of a newer format.
 */
export const HAS_ENCRYPTION: boolean = typeof AGAROSE_ENCRYPTION === "undefined" || AGAROSE_ENCRYPTION;

/** False in a build without a store; not defined in any other. */
declare const AGAROSE_STORE: boolean | undefined;

/** Whether readers of this build may store what they read. A bundler that defines it as `false` drops that code. */
export const HAS_STORE: boolean = typeof AGAROSE_STORE === "undefined" || AGAROSE_STORE;

/** False in a build for browsers; not defined in any other. */
declare const AGAROSE_IN_PLACE: boolean | undefined;

/**
 * Whether bodies are read in place where they are byte streams. On Cloudflare Workers, any other read brings 4 KiB at
 * most; a browser hands over what the network has brought, without a copy.
 */
export const READS_IN_PLACE: boolean = typeof AGAROSE_IN_PLACE === "undefined" || AGAROSE_IN_PLACE;

export { HAS_MESSAGES } from "./errors.ts";
