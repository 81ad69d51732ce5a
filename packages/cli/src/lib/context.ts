/**
 * The context of every command that works on buckets: configuration, stores, codec, encoder and abort signal.
 */
import { toAgaroseError, type Codec, type SignatureCheck, type Signer } from "@agarose/core";
import { findConfig, loadConfig, type Config } from "./config.ts";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
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
  return withConfig(await loadConfig(await findConfig(options.config)), options, storeOptions, action);
}

/** `withContext` for a configuration that no file has. */
export async function withConfig<T>(
  config: Config,
  options: GlobalOptions,
  storeOptions: S3StoreOptions,
  action: (context: CommandContext) => Promise<T>,
): Promise<T> {
  const stores = openStores(config, storeOptions);
  const abort = new AbortController();
  const onSignal = (): void => abort.abort(new DOMException("interrupted", "AbortError"));
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  const sign = signerOf(config);
  try {
    return await action({
      config,
      stores,
      trust: trustOf(config),
      ...(sign && { sign }),
      codec: loadCodec,
      encoder: loadEncoder,
      json: options.json ?? false,
      signal: abort.signal,
    });
  } finally {
    process.removeListener("SIGINT", onSignal);
    process.removeListener("SIGTERM", onSignal);
    for (const store of stores) store.close();
  }
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
