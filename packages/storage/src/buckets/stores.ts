/** The buckets of a configuration, and how core reads from them. */
import { AgaroseError, type FetchPort } from "@agarose/core";
import type { Config, RegionConfig } from "../config/config.ts";
import { BucketSettings } from "./bucket-settings.ts";
import { credentialsByRegion } from "./credentials.ts";
import { ReadWriteReadStore } from "./read-write-read.ts";
import type { S3StoreOptions } from "./s3-client.ts";
import { S3Store } from "./s3-store.ts";
import { storeNamed } from "./region-names.ts";
import type { Store } from "./store.ts";

const SCHEME = "s3://";

/** Opens the bucket of every region, each with the keys that the configuration names for it. */
export function openStores(config: Config, options: S3StoreOptions = {}): Store[] {
  return eachRegion(config, options, (region, own) => {
    const store = new S3Store(region, own);
    return region.conditionalWrites === false ? new ReadWriteReadStore(store) : store;
  });
}

/** Opens the settings of every region's bucket, in the order of `openStores`. */
export function openSettings(config: Config, options: S3StoreOptions, signal: AbortSignal): BucketSettings[] {
  return eachRegion(config, options, (region, own) => new BucketSettings(region, own, signal));
}

function eachRegion<T>(
  config: Config,
  options: S3StoreOptions,
  open: (region: RegionConfig, options: S3StoreOptions) => T,
): T[] {
  const credentialsOf = credentialsByRegion(config, process.env);
  return config.regions.map((region) => {
    const { provider, origin } = credentialsOf(region);
    return open(region, { ...(provider && { credentials: provider }), credentialsOrigin: origin, ...options });
  });
}

/** Opens the bucket of plain objects, if the configuration names one. */
export function openOrigin(config: Config, options: S3StoreOptions): S3Store | undefined {
  const { endpoint, bucket } = config.origin ?? {};
  if (!config.origin || endpoint === undefined || bucket === undefined) return undefined;
  const region = { ...config.origin, endpoint, bucket, name: "origin", provider: "", url: `${endpoint}/${bucket}` };
  const open = (own: RegionConfig, its: S3StoreOptions): S3Store => new S3Store(own, { ...its, readsTags: true });
  return eachRegion({ ...config, regions: [region] }, options, open)[0];
}

/** Opens another bucket at the endpoint of a region, by the keys of that region. */
export function openBucketBeside(region: RegionConfig, bucket: string, config: Config): S3Store {
  return eachRegion(
    { ...config, regions: [{ ...region, bucket }] },
    {},
    (own, options) => new S3Store(own, options),
  )[0]!;
}

/** The base URL that `storeFetch` knows a region by. */
export function storeUrl(region: string): string {
  return `${SCHEME}${region}`;
}

/** Signed requests in the shape of `fetch`, for URLs below `storeUrl`. */
export function storeFetch(stores: readonly Store[]): FetchPort {
  return async (url, { headers, signal }) => {
    const [region = "", ...segments] = url.slice(SCHEME.length).split("/");
    const store = storeNamed(stores, region);
    if (!store) throw new AgaroseError("REGION_UNKNOWN", `region ${region} is not configured`, { region });
    const name = segments.map(decodeURIComponent).join("/");
    const range = headers?.["range"];
    return store.get(name, { ...(range && { range }), ...(signal && { signal }) });
  };
}
