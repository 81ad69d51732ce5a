/**
 * A deployment that is open: its configuration, and the buckets, keys and coders that reading and writing need.
 */
import { systemClock, toAgaroseError, type Clock, type Codec, type SignatureCheck, type Signer } from "@agarose/core";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import type { Config } from "./config/config.ts";
import { Breaker } from "./regions/ask-regions.ts";
import { Fence } from "./commit/fence.ts";
import { signerOf, trustOf } from "./config/signing.ts";
import type { S3StoreOptions } from "./buckets/s3-client.ts";
import type { Store } from "./buckets/store.ts";
import { openStores } from "./buckets/stores.ts";

/** The parts of a deployment. A function takes those that it needs. */
export interface DeploymentParts {
  readonly config: Config;
  readonly stores: readonly Store[];
  readonly codec: () => Promise<Codec>;
  readonly encoder: () => Promise<EncoderPool>;
  /** Whose manifests count. */
  readonly trust: SignatureCheck;
  /** Signs manifests, where the configuration says how. */
  readonly sign?: Signer;
  /** Refuses writers that a rotation has left behind. It asks nothing before a writer does. */
  readonly fence?: Fence;
  readonly signal: AbortSignal;
}

/** Opens the buckets of a configuration. Nothing is requested before the first read or write. */
export function openParts(
  config: Config,
  storeOptions: S3StoreOptions,
  signal: AbortSignal,
  clock: Clock = systemClock,
): DeploymentParts {
  const stores = openStores(config, storeOptions);
  const sign = signerOf(config);
  const keys = { trust: trustOf(config), ...(sign && { sign }) };
  const fence = new Fence({ config, stores, signal, clock, breaker: new Breaker(clock), ...keys });
  return { config, stores, ...keys, fence, codec: loadCodec, encoder: loadEncoder, signal };
}

/** Closes the connections to its buckets. */
export function closeParts({ stores }: Pick<DeploymentParts, "stores">): void {
  for (const store of stores) store.close();
}

let codec: Promise<Codec> | undefined;

/** The WASM codec, loaded on first use. A load that has failed is tried again by the next caller. */
export function loadCodec(): Promise<Codec> {
  codec ??= import("@agarose/ec-wasm/node")
    .then((module) => module.loadCodec())
    .catch((error: unknown) => {
      codec = undefined;
      throw toAgaroseError(error);
    });
  return codec;
}

let encoder: Promise<EncoderPool> | undefined;

/** Threads that encode. They start with the first large stripe and do not keep the process alive. */
export function loadEncoder(): Promise<EncoderPool> {
  encoder ??= import("@agarose/ec-wasm/encoder-pool")
    .then((module) => module.createEncoderPool())
    .catch((error: unknown) => {
      encoder = undefined;
      throw error;
    });
  return encoder;
}
