/** Which requests belong to Agarose: GET and HEAD below the prefix on the worker's own origin. All others pass. */
import { keyOfPath } from "@agarose/core/http";

/** The part of a `Request` that decides. */
export interface RoutedRequest {
  readonly method: string;
  readonly mode?: RequestMode;
  readonly url: string;
}

/** Where a worker routes. */
export interface RouteOptions {
  readonly origin: string;
  readonly prefix: string;
  /** Whether an object may be opened as a page, or in a frame. */
  readonly navigations: boolean;
}

/** The method, key and query of a request for an object, or undefined for any other request. */
export function route(
  { method, mode, url }: RoutedRequest,
  { origin, prefix, navigations }: RouteOptions,
): { method: "GET" | "HEAD"; key: () => string; query: URLSearchParams } | undefined {
  if (method !== "GET" && method !== "HEAD") return undefined;
  if (mode === "navigate" && !navigations) return undefined;
  const { origin: asked, pathname, searchParams: query } = new URL(url);
  if (asked !== origin || !pathname.startsWith(prefix) || pathname === prefix) return undefined;
  // A key that cannot be decoded is answered with KEY_INVALID, so the request does not pass.
  return { method, key: () => keyOfPath(pathname.slice(prefix.length)), query };
}
