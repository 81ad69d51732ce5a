/** A deployment that is open: its configuration, and the buckets, keys and coders that reading and writing need. */
import { systemClock, toAgaroseError, type Codec } from "@agarose/core";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import type { Config } from "./config/config.ts";
import { Breaker } from "./regions/ask-regions.ts";
import { Fence } from "./commit/fence.ts";
import { writeContextOf, type WriteContext, type WriteOptions } from "./commit/write-context.ts";
import { HttpOrigin, type Origin } from "./origin/http-origin.ts";
import { signerOf, trustOf } from "./config/signing.ts";
import type { S3StoreOptions } from "./buckets/s3-client.ts";
import type { AdaptiveWidth } from "./listing/adaptive-pool.ts";
import { openOrigin, openStores } from "./buckets/stores.ts";
import type { Encoder } from "./upload/upload.ts";

/** The parts of a deployment. A function takes those that it needs. */
export interface DeploymentParts extends WriteContext {
  readonly codec: () => Promise<Codec>;
  readonly encoder: () => Promise<Encoder>;
  /** Of the transfers under way: each narrows when a store asks for fewer requests. */
  readonly widths: Set<AdaptiveWidth>;
  /** The plain objects, where the configuration names some. */
  readonly origin?: Origin | undefined;
}

/** Replacements, when a deployment is opened, of the system's clock, and in place of the codec of Node. */
export type GivenParts = WriteOptions & Partial<Pick<DeploymentParts, "codec" | "encoder" | "widths" | "origin">>;

/** Fills in what is not given. */
export function partsOf(given: GivenParts): DeploymentParts {
  const { codec = loadCodec, encoder = loadEncoder, widths = new Set(), origin } = given;
  return { ...writeContextOf(given), codec, encoder, widths, origin };
}

/** Opens the buckets of a configuration. Nothing is requested before the first read or write. */
export function openParts(
  config: Config,
  storeOptions: Omit<S3StoreOptions, "onThrottle">,
  signal: AbortSignal,
  {
    clock = systemClock,
    ...ports
  }: Partial<Pick<WriteOptions, "stores" | "clock" | "nowMs" | "random" | "shard">> = {},
): DeploymentParts {
  const widths = new Set<AdaptiveWidth>();
  const options = { ...storeOptions, onThrottle: () => widths.forEach((width) => width.throttle()) };
  const { stores = openStores(config, options) } = ports;
  const url = config.origin?.url;
  const origin = openOrigin(config, options) ?? (url === undefined ? undefined : new HttpOrigin(url));
  const sign = signerOf(config);
  const keys = { trust: trustOf(config), ...(sign && { sign }) };
  // It asks nothing before a writer does. A look at the records must not be cut short by what other requests have met.
  const fence = new Fence({ config, stores, signal, clock, breaker: new Breaker(clock), ...keys });
  return partsOf({ ...ports, config, stores, origin, ...keys, fence, signal, clock, widths });
}

/** Closes the connections to its buckets. */
export function closeParts({ stores, origin }: Pick<DeploymentParts, "stores" | "origin">): void {
  for (const store of stores) store.close();
  origin?.close();
}

/** Loads on first use. A load that has failed is retried by the next caller. */
function lazily<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw toAgaroseError(error);
    }));
}

/** The WASM codec. */
export const loadCodec = lazily<Codec>(async () => (await import("@agarose/ec-wasm/node")).loadCodec());

/** Threads that encode. They start with the first large stripe and do not keep the process alive. */
export const loadEncoder = lazily<EncoderPool>(async () =>
  (await import("@agarose/ec-wasm/encoder-pool")).createEncoderPool(),
);
