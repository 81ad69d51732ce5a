/** Codes that this package throws; `packages/core/src/errors.ts` explains each. */
export type SolverErrorCode =
  "KNAPSACK_INVALID" | "SCENARIO_INVALID" | "CODE_INVALID" | "SNAPSHOT_INVALID" | "REQUEST_INVALID" | "INTERNAL";

/**
 * An error with a code for programs, a sentence for people in `message`, and the numbers in `details`. Its name is the
 * one by which core keeps the code of errors that another package or another process has thrown.
 */
export class SolverError extends Error {
  override readonly name = "AgaroseError";
  readonly code: SolverErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: SolverErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}
