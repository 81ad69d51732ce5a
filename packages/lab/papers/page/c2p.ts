/** C2P (ICDCN 2015), section 4.2. */

import { simulateStorageNodes } from "../c2p/storage-nodes.ts";
import type { StorageNodesResult, StorageNodesStudy } from "../c2p/storage-nodes.ts";
import { change, ms, rowOf, run, prose, section, share, table } from "./page.ts";
import type { Section } from "./page.ts";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

export function c2p(): Section {
  return section(
    "## C2P (ICDCN 2015)",
    "### One client and four (section 4.2, Fig. 8 to 11)",
    storageNodes,
    prose`
      8 nodes with room for 128 segments each, 500 objects of 5 segments, 2,000 reads from cold caches; means of seeds 1-10, against
      plain LRU on the same reads. The exponent of the power law is not printed; the two shown were chosen to fit. Nor
      are Algorithm 1's threshold (30 s here) and how uneven the placement is (weights of 0.5 to 1.5). Messages are gathered for
      200 ms and travel 50 ms, or 800 ms with four clients, as measured by the authors. The direction of each effect follows from the
      model, but not every size. Complete misses grow up to twice as much as published, and partial ones shrink less. Disk reads
      fall less than published with one client, and more with four. With four clients the gain in hits grows in the model (+6.8 to +8.4%, and +5.2 to +6.6%), where the published
      one shrinks (+6.7 to +4.5%). Algorithm 1 alone, without any message, already saves all of the disk reads. That part of the
      gain is due to its hit counts, not to cooperation. \`c2p\` counts OiC as our PoPs do, from what the peers state that they hold.
      \`c2p-counted\` counts it as the paper does: 1 when an object is read, and a share less with every event of a replaced segment.
    `,
    "### Response times and throughput (Fig. 7 and 8b)",
    responseTimes,
    prose`
      The same runs at Zipf 0.7. A hit takes 0.56 s and any miss 1.25 s here: 5 MB at the 9 and 4 MB/s of Fig. 8b. So the share of
      reads within 0.8 s is the share of hits, and a partial miss is as slow as a complete one. The paper has its partial misses
      in between, up to 1.2 s, and 6% more objects within 0.8 s with C2P. Its absolute shares are not printed.
    `,
    "### C2P between PoPs",
    betweenPops,
    prose`
      Our use of it, no figure of the paper: the three PoPs of \`five-together.json\`, exact chunks, delta 0, charged nothing for messages. C2P
      prefers whole objects, which is right where a read must wait for a disk if any segment misses; between regions of very
      different distance it is not: placing the chunks jointly by what they save (\`adaptive\`, joint) is far better.
    `,
    "### Late and filtered events between PoPs (section 3.2)",
    lateEvents,
    prose`
      The same PoPs, each deciding on every read. They gather their hit, miss and replacement events for so long before a message,
      and a filter keeps so many statements of it; those about the least read objects go first. A filter of one
      statement costs 6 to 13%, news after two seconds 8%. So with news every two seconds, as often as isolates hand on their counts, C2P is no better than the
      deployed \`POLICY=c2p\`, which decides once a period. PoPs therefore send no event for each hit and miss.
    `,
    prose`
      Not reproduced: Fig. 4, the curves of Fig. 7, Fig. 9b and parts c of Fig. 8 and 9 (times of a Swift cluster, and segment hits of
      each of its nodes), which depend on its disks and its placement. Table 1 is an example without data: three objects of three segments, of which coordination keeps two whole. Fig. 5 and 6
      draw the authors' placement and one series of requests, which are not published.
    `,
  );
}

function storageNodes(): string {
  const published = {
    1: ["+6.7%", "-50%", "+4%", "-5%", "20", "< 200"],
    4: ["+4.5%", "-43%", "+4%", "-3.5%", "70", "1000"],
  };
  const body = ([1, 4] as const).flatMap((clients) => {
    const lines = [0.7, 0.8].flatMap((zipfExponent) => {
      const study = { clients, zipfExponent, delayMs: clients === 1 ? 50 : 800 };
      const lru = meanOver({ ...study, replacement: "lru" });
      return (["algorithm-1", "c2p", "c2p-counted"] as const).map((replacement) => {
        const own = meanOver({ ...study, replacement });
        const talk = replacement !== "algorithm-1" ? [own.messagesPerSecond.toFixed(0), ms(own.messageMs)] : ["", ""];
        return [`${clients}`, `${replacement}, Zipf ${zipfExponent}`, ...changes(own, lru), ...talk];
      });
    });
    return [[`${clients}`, "**published C2P**", ...published[clients]], ...lines];
  });
  return table(
    ["clients", "case", "object hits", "partial misses", "complete misses", "disk reads", "messages/s", "message ms"],
    ...body,
  );
}

