/** Where the command line finds the admin tokens of PoPs. */

/** The variable that holds the token of all PoPs; `<it>_<POP>` holds that of one. */
export const ADMIN_TOKEN_VARIABLE = "AGAROSE_ADMIN_TOKEN";

/** Returns the PoP's own token, or the one for all. Names of variables have no hyphens. */
export function adminTokenOf(pop: string): string | undefined {
  const own = `${ADMIN_TOKEN_VARIABLE}_${pop.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
  return process.env[own] || process.env[ADMIN_TOKEN_VARIABLE] || undefined;
}
