/**
 * Which requests belong to Agarose: GET and HEAD below the prefix on the worker's own origin. Nothing else is touched.
 */
import { keyOfPath } from "@agarose/core";

export interface RoutedRequest {
  readonly method: string;
  readonly url: string;
}

/** The method, key and query of a request for an object, or undefined for one that is none of ours. */
export function route(
  { method, url }: RoutedRequest,
  origin: string,
  prefix: string,
): { method: "GET" | "HEAD"; key: () => string; query: URLSearchParams } | undefined {
  if (method !== "GET" && method !== "HEAD") return undefined;
  const { origin: asked, pathname, searchParams: query } = new URL(url);
  if (asked !== origin || !pathname.startsWith(prefix) || pathname === prefix) return undefined;
  // Decoding may fail with KEY_INVALID, which is an answer and no reason to let the request pass.
  return { method, key: () => keyOfPath(pathname.slice(prefix.length)), query };
}
