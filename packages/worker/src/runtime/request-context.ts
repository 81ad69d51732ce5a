/** The part of the platform's request context that is used here. */
export interface RequestContext {
  /** Lets work go on after the response. */
  waitUntil(promise: Promise<unknown>): void;
}
