import { AgaroseError } from "../src/errors.ts";

/** Returns what `action` returns, or the error that it throws. */
export function attempt<T>(action: () => T): T | Error {
  try {
    return action();
  } catch (error) {
    return error as Error;
  }
}

/** Returns the AgaroseError that `action` throws. */
export function errorOf(action: () => unknown): AgaroseError {
  const error = attempt(action);
  if (error instanceof AgaroseError) return error;
  throw new Error(`an AgaroseError is expected, got ${String(error)}`);
}

/** Returns the code of the AgaroseError that `action` throws. */
export function codeOf(action: () => unknown): string {
  return errorOf(action).code;
}

/** Returns the AgaroseError that `promise` rejects with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<AgaroseError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof AgaroseError) return error;
  throw new Error(`an AgaroseError is expected, got ${String(error)}`);
}
