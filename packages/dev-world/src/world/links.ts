/** Opens the emulated links of a world and holds the state that their delays and faults depend on. */
import { seededRandom } from "@agarose/solver/random";
import { popLatencyMs } from "./geography.ts";
import { NO_FAULTS, openLink, type Link, type LinkFaults, type LinkRecord } from "./wan-link.ts";
import { AccessLine } from "./access-line.ts";
import { Places } from "./places.ts";
import type { KvState } from "../pops/kv-fault.ts";
import type { WorldOptions } from "./world-options.ts";

/** The present state of a world. */
export interface WorldState {
  /** The PoP beside which the client is. */
  near: string;
  /** Megabits per second that all downloads of the client share; 0 is unlimited. */
  clientMbit: number;
  readonly regionFaults: Record<string, LinkFaults>;
  readonly pops: Record<string, { down: boolean; kv: KvState }>;
}

const LOG_RECORDS_MAX = 20_000;

/** The links of one world. `closers` receives a function that closes each opened link. */
export class Links {
  /** The latest requests, oldest first. */
  readonly log: LinkRecord[] = [];
  readonly state: WorldState;
  /** The faults of a region after `reset`: the geography's stragglers. */
  readonly initialFaults: LinkFaults;
  readonly #options: WorldOptions;
  readonly #closers: (() => Promise<unknown>)[];
  readonly #random: () => number;
  /** By the name of the target. */
  readonly #places = new Map<string, Places>();
  readonly #clientLine = new AccessLine();
  readonly #startMs = performance.now();

  constructor(options: WorldOptions, closers: (() => Promise<unknown>)[]) {
    this.#options = options;
    this.#closers = closers;
    this.#random = seededRandom(options.seed).next;
    const { regions, pops, stragglers } = options.geography;
    this.initialFaults = { ...NO_FAULTS, stragglers };
    this.state = {
      near: pops[0]!,
      clientMbit: options.lineMbit,
      regionFaults: Object.fromEntries(regions.map((region) => [region, this.initialFaults])),
      pops: Object.fromEntries(pops.map((pop) => [pop, { down: false, kv: "ok" }])),
    };
  }

  /** Opens a link to every region, for a PoP or for `client`. `target` is the URL of the S3 server. */
  async toRegions(from: string, target: string): Promise<Record<string, Link>> {
    const { regions, regionLatencyMs } = this.#options.geography;
    const links: Record<string, Link> = {};
    for (const region of regions) {
      links[region] = await this.#open(from, region, () => target, {
        latencyMs: () => regionLatencyMs[from === "client" ? this.state.near : from]![region]!,
        faults: () => this.state.regionFaults[region]!,
      });
    }
    return links;
  }

  /** Opens the client's link to a PoP. `target` is the PoP's own URL. */
  toPop(pop: string, target: string): Promise<Link> {
    return this.#open("client", pop, () => target, {
      latencyMs: () => popLatencyMs(this.#options.geography, this.state.near, pop),
      faults: () => ({ ...NO_FAULTS, down: this.state.pops[pop]!.down }),
    });
  }

  /** Opens links from one PoP to all others. They are down while either end is down. */
  async toPeers(from: string, target: (peer: string) => string): Promise<{ name: string; url: string }[]> {
    const { pops, popDistanceMs } = this.#options.geography;
    const peers: { name: string; url: string }[] = [];
    for (const name of pops.filter((pop) => pop !== from)) {
      const { url } = await this.#open(from, name, () => target(name), {
        latencyMs: () => popDistanceMs[from]?.[name] ?? 0,
        faults: () => ({ ...NO_FAULTS, down: this.state.pops[name]!.down || this.state.pops[from]!.down }),
      });
      peers.push({ name, url });
    }
    return peers;
  }

  /** Changes the faults of a region; the others stay. */
  setRegionFaults(region: string, faults: Partial<LinkFaults>): void {
    this.state.regionFaults[region] = { ...this.state.regionFaults[region]!, ...faults };
    // With more places, some of those that wait may continue.
    this.#placesOf(region).look();
  }

  #placesOf(target: string): Places {
    const known = this.#places.get(target) ?? new Places();
    this.#places.set(target, known);
    return known;
  }

  async #open(
    from: string,
    to: string,
    target: () => string,
    place: { latencyMs: () => number; faults: () => LinkFaults },
  ): Promise<Link> {
    const { jitterSigma, mbitPerSecond, scale } = this.#options;
    const link = await openLink({
      from,
      to,
      get target() {
        return target();
      },
      jitterSigma,
      latencyMs: () => place.latencyMs() * scale,
      bytesPerSecond: () => bytesPerSecondOf(mbitPerSecond) || undefined,
      ...(from === "client" && {
        access: { line: this.#clientLine, bytesPerSecond: () => bytesPerSecondOf(this.state.clientMbit) },
      }),
      faults: place.faults,
      places: this.#placesOf(to),
      random: this.#random,
      now: () => performance.now() - this.#startMs,
      onRecord: (record) => {
        this.log.push(record);
        if (this.log.length > LOG_RECORDS_MAX) this.log.shift();
      },
    });
    this.#closers.push(() => link.close());
    return link;
  }
}

function bytesPerSecondOf(mbit: number): number {
  return (mbit * 1e6) / 8;
}