function changes(own: StorageNodesResult, lru: StorageNodesResult): string[] {
  return (["hits", "partialMisses", "completeMisses", "diskReads"] as const).map((field) =>
    change(own[field], lru[field]),
  );
}

function meanOver(study: Omit<StorageNodesStudy, "seed">): StorageNodesResult {
  const results = SEEDS.map((seed) => simulateStorageNodes({ ...study, seed }));
  const sum = { ...results[0]! } as Record<string, number>;
  for (const field of Object.keys(sum)) {
    sum[field] = results.reduce((total, result) => total + result[field as keyof StorageNodesResult], 0) / SEEDS.length;
  }
  return sum as unknown as StorageNodesResult;
}

function responseTimes(): string {
  const body = ([1, 4] as const).flatMap((clients) =>
    (["lru", "c2p"] as const).map((replacement) => {
      const study = { clients, zipfExponent: 0.7, delayMs: clients === 1 ? 50 : 800, replacement };
      const { hits, partialMisses, completeMisses } = meanOver(study);
      const reads = hits + partialMisses + completeMisses;
      return [clients, replacement, ...[hits, partialMisses, completeMisses].map((count) => share(count / reads))];
    }),
  );
  return table(
    ["clients", "case", "within 0.8 s, at 9 MB/s", "partial misses, at 4 MB/s", "complete misses, at 4 MB/s"],
    ...body,
  );
}

async function betweenPops(): Promise<string> {
  const read = { delta: 0, cachedChunks: "exact" };
  const systems = [
    { name: "lru, PoPs alone", policy: "lru", read },
    { name: "c2p", policy: "c2p", read },
    { name: "c2p, 30% of messages lost", policy: "c2p", read, lossProbability: 0.3 },
    { name: "adaptive, PoPs alone", policy: "adaptive", read },
    { name: "adaptive, joint", policy: "adaptive", joint: true, read },
  ];
  const atPops = { name: "c2p at PoPs, once a period", policy: "c2p", read };
  const rows = [
    ...(await run("five-together.json", { systems, runs: 1 })),
    ...(await run("five-together.json", { systems: [atPops], runs: 1, decide: "period", exchangeSeconds: 30 })),
  ];
  return table(
    ["system", "mean ms", "chunks from own cache", "from peers", "cache writes", "messages"],
    ...[...systems, atPops].map(({ name }) => {
      const { meanMs, chunkHitRatio, peerChunkRatio, writes, messages } = rowOf(rows, name);
      return [name, ms(meanMs), share(chunkHitRatio), share(peerChunkRatio), writes, messages ?? ""];
    }),
  );
}

async function lateEvents(): Promise<string> {
  const read = { delta: 0, cachedChunks: "exact" };
  const systems = [200, 2_000, 30_000].flatMap((gatherMs) =>
    [256, 1].map((statementsMax) => {
      return { name: `${gatherMs}/${statementsMax}`, policy: "c2p", read, gatherMs, statementsMax };
    }),
  );
  const loads = [
    { perSecond: 10, seconds: 1_800 },
    { perSecond: 100, seconds: 300 },
  ];
  const rows = await Promise.all(loads.map((requests) => run("five-together.json", { systems, requests, runs: 1 })));
  return table(
    [
      "gathered for",
      "statements in a message",
      ...loads.flatMap(({ perSecond }) => [`mean ms at ${perSecond} reads/s`, "messages"]),
    ],
    ...systems.map(({ name, gatherMs, statementsMax }) => [
      `${gatherMs / 1_000} s`,
      `at most ${statementsMax}`,
      ...rows.flatMap((ofLoad) => {
        const { meanMs, messages } = rowOf(ofLoad, name);
        return [ms(meanMs), messages ?? ""];
      }),
    ]),
  );
}
