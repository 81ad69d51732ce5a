/**
 * The local world: region buckets, PoPs in workerd, and an emulated link for every path that a request can take.
 *
 * The PoPs and the client each reach every bucket through a link of their own, so a bucket has one address per
 * viewpoint. Moving the client beside another PoP changes the delays of the client's links only.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KvState } from "../pops/kv-fault.ts";
import { startMixedPops, type MixedPops } from "../pops/mixed-pops.ts";
import { startS3Endpoint, startVersitygw } from "../s3-endpoint/index.ts";
import { DEVELOPMENT_KEY } from "@agarose/core/format";
import { Links } from "./links.ts";
import type { WorldOptions } from "./world-options.ts";
import type { Link, LinkFaults } from "./wan-link.ts";
import { writeWorldConfig } from "./world-config.ts";

/** A running world. */
export type World = Awaited<ReturnType<typeof assemble>>;

/** `agarose status` and `/metrics` of the local PoPs take this token. The PoPs listen on this machine only. */
const DEV_ADMIN_TOKEN = "agarose-dev-admin-token";
const CRON_RUNS_MAX = 50;
/** The environment of wrangler.toml that all local PoPs have. Their variables replace its own. */
const POP_ENVIRONMENT = "fra";

type Closers = (() => Promise<unknown>)[];

