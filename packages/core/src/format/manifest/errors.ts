/** Errors of a manifest that cannot be used. */
import { AgaroseError, HAS_MESSAGES } from "../../errors.ts";
import { FORMAT_VERSION } from "./manifest.ts";

/** MANIFEST_INVALID. `problem` continues "manifest". */
export function invalid(problem: string | false, details: Record<string, unknown> = {}, cause?: unknown): AgaroseError {
  return new AgaroseError(
    "MANIFEST_INVALID",
    HAS_MESSAGES && `manifest ${problem}: run \`agarose verify\``,
    details,
    cause,
  );
}

/** MANIFEST_NEWER: `what` is what this program does not know. */
export function newer(what: string | false, details: Record<string, unknown>): AgaroseError {
  return new AgaroseError(
    "MANIFEST_NEWER",
    HAS_MESSAGES && `manifest has ${what}, this program reads formats up to ${FORMAT_VERSION}: upgrade it`,
    { ...details, supported: FORMAT_VERSION },
  );
}
