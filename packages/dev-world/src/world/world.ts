/**
 * The local world: region buckets, PoPs in workerd, and an emulated link for every way a request can take.
 *
 * Viewpoints are the PoPs and the client; each sees every bucket through a link of its own, so the same bucket has one
 * address per viewpoint. The client can be moved next to another PoP, which changes the delays of its links only.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPops } from "../pops/pops.ts";
import { startS3Endpoint } from "../s3-endpoint/index.ts";
import { startVersitygw } from "../s3-endpoint/versitygw.ts";
import { popLatencyMs, TABLE_I } from "./geography.ts";
import type { WorldOptions } from "./world-options.ts";
import { NO_FAULTS, openLink, type Link, type LinkFaults, type LinkRecord } from "./wan-link.ts";

/** KV as a PoP meets it. */
export type KvState = "ok" | "down" | "slow" | "stale";

export interface World {
  readonly options: WorldOptions;
  /** Path of a configuration with which the other verbs work on this world. */
  readonly config: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly pops: readonly { readonly name: string; readonly url: string }[];
  readonly regions: readonly {
    readonly name: string;
    readonly provider: string;
    readonly endpoint: string;
    readonly bucket: string;
  }[];
  readonly log: LinkRecord[];
  readonly state: WorldState;
  setRegionFaults(region: string, faults: Partial<LinkFaults>): void;
  setPop(pop: string, change: { down?: boolean; kv?: KvState }): Promise<void>;
  /** Operations on a PoP's KV that the fault in force has spoiled. */
  kvFaultsFired(pop: string): Promise<number>;
  moveClient(near: string): void;
  /** Fires the Cron Trigger of all PoPs and waits until they are done. */
  cron(): Promise<void>;
  /** When that was done, the latest runs, oldest first (milliseconds since 1970). */
  readonly cronRuns: readonly number[];
  /** Ends every fault, empties the log and moves the client back. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export interface WorldState {
  /** While false, links neither delay nor throttle: used while samples are uploaded. */
  wan: boolean;
  near: string;
  readonly regionFaults: Record<string, LinkFaults>;
  readonly pops: Record<string, { down: boolean; kv: KvState }>;
}

/** For `agarose status` and `/metrics` of the local PoPs, which listen on this machine only. */
const DEV_ADMIN_TOKEN = "agarose-dev";
const LOG_RECORDS_MAX = 20_000;
const CRON_RUNS_MAX = 50;

/** Starts everything but the control address and the demo page. Whatever was started is closed when a later step fails. */
export async function startWorld(options: WorldOptions): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    return await assemble(options, closers, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function assemble(
  options: WorldOptions,
  closers: (() => Promise<unknown>)[],
  close: () => Promise<void>,
): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-world-"));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  const credentials = { accessKeyId: "agarose", secretAccessKey: crypto.randomUUID() };

  const { regions: regionNames, pops: popNames, provider } = options.geography;
  options.progress(`buckets (${options.s3})`);
  const start = options.s3 === "versitygw" ? startVersitygw : startS3Endpoint;
  const s3 = await start({ ...credentials, dir: join(folder, "s3"), buckets: regionNames.map(bucketOf) });
  closers.push(() => s3.close());

  options.progress("links");
  const links = new Links(options, closers);
  const clientRegions = await links.toRegions("client", s3.url);
  const popRegions: Record<string, Record<string, Link>> = {};
  for (const pop of popNames) popRegions[pop] = await links.toRegions(pop, s3.url);
  // PoPs are told the addresses of their peers before any of them has one: the links learn what is behind them later.
  const popUrls: Record<string, string> = {};
  const popPeers: Record<string, { name: string; url: string }[]> = {};
  for (const pop of popNames) popPeers[pop] = options.peers ? await links.toPeers(pop, (peer) => popUrls[peer]!) : [];
  const peerKey = crypto.randomUUID();

  options.progress("PoPs");
  const pops = await startPops({
    pops: popNames.map((name) => ({
      name,
      environment: TABLE_I.pops[0]!,
      vars: {
        CACHE_BYTES: String(options.cacheBytes),
        ADMIN_TOKEN: DEV_ADMIN_TOKEN,
        REGIONS: JSON.stringify(
          regionNames.map((region) => ({
            name: region,
            url: `${clientRegions[region]!.url}/${bucketOf(region)}`,
            popUrl: `${popRegions[name]![region]!.url}/${bucketOf(region)}`,
          })),
        ),
        PEERS: JSON.stringify(popPeers[name]),
        PEER_KEY: peerKey,
        ...options.popVars,
      },
    })),
  });
  closers.push(() => pops.dispose());
  const popLinks: { name: string; url: string }[] = [];
  for (const { name, url } of pops.pops) {
    popUrls[name] = url;
    popLinks.push({ name, url: (await links.toPop(name, url)).url });
  }

  const regions = regionNames.map((name) => ({
    name,
    provider: provider[name]!,
    endpoint: clientRegions[name]!.url,
    bucket: bucketOf(name),
  }));
  const config = await writeConfig(folder, options, regions, popLinks, credentials);

  const { state } = links;
  const setPop: World["setPop"] = async (pop, change) => {
    if (change.down !== undefined) state.pops[pop]!.down = change.down;
    if (change.kv === undefined) return;
    state.pops[pop]!.kv = change.kv;
    await pops.setFault(pop, { kv: change.kv });
  };
  const cronRuns: number[] = [];
  return {
    options,
    config,
    credentials,
    pops: popLinks,
    regions,
    log: links.log,
    state,
    setRegionFaults(region, faults) {
      state.regionFaults[region] = { ...state.regionFaults[region]!, ...faults };
    },
    setPop,
    kvFaultsFired: async (pop) => (await pops.fault(pop)).fired,
    moveClient(near) {
      state.near = near;
    },
    async cron() {
      await pops.cron();
      cronRuns.push(Date.now());
      if (cronRuns.length > CRON_RUNS_MAX) cronRuns.shift();
    },
    cronRuns,
    async reset() {
      for (const region of regionNames) state.regionFaults[region] = links.usual;
      for (const pop of popNames) await setPop(pop, { down: false, kv: "ok" });
      state.near = popNames[0]!;
      links.log.length = 0;
    },
    close,
  };
}