/** Starts buckets, links and PoPs. When a step fails, closes what it has started and rejects. */
export async function startWorld(options: WorldOptions): Promise<World> {
  const closers: Closers = [];
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

async function assemble(options: WorldOptions, closers: Closers, close: () => Promise<void>) {
  const { regions: regionNames, provider } = options.geography;
  const folder = await mkdtemp(join(tmpdir(), "agarose-world-"));
  closers.push(() => rm(folder, { recursive: true, force: true }));
  const credentials = { accessKeyId: "agarose", secretAccessKey: crypto.randomUUID() };

  options.progress(`buckets (${options.s3})`);
  const start = options.s3 === "versitygw" ? startVersitygw : startS3Endpoint;
  const s3 = await start({ ...credentials, dir: join(folder, "s3"), buckets: regionNames.map(bucketOf) });
  closers.push(() => s3.close());

  options.progress("links");
  const links = new Links(options, closers);
  const clientRegions = await links.toRegions("client", s3.url);
  const { pops, popLinks, popBuckets } = await startLinkedPops(options, links, s3.url, clientRegions, closers);

  const regions = regionNames.map((name) => ({
    name,
    provider: provider[name]!,
    latencyMs: meanLatencyMs(options, name),
    endpoint: clientRegions[name]!.url,
    bucket: bucketOf(name),
  }));
  const config = await writeWorldConfig(folder, options, {
    regions,
    pops: popLinks,
    credentials,
    adminToken: DEV_ADMIN_TOKEN,
  });
  return {
    options,
    /** Path of a configuration by which the CLI works on this world. */
    config,
    credentials,
    /** URL of the S3 server behind the links. Requests to it are neither delayed, broken nor logged. */
    s3Url: s3.url,
    /** The PoPs as the client reaches them. */
    pops: popLinks,
    /** The buckets as the client reaches them. */
    regions,
    /** The URL of each region's bucket as a PoP reaches it, by PoP and region. */
    popBuckets,
    /** Opens the client's link to a server beside a PoP, for comparisons. Returns its URL; it closes with the world. */
    linkBeside: async (pop: string, target: string) => (await links.toPop(pop, target)).url,
    ...controlsOf(options, links, pops),
    /** Ends every process and removes every file of the world. */
    close,
  };
}

/** As clients beside all PoPs see a region on average. */
function meanLatencyMs({ geography, scale }: WorldOptions, region: string): number {
  const { pops, regionLatencyMs } = geography;
  return (scale * pops.reduce((sum, pop) => sum + regionLatencyMs[pop]![region]!, 0)) / pops.length;
}

/** Starts the PoPs with links to the regions, to each other, and from the client. */
async function startLinkedPops(
  options: WorldOptions,
  links: Links,
  s3Url: string,
  clientRegions: Record<string, Link>,
  closers: Closers,
) {
  const { regions: regionNames, pops: popNames } = options.geography;
  const popBuckets: Record<string, Record<string, string>> = {};
  for (const pop of popNames) {
    const opened = Object.entries(await links.toRegions(pop, s3Url));
    popBuckets[pop] = Object.fromEntries(opened.map(([name, { url }]) => [name, `${url}/${bucketOf(name)}`]));
  }
  // A PoP needs the addresses of its peers before they exist, so the links look up their targets later.
  const popUrls: Record<string, string> = {};
  const popPeers: Record<string, { name: string; url: string }[]> = {};
  for (const pop of popNames) popPeers[pop] = options.peers ? await links.toPeers(pop, (peer) => popUrls[peer]!) : [];
  const peerKey = crypto.randomUUID();

  options.progress("PoPs");
  const pops = await startMixedPops(
    popNames.map((name) => ({
      name,
      environment: POP_ENVIRONMENT,
      vars: {
        CACHE_BYTES: String(options.cacheBytes),
        ADMIN_TOKEN: DEV_ADMIN_TOKEN,
        PUBLISHER_KEYS: JSON.stringify([DEVELOPMENT_KEY.publicKey]),
        REGIONS: JSON.stringify(
          regionNames.map((region) => ({
            name: region,
            url: `${clientRegions[region]!.url}/${bucketOf(region)}`,
            popUrl: popBuckets[name]![region]!,
          })),
        ),
        PEERS: JSON.stringify(popPeers[name]),
        PEER_KEY: peerKey,
        ...options.popVars,
      },
    })),
    options.runtimes ?? [],
  );
  closers.push(() => pops.dispose());
  const popLinks: { name: string; url: string }[] = [];
  for (const { name, url } of pops.pops) {
    popUrls[name] = url;
    popLinks.push({ name, url: (await links.toPop(name, url)).url });
  }
  return { pops, popLinks, popBuckets };
}

function controlsOf({ geography, lineMbit }: WorldOptions, links: Links, pops: MixedPops) {
  const { log, state, initialFaults } = links;
  const cronRuns: number[] = [];
  const setPop = async (pop: string, change: { down?: boolean; kv?: KvState }): Promise<void> => {
    if (change.down !== undefined) state.pops[pop]!.down = change.down;
    if (change.kv === undefined) return;
    state.pops[pop]!.kv = change.kv;
    await pops.setFault(pop, { kv: change.kv });
  };
  return {
    /** The latest requests over all links, oldest first. */
    log,
    state,
    /** Changes the given faults of a region, and keeps its others. */
    setRegionFaults: (region: string, faults: Partial<LinkFaults>) => links.setRegionFaults(region, faults),
    /** Changes the given faults of a PoP, and keeps its others. */
    setPop,
    /** Returns how many KV operations of a PoP the current fault has spoiled. */
    kvFaultsFired: async (pop: string) => (await pops.fault(pop)).fired,
    /** Moves the client beside a PoP. */
    moveClient(near: string) {
      state.near = near;
    },
    /** Lets all downloads of the client share so many megabits per second; 0 is unlimited. */
    throttleClient(mbit: number) {
      state.clientMbit = mbit;
    },
    /** Fires the Cron Trigger of every PoP. Resolves when all of them are done. */
    async cron() {
      await pops.cron();
      cronRuns.push(Date.now());
      if (cronRuns.length > CRON_RUNS_MAX) cronRuns.shift();
    },
    /** The answers of all PoPs at `/v1/status`, even of one that clients cannot reach. */
    popStatuses: () =>
      Promise.all(
        pops.pops.map(async ({ url }): Promise<unknown> => {
          const response = await fetch(`${url}/v1/status`, { headers: { authorization: `Bearer ${DEV_ADMIN_TOKEN}` } });
          return response.json();
        }),
      ),
    /** When the latest runs of `cron` ended, oldest first, in milliseconds since 1970. */
    cronRuns,
    /** Ends every fault, empties the log, and gives the client its place and line back. Objects and caches stay. */
    async reset() {
      for (const region of geography.regions) links.setRegionFaults(region, initialFaults);
      await Promise.all(geography.pops.map((pop) => setPop(pop, { down: false, kv: "ok" })));
      state.near = geography.pops[0]!;
      state.clientMbit = lineMbit;
      log.length = 0;
    },
  };
}

function bucketOf(region: string): string {
  return `agarose-${region}`;
}
