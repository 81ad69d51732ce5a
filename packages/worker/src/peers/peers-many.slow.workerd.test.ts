/** Twelve PoPs: more than cooperate all with all. Their links count what they say to each other. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPops, type Pops } from "@agarose/dev-world/pops";
import { PEERS } from "../../scripts/operating-costs.ts";
import { startBuckets, type BucketServer } from "../../test/bucket-server.ts";
import { REGIONS } from "../../test/objects.ts";
import { startPeerLink, type PeerLink } from "../../test/peer-link.ts";
import { PEER_KEY, type PeersStatus } from "../../test/peers-world.ts";
import { ADMIN_TOKEN } from "../../test/world.ts";
import { NEAREST_MAX, type PeerMessage } from "@agarose/solver/cooperation";

const NAMES = Array.from({ length: 12 }, (_, i) => `pop-${String(i).padStart(2, "0")}`);
/** The last three are so far from all others that the load of the machine does not decide who is near. */
const FAR = 3;
const FAR_MS = 1_200;
/** All nine at the centre are near for the far ones, which are not for each other. */
const PAIRS = NAMES.length * (NAMES.length - 1) - FAR * (FAR - 1);
/** A PoP that waits too long on a busy machine has its turn in a later period. */
const PERIODS_MAX = 8;

let buckets: BucketServer;
let pops: Pops;
/** The way to each PoP, from all others. */
let links: Map<string, PeerLink>;

beforeAll(async () => {
  buckets = await startBuckets();
  const regions = REGIONS.map((name) => ({ name, url: `${buckets.url}/${name}` }));
  links = new Map();
  for (const [i, name] of NAMES.entries()) {
    links.set(name, await startPeerLink(i < NAMES.length - FAR ? 0 : FAR_MS));
  }
  const vars = {
    REGIONS: JSON.stringify(regions),
    ADMIN_TOKEN,
    UNSIGNED: "true",
    PEERS: JSON.stringify(NAMES.map((name) => ({ name, url: links.get(name)!.url }))),
    PEER_KEY,
  };
  pops = await startPops({ pops: NAMES.map((name) => ({ name, environment: "fra", vars: { ...vars, POP: name } })) });
  for (const { name, url } of pops.pops) links.get(name)!.target = url;
  // A PoP answers its first request late, and estimates remember that for many periods.
  for (const { url } of links.values()) await (await fetch(`${url}/healthz`)).arrayBuffer();
});
afterAll(async () => {
  await pops.dispose();
  for (const link of links.values()) await link.close();
  await buckets.close();
});

async function statusOf(name: string): Promise<NonNullable<PeersStatus["peers"]>> {
  const { url } = pops.pops.find((pop) => pop.name === name)!;
  const response = await fetch(`${url}/v1/status`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  return ((await response.json()) as PeersStatus).peers!;
}

test("PoPs talk to their neighbours alone, and each has its turn", async () => {
  const turned = new Set<string>();
  let sent = new Map<string, Set<string>>();
  let pairs = 0;
  // Whom to talk to is known once all have measured all, and who listens once that has been said.
  for (let period = 0; period < PERIODS_MAX; period++) {
    const before = new Map<string, number>();
    for (const name of NAMES) before.set(name, (await statusOf(name)).turn);
    for (const link of links.values()) link.paths.length = link.messages.length = 0;
    await pops.cron();
    // The last messages of a period are still on their way to the far PoPs, and belong to no later one.
    await new Promise((resolve) => setTimeout(resolve, 2 * FAR_MS));
    for (const name of NAMES) if ((await statusOf(name)).turn > before.get(name)!) turned.add(name);
    sent = new Map<string, Set<string>>(NAMES.map((name) => [name, new Set()]));
    const messages = [...links.values()].flatMap((link) => link.messages);
    const probes = [...links.values()].flatMap(({ paths }) => paths).filter((path) => path === "GET /healthz");
    for (const { body } of messages) {
      const { to, cache } = JSON.parse(body) as PeerMessage;
      sent.get(cache.node)!.add(to);
    }
    pairs = [...sent.values()].reduce((sum, to) => sum + to.size, 0);
    expect(messages.length).toBeLessThanOrEqual(PEERS.messages * pairs);
    if (period > 0) expect(probes.length).toBeLessThanOrEqual(PEERS.probes * NAMES.length * (NAMES.length - 1));
    if (pairs === PAIRS && turned.size === NAMES.length) break;
  }
  expect(pairs, "of which one talks to the other").toBe(PAIRS);
  expect([...turned].toSorted()).toEqual(NAMES);
  for (const name of NAMES) {
    const { peers } = await statusOf(name);
    expect(peers.length).toBeGreaterThanOrEqual(NEAREST_MAX);
    for (const peer of peers) {
      expect([peer.down, peer.silent], `${name} of ${peer.name}`).toEqual([false, false]);
      expect(sent.get(peer.name)!.has(name), `${peer.name} talks to ${name}, which listens`).toBe(true);
    }
  }
});
