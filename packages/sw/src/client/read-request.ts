/** A request for an object, and the response to it. */

/** A GET or HEAD of an object. */
export interface ReadRequest {
  readonly key: string;
  readonly method: "GET" | "HEAD";
  readonly headers: { get(name: string): string | null };
  /** The query of the request's URL. `expires` and `signature` open a private key. */
  readonly query?: URLSearchParams;
  readonly signal?: AbortSignal | undefined;
}

/** The response to a read. */
export interface ReadResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Null for HEAD, 304 and 412. It errors when the read cannot complete; it never ends short. */
  readonly body: ReadableStream<Uint8Array> | null;
}
