/**
 * The limits of Cloudflare that workerd does not enforce on its own (developers.cloudflare.com/workers/platform/limits
 * and /kv/platform/limits, 2026), counted per invocation and, for the rate of KV writes, per namespace.
 */
export const SUBREQUESTS_MAX = 10_000;
export const KV_OPERATIONS_MAX = 1_000;
const CACHE_OPERATIONS_MAX = 1_000;
export const CONNECTIONS_MAX = 6;
export const KEY_BYTES_MAX = 512;
export const VALUE_BYTES_MAX = 25 * 1024 * 1024;
export const METADATA_BYTES_MAX = 1_024;
const WRITE_INTERVAL_MS = 1_000;

/** The operations of one invocation; plain data, so that a test can request it. */
export interface InvocationReport {
  readonly what: string;
  subrequests: number;
  kvOperations: number;
  /** Calls of Durable Objects. */
  objectCalls: number;
  cacheOperations: number;
  /** Of the keys of those. Cloudflare wants the Worker's own alone. */
  readonly cacheHosts: string[];
  /** The most that waited for headers at one time. */
  connections: number;
  /** How many had to queue in the runtime for a connection. */
  queued: number;
}

export class InvocationLimits {
  readonly report: InvocationReport;
  readonly #subrequestsMax: number;
  readonly #violated: (violation: string) => void;
  readonly #waiting: (() => void)[] = [];
  #open = 0;

  constructor(what: string, subrequestsMax: number, violated: (violation: string) => void) {
    this.report = {
      what,
      subrequests: 0,
      kvOperations: 0,
      objectCalls: 0,
      cacheOperations: 0,
      cacheHosts: [],
      connections: 0,
      queued: 0,
    };
    this.#subrequestsMax = subrequestsMax;
    this.#violated = violated;
  }

  /** Counts one subrequest of any kind. Throws as the platform does. */
  subrequest(): void {
    if (++this.report.subrequests > this.#subrequestsMax)
      this.#refuse("Too many subrequests by single Worker invocation.");
  }

  objectCall(): void {
    this.subrequest();
    this.report.objectCalls++;
  }

  kvOperation(): void {
    this.subrequest();
    if (++this.report.kvOperations > KV_OPERATIONS_MAX)
      this.#refuse("Too many API requests by single Worker invocation.");
  }

  cacheOperation(url: string): void {
    this.subrequest();
    const { host } = new URL(url);
    if (!this.report.cacheHosts.includes(host)) this.report.cacheHosts.push(host);
    if (++this.report.cacheOperations > CACHE_OPERATIONS_MAX)
      this.#refuse("Too many cache operations by single invocation.");
  }

  /** Runs `task`, which ends when its headers are there, on one of six connections; the seventh queues. */
  async connect<T>(task: () => Promise<T>): Promise<T> {
    if (this.#open >= CONNECTIONS_MAX) {
      this.report.queued++;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#open++;
    }
    this.report.connections = Math.max(this.report.connections, this.#open);
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#open--;
    }
  }

  #refuse(message: string): never {
    this.#violated(`${this.report.what}: ${message}`);
    throw new Error(message);
  }
}

/** Sizes and write rates of one KV namespace. Each method throws as KV does. */
export class KvLimits {
  readonly #now: () => number;
  readonly #violated: (violation: string) => void;
  readonly #writtenMs = new Map<string, number>();

  constructor(now: () => number, violated: (violation: string) => void) {
    this.#now = now;
    this.#violated = violated;
  }

  checkName(name: string): void {
    const bytes = new TextEncoder().encode(name).length;
    if (bytes > KEY_BYTES_MAX)
      this.#refuse(`414 UTF-8 encoded length of ${bytes} exceeds key length limit of ${KEY_BYTES_MAX}.`);
    if (name === "" || name === "." || name === "..")
      this.#refuse(`400 key name ${JSON.stringify(name)} is not allowed.`);
  }

  checkWrite(name: string, valueBytes: number, metadata: unknown): void {
    this.checkName(name);
    if (valueBytes > VALUE_BYTES_MAX) {
      this.#refuse(`413 Value length of ${valueBytes} exceeds limit of ${VALUE_BYTES_MAX}.`);
    }
    const metadataBytes = metadata === undefined ? 0 : new TextEncoder().encode(JSON.stringify(metadata)).length;
    if (metadataBytes > METADATA_BYTES_MAX) {
      this.#refuse(`413 Metadata length of ${metadataBytes} exceeds limit of ${METADATA_BYTES_MAX}.`);
    }
    this.checkRate(name);
  }

  /** At most one write or delete of a name per second. */
  checkRate(name: string): void {
    const now = this.#now();
    const before = this.#writtenMs.get(name) ?? Number.NEGATIVE_INFINITY;
    if (now - before < WRITE_INTERVAL_MS)
      this.#refuse(`429 Too Many Requests: ${name} was written ${now - before} ms ago.`);
    this.#writtenMs.set(name, now);
  }

  #refuse(message: string): never {
    this.#violated(`KV: ${message}`);
    throw new Error(`KV PUT failed: ${message}`);
  }
}
