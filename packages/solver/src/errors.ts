/**
 * Errors of this package. They have the shape of core's AgaroseError without importing it; core recognises them by
 * their fields.
 */

/** Codes that this package throws; `packages/core/src/errors.ts` explains each. */
export type SolverErrorCode =
  "KNAPSACK_INVALID" | "SCENARIO_INVALID" | "CODE_INVALID" | "SNAPSHOT_INVALID" | "REQUEST_INVALID" | "INTERNAL";

/** An error with a code for programs, a sentence for people in `message`, and the numbers in `details`. */
export interface SolverError extends Error {
  readonly code: SolverErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Creates an error named `AgaroseError`. */
export function solverError(
  code: SolverErrorCode,
  message: string,
  details: Record<string, unknown> = {},
): SolverError {
  const error = new Error(message);
  error.name = "AgaroseError";
  return Object.assign(error, { code, details });
}
