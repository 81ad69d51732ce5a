/**
 * The buckets of a configuration, and how the reader of core gets at them.
 */
import { fromIni } from "@aws-sdk/credential-provider-ini";
import { AgaroseError, type FetchPort } from "@agarose/core";
import type { Config } from "../config.ts";
import { S3Store, type S3StoreOptions } from "./s3-store.ts";
import type { Store } from "./store.ts";

const SCHEME = "s3://";

export function openStores(config: Config, options: S3StoreOptions = {}): Store[] {
  const { aws } = config;
  const credentials =
    aws && fromIni({ profile: aws.profile, ...(aws.credentialsFile && { filepath: aws.credentialsFile }) });
  return config.regions.map((region) => new S3Store(region, { ...(credentials && { credentials }), ...options }));
}

/** The base URL that `storeFetch` knows a region by. */
export function storeUrl(region: string): string {
  return `${SCHEME}${region}`;
}

/** Signed requests in the shape of `fetch`, for URLs below `storeUrl`. */
export function storeFetch(stores: readonly Store[]): FetchPort {
  const byRegion = new Map(stores.map((store) => [store.region.name, store]));
  return async (url, { headers, signal }) => {
    const [region = "", ...segments] = url.slice(SCHEME.length).split("/");
    const store = byRegion.get(region);
    if (!store) throw new AgaroseError("REGION_UNKNOWN", `region ${region} is not configured`, { region });
    const name = segments.map(decodeURIComponent).join("/");
    const range = headers?.["range"];
    return store.get(name, { ...(range && { range }), ...(signal && { signal }) });
  };
}
