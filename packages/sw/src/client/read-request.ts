/** A request for an object. */

/** A GET or HEAD of an object. */
export interface ReadRequest {
  readonly key: string;
  readonly method: "GET" | "HEAD";
  readonly headers: Headers;
  /** The query of the request's URL. `expires` and `signature`, perhaps with `prefix`, open a private key. */
  readonly query?: URLSearchParams;
  readonly signal?: AbortSignal | undefined;
}

/** A request under way, whose signal ends all that is asked for it. */
export type BegunRequest = ReadRequest & { readonly signal: AbortSignal };
