/** The environment variables by which the gateway gets the keys that clients sign with. */

/** Of the key id. */
export const KEY_ID = "AGAROSE_GATEWAY_ACCESS_KEY_ID";
/** Of its secret. */
export const SECRET = "AGAROSE_GATEWAY_SECRET_ACCESS_KEY";
