/** Three PoPs in real workerd that are each other's peers, over links that break on demand. For tests. */
import type { Manifest } from "@agarose/core/format";
import { startPops } from "@agarose/dev-world/pops";
import { parsePeersInForce, PEERS_EMPTY } from "../src/peers/peers-snapshot.ts";
import { startBuckets, type BucketServer } from "./bucket-server.ts";
import { inWorkerd, isOnNode, startNodePops, type ContractPops } from "./node-pops.ts";
import { putObject, REGIONS, type PutOptions } from "./objects.ts";
import { startPeerLink, type PeerLink } from "./peer-link.ts";
import { ADMIN_TOKEN, type Status } from "./world.ts";

export const NAMES = ["fra", "lhr", "iad"] as const;
export type Name = (typeof NAMES)[number];
export const PEER_KEY = "a secret of the three PoPs";

export interface PeersStatus extends Status {
  readonly peers: {
    readonly turn: number;
    readonly peers: { name: string; down: boolean; silent: boolean; meanMs: number; turn: number; objects: number }[];
  } | null;
}

export interface PeersWorld {
  readonly buckets: BucketServer;
  readonly pops: ContractPops;
  url(name: Name | "lhr2"): string;
  /** The way from one PoP to another. */
  link(from: Name, to: Name): PeerLink;
  put(key: string, content: Uint8Array, options?: PutOptions): Promise<Manifest>;
  status(name: Name): Promise<PeersStatus>;
  /** Has the PoP drop all that it has cached of the object. */
  purge(name: Name, key: string): Promise<Response>;
  /** Returns what isolates of a PoP learn of a peer's chunks, once `isIt` accepts it. */
  reported(
    name: Name,
    peer: Name,
    isIt: (held: Record<string, readonly number[]>) => boolean,
  ): Promise<Record<string, readonly number[]>>;
  /** Runs periods until a PoP has measured the peer as much nearer than any bucket. A busy machine measures late. */
  measuredNearer(name: Name, peer: Name): Promise<void>;
  /** Runs periods until a PoP has measured the peer as much farther than every bucket. */
  measuredFarther(name: Name, peer: Name): Promise<void>;
  close(): Promise<void>;
}

const LINK_MS = 5;
/** The buckets are farther than any peer. */
const BUCKET_MS = 300;
const PATIENCE_MS = 60_000;
/** Measurements of a start beside other work leave an estimate after a few periods. */
const PERIODS_MAX = 20;
/** Reads choose by means with some chance, so a little nearer is not enough. */
const NEARER_FACTOR = 1.5;
const POLL_MS = 50;

/**
 * @param vars of every PoP; of one of them where `own` says so.
 * @param more `egressUsdPerGb`: what every region charges; `lhr2`: start a second isolate of London; `bucketMs` and
 *   `linkMs`: how far buckets and peers are.
 */
export async function startPeersWorld(
  vars: Record<string, string> = {},
  own: Partial<Record<Name, Record<string, string>>> = {},
  { egressUsdPerGb = 0, lhr2 = false, bucketMs = BUCKET_MS, linkMs = LINK_MS } = {},
): Promise<PeersWorld> {
  const buckets = await startBuckets();
  for (const region of REGIONS) buckets.faults.set(region, { delayMs: bucketMs });
  const regions = REGIONS.map((name) => ({
    name,
    url: `http://public.invalid/${name}`,
    popUrl: `${buckets.url}/${name}`,
    egressUsdPerGb,
  }));
  const links = new Map<string, PeerLink>();
  for (const from of NAMES) {
    for (const to of NAMES) if (from !== to) links.set(`${from} ${to}`, await startPeerLink(linkMs));
  }
  const link = (from: Name, to: Name): PeerLink => links.get(`${from} ${to}`)!;
  const varsOf = (name: Name): Record<string, string> => ({
    REGIONS: JSON.stringify(regions),
    ADMIN_TOKEN,
    UNSIGNED: "true",
    POLICY: "exact",
    DELTA: "0",
    PEERS: JSON.stringify(NAMES.flatMap((to) => (to === name ? [] : [{ name: to, url: link(name, to).url }]))),
    PEER_KEY,
    ...vars,
    ...own[name],
  });
  const three = NAMES.map((name) => ({ name, vars: varsOf(name) }));
  const second = lhr2 ? [{ name: "lhr2", isolateOf: "lhr", vars: varsOf("lhr") }] : [];
  const pops = isOnNode()
    ? await startNodePops(three, () => {})
    : inWorkerd(await startPops({ pops: [...three, ...second] }));
  const url = (name: Name | "lhr2"): string => pops.pops.find((pop) => pop.name === name)!.url;
  const status = async (name: Name): Promise<PeersStatus> => {
    const response = await fetch(`${url(name)}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
    return (await response.json()) as PeersStatus;
  };
  for (const from of NAMES) for (const to of NAMES) if (from !== to) link(from, to).target = url(to);
  // A PoP answers its first request late, and estimates remember that for many periods.
  for (const { url: known } of links.values()) await (await fetch(`${known}/healthz`)).arrayBuffer();
  const measured = async (
    name: Name,
    peer: Name,
    isIt: (peerMs: number, bucketsMs: readonly number[]) => boolean,
  ): Promise<void> => {
    for (let period = 0; ; period++) {
      const { peers, regions: seen } = await status(name);
      const peerMs = peers?.peers.find((one) => one.name === peer && !one.down)?.meanMs;
      const bucketsMs = seen.map(({ meanMs }) => meanMs);
      if (peerMs !== undefined && isIt(peerMs, bucketsMs)) return;
      if (period === PERIODS_MAX) throw new Error(`${name} measures ${peer} at ${peerMs} ms, buckets at ${bucketsMs}`);
      await pops.cron();
    }
  };
  return {
    buckets,
    pops,
    url,
    link,
    put: (key, content, options) => putObject(buckets, key, content, options),
    status,
    purge: (name, key) =>
      fetch(`${url(name)}/v1/purge`, {
        method: "POST",
        body: JSON.stringify({ keys: [key] }),
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      }),
    async reported(name, peer, isIt) {
      const untilMs = Date.now() + PATIENCE_MS;
      for (;;) {
        const value = await (await pops.values(name)).get("peers");
        const { peers } = parsePeersInForce(value ?? "") ?? PEERS_EMPTY;
        const held = Object.fromEntries(peers.find((one) => one.name === peer)?.held ?? []);
        if (isIt(held)) return held;
        if (Date.now() > untilMs) throw new Error(`${name} knows of ${peer} only ${value}`);
        // Another process writes it: there is nothing here to wait for.
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
    measuredNearer: (name, peer) =>
      measured(name, peer, (peerMs, bucketsMs) => peerMs * NEARER_FACTOR < Math.min(...bucketsMs)),
    measuredFarther: (name, peer) =>
      measured(name, peer, (peerMs, bucketsMs) => peerMs > NEARER_FACTOR * Math.max(...bucketsMs)),
    async close() {
      await pops.dispose();
      for (const one of links.values()) await one.close();
      await buckets.close();
    },
  };
}
