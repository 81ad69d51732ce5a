/**
 * Private keys: what the page's request proves (a bearer token, or the signature of its URL) goes on to the PoPs, and to
 * nobody else. Buckets never see it.
 */
import type { FetchInit } from "@agarose/core";
import type { Endpoint } from "../shared/config.ts";
import type { ObjectRequest } from "./client-read.ts";

type Prove = (url: string, init: FetchInit) => [url: string, init: FetchInit];

/** Adds to a request for one of `pops` what `request` proves. */
export function proofOf({ headers, query }: ObjectRequest, pops: readonly Endpoint[]): Prove {
  const authorization = headers.get("authorization");
  const signed = new URLSearchParams();
  for (const name of ["expires", "signature"]) {
    const value = query?.get(name);
    if (value) signed.set(name, value);
  }
  return (url, init) => {
    if (!pops.some((pop) => url.startsWith(`${pop.url}/v1/`))) return [url, init];
    const asked = signed.size > 0 ? `${url}${url.includes("?") ? "&" : "?"}${signed}` : url;
    return [asked, authorization ? { ...init, headers: { ...init.headers, authorization } } : init];
  };
}
