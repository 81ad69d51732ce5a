/** What the platform gives to one request, in the part that is used here. */
export interface RequestContext {
  /** Lets work go on after the response. */
  waitUntil(promise: Promise<unknown>): void;
}
