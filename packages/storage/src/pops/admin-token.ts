/** Where the command line finds the admin tokens of PoPs. */
import { readFileSync } from "node:fs";
import { AgaroseError } from "@agarose/core";
import { unreadable } from "../files/file-errors.ts";

/** The variable that holds the token of all PoPs; `<it>_<POP>` holds that of one. */
export const ADMIN_TOKEN_VARIABLE = "AGAROSE_ADMIN_TOKEN";

/**
 * Returns the PoP's own token of the environment, or the one for all, or the one in the PoP's `adminTokenFile`. Names
 * of variables have no hyphens. Throws CONFIG_INVALID for a file that cannot be read.
 */
export function adminTokenOf({
  name,
  adminTokenFile,
}: {
  name: string;
  adminTokenFile?: string | undefined;
}): string | undefined {
  const own = `${ADMIN_TOKEN_VARIABLE}_${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
  const token = process.env[own] || process.env[ADMIN_TOKEN_VARIABLE];
  if (token || adminTokenFile === undefined) return token || undefined;
  try {
    return readFileSync(adminTokenFile, "utf8").trim() || undefined;
  } catch (error) {
    const message = `the admin token of ${name}: ${unreadable(adminTokenFile, error)}`;
    throw new AgaroseError("CONFIG_INVALID", message, { path: adminTokenFile }, error);
  }
}
