/** The shape of an Agarose error, made without importing `@agarose/core`: that package recognises it by its fields. */

/** The codes this package throws; `packages/core/src/errors.ts` explains them. */
export type SolverErrorCode =
  "KNAPSACK_INVALID" | "SCENARIO_INVALID" | "CODE_INVALID" | "SNAPSHOT_INVALID" | "REQUEST_INVALID" | "INTERNAL";

export interface SolverError extends Error {
  readonly code: SolverErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Returns an Error named `AgaroseError` with a code for programs and a sentence for people. */
export function solverError(
  code: SolverErrorCode,
  message: string,
  details: Record<string, unknown> = {},
): SolverError {
  const error = new Error(message);
  error.name = "AgaroseError";
  return Object.assign(error, { code, details });
}
