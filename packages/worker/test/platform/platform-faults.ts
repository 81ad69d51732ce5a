/** Trouble of the platform that Miniflare does not have of its own, for `limits.worker.ts`. */

export interface PlatformFaults {
  /** Reads of KV show what was there so long ago. */
  readonly kvBehindMs: number;
  /** Every call of a Durable Object is refused. */
  readonly objectsOverloaded: boolean;
  /** How far the Worker's clock is ahead; less than 0: behind. */
  readonly clockAheadMs: number;
  /** So many writes of KV, and the invocation that made them is killed: nothing that it asks for ever ends. */
  readonly killedAfterWrites: number | null;
}

export const NO_FAULTS: PlatformFaults = {
  kvBehindMs: 0,
  objectsOverloaded: false,
  clockAheadMs: 0,
  killedAfterWrites: null,
};

/** As much of a namespace as is needed to look back. */
interface ReadableKv {
  get(name: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
}

interface Change {
  readonly atMs: number;
  /** The previous value; null: none. */
  readonly before: ArrayBuffer | null;
}

/** The contents of a KV namespace before each of its changes. */
export class KvHistory {
  readonly #kv: ReadableKv;
  readonly #changes = new Map<string, Change[]>();

  constructor(kv: ReadableKv) {
    this.#kv = kv;
  }

  async change(name: string, atMs: number, change: () => Promise<void>): Promise<void> {
    const before = await this.#kv.get(name, "arrayBuffer");
    const changes = this.#changes.get(name) ?? [];
    this.#changes.set(name, [...changes, { atMs, before }]);
    await change();
  }

  /** The value of `name` at `ms`; undefined when it has not changed since. */
  before(name: string, ms: number): ArrayBuffer | null | undefined {
    return this.#changes.get(name)?.find(({ atMs }) => atMs > ms)?.before;
  }
}
