/**
 * What the doctor found in one place.
 */
export interface Check {
  /** Region or PoP, or `layout`. */
  readonly subject: string;
  readonly name: string;
  /** `warn`: works, but less well than it could. */
  readonly state: "ok" | "warn" | "fail";
  /** What was found, and what to do about it. */
  readonly message: string;
}

export function isFailed({ state }: Check): boolean {
  return state === "fail";
}
