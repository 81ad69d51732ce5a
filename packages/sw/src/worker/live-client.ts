/**
 * The client of a worker, by the configuration in force. A worker runs for as long as its pages work, so the
 * configuration is refetched while it runs: by age, when a page asks, and when reads fail as they do by an outdated
 * one.
 */
import { AgaroseError, type Clock } from "@agarose/core";
import { once, within } from "@agarose/core/async";
import { HAS_MESSAGES } from "@agarose/core/features";
import { UNWANTED } from "@agarose/core/sources";
import type { ObjectClient } from "../client/object-client.ts";
import type { ClientConfig, ConfigFile, ConfigSource } from "../common/config.ts";
import { fetchConfig, readCopy, type ConfigPorts } from "../common/config-file.ts";

/** A read fetches a configuration of this age again, in the background. A plan may be used for as long. */
export const CONFIG_TTL_MS = 60_000;
/** After a failed read has fetched the configuration, the next one does so after this time, … */
const AGAIN_MS_MIN = 1_000;
/** … and after twice as long each time in which nothing has changed, up to this. */
const AGAIN_MS_MAX = CONFIG_TTL_MS;
const CONFIG_TIMEOUT_MS = 10_000;

/** Dependencies of a `LiveClient`. */
export interface LivePorts extends ConfigPorts {
  readonly clock: Clock;
}

/** Keeps the client of a configuration that may change. */
export class LiveClient {
  readonly #source: ConfigSource;
  readonly #ports: LivePorts;
  readonly #make: (config: ClientConfig) => ObjectClient;
  readonly #start: () => Promise<void>;
  #client: ObjectClient | undefined;
  /** The configuration of `#client`, as JSON. */
  #config = "";
  /** The fetch in progress, which concurrent callers share. */
  #fetching: Promise<void> | undefined;
  #fetchedMs = Number.NEGATIVE_INFINITY;
  #againMs = AGAIN_MS_MIN;

  /** @param make throws CONFIG_INVALID for a configuration that no client can use. */
  constructor(source: ConfigSource, ports: LivePorts, make: (config: ClientConfig) => ObjectClient) {
    this.#source = source;
    this.#ports = ports;
    this.#make = make;
    this.#start = once(() => this.#load());
  }

  /** The client. Rejects with CONFIG_INVALID while there has been neither a sound file nor a sound copy. */
  async current(): Promise<ObjectClient> {
    await this.#start();
    if (this.#isOlderThan(CONFIG_TTL_MS)) void this.#renew();
    return this.#client!;
  }

  /**
   * The client to repeat a read with that has failed with `error` by `failed`; undefined if a newer configuration
   * cannot help, or there is none.
   */
  async after(failed: ObjectClient, { httpStatus }: AgaroseError): Promise<ObjectClient | undefined> {
    // Keys, secrets, regions or PoPs may have changed, unless the request itself is at fault.
    if (httpStatus <= 500 && httpStatus !== 404) return undefined;
    if (this.#client === failed && (this.#fetching || this.#isOlderThan(this.#againMs))) {
      if (!this.#fetching) this.#againMs = Math.min(AGAIN_MS_MAX, 2 * this.#againMs);
      await this.#renew();
    }
    return this.#client === failed ? undefined : this.#client;
  }

  /** Settings from a page's `register`. It has fetched the file itself, as has a worker that has just started. */
  async onRegister(): Promise<void> {
    await this.#start();
    if (this.#isOlderThan(AGAIN_MS_MIN)) await this.#renew();
  }

  async #load(): Promise<void> {
    const source = this.#source;
    if (!("url" in source)) return this.#use(source.config);
    // A copy that no client can use is none.
    const use = (copy: ClientConfig | undefined): void => copy && this.#use(copy);
    await readCopy(source, this.#ports)
      .then(use)
      .catch(() => {});
    if (this.#client) void this.#renew();
    else await this.#fetch(source);
  }

  /** Fetches the file again. One that cannot be fetched or used leaves the old one in force, until the next time. */
  async #renew(): Promise<void> {
    await this.#fetch(this.#source as ConfigFile).catch(() => {});
  }

  #fetch(source: ConfigFile): Promise<void> {
    this.#fetching ??= this.#fetchWithin(source).finally(() => (this.#fetching = undefined));
    return this.#fetching;
  }

  /** A file that is never answered must neither hold up reads for ever nor keep the next fetch from starting. */
  async #fetchWithin(source: ConfigFile): Promise<void> {
    const { clock, caches } = this.#ports;
    const abort = new AbortController();
    const { signal } = abort;
    const fetch: ConfigPorts["fetch"] = (url, init) => this.#ports.fetch(url, { ...init, signal });
    const use = (config: ClientConfig): void => {
      if (!signal.aborted) this.#use(config);
    };
    this.#fetchedMs = clock.now();
    await within(fetchConfig(source, { fetch, caches }, use), CONFIG_TIMEOUT_MS, clock, () => {
      abort.abort(UNWANTED);
      const problem = HAS_MESSAGES && `${source.url} was not answered in ${CONFIG_TIMEOUT_MS} ms`;
      return new AgaroseError("CONFIG_INVALID", problem, { url: source.url, timeoutMs: CONFIG_TIMEOUT_MS });
    });
  }

  #use(config: ClientConfig): void {
    const text = JSON.stringify(config);
    if (text === this.#config) return;
    this.#client = this.#make(config);
    this.#config = text;
    this.#againMs = AGAIN_MS_MIN;
  }

  #isOlderThan(ms: number): boolean {
    return "url" in this.#source && this.#ports.clock.now() - this.#fetchedMs >= ms;
  }
}
