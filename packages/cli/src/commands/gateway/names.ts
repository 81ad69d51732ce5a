/** The names that clients of the gateway have to know. */

/** The one bucket that a gateway has: the deployment. */
export const BUCKET = "agarose";
/** The environment variable of the key id that clients sign with. */
export const KEY_ID = "AGAROSE_GATEWAY_ACCESS_KEY_ID";
/** The environment variable of its secret. */
export const SECRET = "AGAROSE_GATEWAY_SECRET_ACCESS_KEY";
