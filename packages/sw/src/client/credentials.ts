/**
 * Private keys: the page's proof of access (a bearer token, or the signature of its URL) is forwarded to the PoPs. No
 * other host sees it, and no bucket.
 */
import type { FetchInit } from "@agarose/core";
import type { Endpoint } from "../common/config.ts";
import type { ReadRequest } from "./read-request.ts";

type Forward = (url: string, init: FetchInit) => [url: string, init: FetchInit];

/**
 * Returns a function that adds the credentials of `request` to requests for one of `pops`, and leaves others as they
 * are; undefined if the request has none.
 */
export function forwardCredentials({ headers, query }: ReadRequest, pops: readonly Endpoint[]): Forward | undefined {
  const authorization = headers.get("authorization");
  const signed = new URLSearchParams();
  for (const name of query?.has("signature") ? ["prefix", "expires", "signature"] : []) {
    const value = query!.get(name);
    if (value !== null) signed.set(name, value);
  }
  if (!authorization && signed.size === 0) return undefined;
  return (url, init) => {
    if (!pops.some((pop) => url.startsWith(`${pop.url}/v1/`))) return [url, init];
    const asked = signed.size > 0 ? `${url}${url.includes("?") ? "&" : "?"}${signed}` : url;
    return [asked, authorization ? { ...init, headers: { ...init.headers, authorization } } : init];
  };
}
