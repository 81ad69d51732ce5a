/** The places of a world that a test breaks and mends: regions, PoPs, and the client. */
import type { KvState } from "../pops/kv-fault.ts";
import type { LinkFaults, LinkRecord } from "../world/wan-link.ts";
import type { ControlClient } from "./control-client.ts";

const DAMAGED: readonly LinkRecord["outcome"][] = ["down", "error", "corrupted", "truncated", "unranged"];

/** A place that the client and all PoPs reach over links. `world.reset()` ends its faults. */
class Place {
  readonly name: string;
  protected readonly control: ControlClient;

  constructor(name: string, control: ControlClient) {
    this.name = name;
    this.control = control;
  }

  /** Returns the requests to this place since the last reset, those of PoPs included. */
  async requests(): Promise<LinkRecord[]> {
    return (await this.control.log()).filter(({ to }) => to === this.name);
  }
}

/** A region's bucket. */
export class Region extends Place {
  /** Multiplies every latency by `factor`. */
  slow(factor: number): Promise<void> {
    return this.set({ latencyFactor: factor });
  }

  /** Multiplies the latency of a random share of the requests. `probability` is in [0, 1]. */
  straggle(probability: number, factor: number): Promise<void> {
    return this.set({ stragglers: { probability, factor } });
  }

  /** Cuts every connection. */
  down(): Promise<void> {
    return this.set({ down: true });
  }

  /** Ends `down`. */
  up(): Promise<void> {
    return this.set({ down: false });
  }

  /** Answers a random share of the requests with 503. */
  fail(probability = 1): Promise<void> {
    return this.set({ errorRate: probability });
  }

  /** Changes one byte in a random share of the bodies. */
  corrupt(probability = 1): Promise<void> {
    return this.set({ corrupt: probability });
  }

  /** Sends half of the body to a random share of the requests. */
  truncate(probability = 1): Promise<void> {
    return this.set({ truncate: probability });
  }

  /** Serves at most `requests` at once; others wait for their turn. 0 is no limit. */
  concurrency(requests: number): Promise<void> {
    return this.set({ concurrency: requests });
  }

  /** Answers with 200 and everything, as if a request had no Range. */
  ignoreRange(): Promise<void> {
    return this.set({ ignoreRange: true });
  }

  /** Sets several faults at once, and keeps the others. */
  set(faults: Partial<LinkFaults>): Promise<void> {
    return this.control.post(`/regions/${encodeURIComponent(this.name)}`, faults);
  }

  /** Returns how many requests a fault has spoiled or slowed since the last reset. */
  async fired(): Promise<number> {
    const records = await this.requests();
    return records.filter(({ outcome, slowdown, waitMs }) => DAMAGED.includes(outcome) || slowdown > 1 || waitMs > 0)
      .length;
  }
}

/** A PoP. */
export class Pop extends Place {
  /** Cuts every connection. */
  down(): Promise<void> {
    return this.#set({ down: true });
  }

  /** Ends `down`. */
  up(): Promise<void> {
    return this.#set({ down: false });
  }

  /**
   * Breaks the KV of its chunk cache: `down` fails, `slow` takes 3 s longer, `stale` returns old values. `ok` mends it.
   */
  kv(state: KvState): Promise<void> {
    return this.#set({ kv: state });
  }

  /** Returns how many requests and KV operations the faults have spoiled. */
  async fired(): Promise<number> {
    const { pops } = await this.control.state();
    const cut = (await this.requests()).filter(({ outcome }) => outcome === "down").length;
    return cut + pops.find(({ name }) => name === this.name)!.kvFired;
  }

  #set(change: { down?: boolean; kv?: KvState }): Promise<void> {
    return this.control.post(`/pops/${encodeURIComponent(this.name)}`, change);
  }
}

/** Where the browser is. */
export class Client {
  readonly #control: ControlClient;

  constructor(control: ControlClient) {
    this.#control = control;
  }

  /** Moves the client beside a PoP, which changes its latencies to every region and PoP. */
  near(pop: string): Promise<void> {
    return this.#control.post("/client", { near: pop });
  }

  /** Lets all downloads of the client share so many megabits per second, as a slow line does; 0 is unlimited. */
  throttle(mbit: number): Promise<void> {
    return this.#control.post("/client", { mbit });
  }
}
