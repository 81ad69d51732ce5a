/** The environment variables by which `agarose deploy` takes secrets. */

/** Begins their names; the name of the secret follows. */
export const ENV_PREFIX = "AGAROSE_SECRET_";
