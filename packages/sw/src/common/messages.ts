/** The messages of a page to its worker. */

/**
 * A message: `registration.waiting.postMessage({ type: "SKIP_WAITING" })`. When its work is done, the worker answers at
 * the port that came with it, if any: undefined, or the error as `{ code, message, details }`.
 */
export type WorkerMessage =
  /** Replaces the older worker now. Update prompts of other libraries send the same message. */
  | { readonly type: "SKIP_WAITING" }
  /** Take control of every page in scope. A page has no worker after a hard reload. */
  | { readonly agarose: "claim" }
  /** Nothing. The event itself keeps some browsers from ending the worker. */
  | { readonly agarose: "stay-awake" }
  /** Fetch the configuration again: a page has registered the worker. */
  | { readonly agarose: "configure" }
  /** Measure the round trips to the PoPs now: the network has changed. */
  | { readonly agarose: "probe" }
  /**
   * Drop the plans and stored stripes of `keys`, and of every key that begins with `prefix`. An empty prefix means all.
   */
  | { readonly agarose: "purge"; readonly keys?: readonly string[]; readonly prefix?: string }
  /** Fetch the plans of `keys` that are not known. */
  | { readonly agarose: "preload"; readonly keys: readonly string[] }
  /** Fetch the plans of `keys` again: these objects have changed. */
  | { readonly agarose: "update"; readonly keys: readonly string[] };