function bucketOf(region: string): string {
  return `agarose-${region}`;
}

/** Opens links and holds what they all depend on. */
class Links {
  readonly log: LinkRecord[] = [];
  readonly state: WorldState;
  /** What is wrong with every region all the time. */
  readonly usual: LinkFaults;
  readonly #options: WorldOptions;
  readonly #closers: (() => Promise<unknown>)[];
  readonly #random: () => number;
  readonly #startMs = performance.now();

  constructor(options: WorldOptions, closers: (() => Promise<unknown>)[]) {
    this.#options = options;
    this.#closers = closers;
    this.#random = mulberry32(options.seed);
    const { regions, pops, stragglers } = options.geography;
    this.usual = { ...NO_FAULTS, stragglers };
    this.state = {
      wan: true,
      near: pops[0]!,
      regionFaults: Object.fromEntries(regions.map((region) => [region, this.usual])),
      pops: Object.fromEntries(pops.map((pop) => [pop, { down: false, kv: "ok" }])),
    };
  }

  async toRegions(from: string, target: string): Promise<Record<string, Link>> {
    const { regions, regionLatencyMs } = this.#options.geography;
    const links: Record<string, Link> = {};
    for (const region of regions) {
      links[region] = await this.#open(from, region, target, {
        latencyMs: () => regionLatencyMs[from === "client" ? this.state.near : from]![region]!,
        faults: () => this.state.regionFaults[region]!,
      });
    }
    return links;
  }

  toPop(pop: string, target: string): Promise<Link> {
    return this.#open("client", pop, target, {
      latencyMs: () => popLatencyMs(this.#options.geography, this.state.near, pop),
      faults: () => ({ ...NO_FAULTS, down: this.state.pops[pop]!.down }),
    });
  }

  /** From one PoP to all others. A PoP that is down is so for them too. */
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

  async #open(
    from: string,
    to: string,
    target: string | (() => string),
    place: { latencyMs: () => number; faults: () => LinkFaults },
  ): Promise<Link> {
    const { jitterSigma, mbitPerSecond, scale } = this.#options;
    const { state } = this;
    const link = await openLink({
      from,
      to,
      get target() {
        return typeof target === "string" ? target : target();
      },
      jitterSigma,
      latencyMs: () => (state.wan ? place.latencyMs() * scale : 0),
      bytesPerSecond: () => (state.wan && mbitPerSecond > 0 ? (mbitPerSecond * 1e6) / 8 : undefined),
      faults: place.faults,
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

/** Writes a configuration and, as an AWS profile beside it, the credentials that go with it; returns its path. */
async function writeConfig(
  folder: string,
  options: WorldOptions,
  regions: World["regions"],
  pops: World["pops"],
  credentials: World["credentials"],
): Promise<string> {
  const profile = "agarose-dev";
  const credentialsFile = join(folder, "credentials");
  const keys = `aws_access_key_id = ${credentials.accessKeyId}\naws_secret_access_key = ${credentials.secretAccessKey}\n`;
  await writeFile(credentialsFile, `[${profile}]\n${keys}`, { mode: 0o600 });
  const config = {
    regions: regions.map((region) => ({ ...region, awsRegion: "us-east-1" })),
    code: options.code,
    survive: { regions: 1, providers: 0 },
    pops,
    credentials: { profile, credentialsFile },
  };
  const path = join(folder, "agarose.config.json");
  await writeFile(path, `${JSON.stringify(config, undefined, 2)}\n`);
  return path;
}

/** Random numbers in [0, 1) that a seed repeats; after Tommy Ettinger's mulberry32 (public domain). */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
