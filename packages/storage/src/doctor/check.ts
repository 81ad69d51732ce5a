/** One finding of `agarose doctor`. */
/** What a fix can do for a region's bucket. */
export type Remedy = "make bucket" | "set CORS" | "allow public reads";

/** A finding about a region, a PoP or the layout. */
export interface Check {
  /** Region or PoP, `layout` or `publisher`. */
  readonly subject: string;
  readonly name: string;
  /** `warn`: works, but less well than it could. */
  readonly state: "ok" | "warn" | "fail";
  /** What was found, and what to do about it. */
  readonly message: string;
  /** What a fix does about it. Absent when only a person can, and for what is sound. */
  readonly remedy?: Remedy;
}

/** Whether a check failed; warnings do not count. */
export function isFailed({ state }: Check): boolean {
  return state === "fail";
}
