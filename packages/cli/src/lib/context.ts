/**
 * The context of every command that works on buckets: configuration, stores, codec, encoder and abort signal.
 */
import { systemClock, toAgaroseError, type Codec, type SignatureCheck, type Signer } from "@agarose/core";
import { loadConfig, type Config } from "./config.ts";
import { configPath } from "./config-path.ts";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import { Breaker } from "./objects/commit/ask-regions.ts";
import { Fence } from "./objects/commit/fence.ts";
import { signerOf, trustOf } from "./signing.ts";
import type { S3StoreOptions } from "./store/s3-client.ts";
import type { Store } from "./store/store.ts";
import { openStores } from "./store/stores.ts";

/** Options of all commands. */
export interface GlobalOptions {
  readonly json?: boolean;
  readonly config?: string;
}

/** What `withContext` passes to a command. */
export interface CommandContext {
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
  readonly json: boolean;
  /** Aborts on Ctrl-C and SIGTERM, so that a command removes what is half-written. */
  readonly signal: AbortSignal;
}

/** For readers, which ask another region instead of the same one again. */
export const READING: S3StoreOptions = { attempts: 1 };
/** For writers. */
export const WRITING: S3StoreOptions = { attempts: 3 };

/** Loads the configuration, runs `action` with its buckets open, and closes them. */
export async function withContext<T>(
  options: GlobalOptions,
  storeOptions: S3StoreOptions,
  action: (context: CommandContext) => Promise<T>,
): Promise<T> {
  return withConfig(await loadConfig(configPath(options.config)), options, storeOptions, action);
}

/** `withContext` for a configuration that no file has. */
export async function withConfig<T>(
  config: Config,
  options: GlobalOptions,
  storeOptions: S3StoreOptions,
  action: (context: CommandContext) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const { context, close } = openContext(config, options, storeOptions, abort.signal);
  const onSignal = (): void => abort.abort(new DOMException("interrupted", "AbortError"));
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  try {
    return await action(context);
  } finally {
    process.removeListener("SIGINT", onSignal);
    process.removeListener("SIGTERM", onSignal);
    close();
  }
}

/** The context of a configuration. Its caller closes the buckets. */
export function openContext(
  config: Config,
  options: GlobalOptions,
  storeOptions: S3StoreOptions,
  signal: AbortSignal,
): { readonly context: CommandContext; readonly close: () => void } {
  const stores = openStores(config, storeOptions);
  const sign = signerOf(config);
  const keys = { trust: trustOf(config), ...(sign && { sign }) };
  const fence = new Fence({ config, stores, signal, clock: systemClock, breaker: new Breaker(systemClock), ...keys });
  const files = { codec: loadCodec, encoder: loadEncoder };
  return {
    context: { config, stores, ...keys, fence, ...files, json: options.json ?? false, signal },
    close(): void {
      for (const store of stores) store.close();
    },
  };
}

let codec: Promise<Codec> | undefined;

/** The WASM codec, loaded on first use. */
export function loadCodec(): Promise<Codec> {
  codec ??= import("@agarose/ec-wasm/node").then(
    (module) => module.loadCodec(),
    (error: unknown) => {
      throw toAgaroseError(error);
    },
  );
  return codec;
}

let encoder: Promise<EncoderPool> | undefined;

/** Threads that encode. They start with the first large stripe and do not keep the process alive. */
export function loadEncoder(): Promise<EncoderPool> {
  encoder ??= import("@agarose/ec-wasm/encoder-pool").then((module) => module.createEncoderPool());
  return encoder;
}
