/** A KV namespace that fails on demand, which Miniflare does not offer. */
import type { ValueStore } from "@agarose/worker/ports";
import type { KvState } from "./kv-fault.ts";

const SLOW_MS = 3_000;
const COLD_MS = 150;

/** Wraps a KV namespace and injects one fault at a time. */
export class FaultyKv {
  readonly namespace: ValueStore;
  readonly #target: ValueStore;
  /** The values before the fault of every key written since. Null when there was no value. */
  readonly #before = new Map<string, ArrayBuffer | null>();
  /** The names whose values were read since the fault. */
  readonly #warm = new Set<string>();
  #fault: KvState = "ok";
  #fired = 0;

  constructor(target: ValueStore) {
    this.#target = target;
    this.namespace = {
      get: (name: string, type?: string) => this.#get(name, type),
      put: (name: string, value: string | ArrayBuffer) => this.#change(name, () => target.put(name, value)),
      delete: (name: string) => this.#change(name, () => target.delete(name)),
    } as unknown as ValueStore;
  }

  get fault(): KvState {
    return this.#fault;
  }

  /** How many operations the current fault has spoiled. */
  get fired(): number {
    return this.#fired;
  }

  /** Replaces the fault and resets `fired`. */
  set(fault: KvState): void {
    this.#fault = fault;
    this.#fired = 0;
    this.#before.clear();
    this.#warm.clear();
  }

  async #get(name: string, type?: string): Promise<ArrayBuffer | string | null> {
    await this.#injectFault("GET");
    if (this.#fault === "cold" && !this.#warm.has(name)) {
      this.#warm.add(name);
      this.#fired++;
      await new Promise((resolve) => setTimeout(resolve, COLD_MS));
    }
    const old = this.#before.get(name);
    if (old !== undefined) this.#fired++;
    const value = old === undefined ? await this.#target.get(name, "arrayBuffer") : old;
    return value === null || type === "arrayBuffer" ? value : new TextDecoder().decode(value);
  }

  async #change(name: string, change: () => Promise<void>): Promise<void> {
    await this.#injectFault("write");
    if (this.#fault === "stale" && !this.#before.has(name)) {
      this.#before.set(name, await this.#target.get(name, "arrayBuffer"));
    }
    await change();
    this.#warm.delete(name);
  }

  async #injectFault(operation: string): Promise<void> {
    if (this.#fault === "down") {
      this.#fired++;
      throw new Error(`KV ${operation} failed: 503 Service Unavailable`);
    }
    if (this.#fault !== "slow") return;
    this.#fired++;
    await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
  }
}
