/** One finding of `agarose doctor`. */
/** The possible fixes of a region's bucket. */
export type Remedy = "make bucket" | "set CORS" | "allow public reads";

/** A finding about a region, a PoP or the layout. */
export interface Check {
  /** Region or PoP, `layout` or `publisher`. */
  readonly subject: string;
  readonly name: string;
  /** `warn`: works, but less well than it could. */
  readonly state: "ok" | "warn" | "fail";
  /** The finding, and the next step. */
  readonly message: string;
  /** The fix. Absent when only a person can fix it, and for sound parts. */
  readonly remedy?: Remedy;
}

/** Whether a check failed; warnings do not count. */
export function isFailed({ state }: Check): boolean {
  return state === "fail";
}
