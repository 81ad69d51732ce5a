/** C2P (ICDCN 2015), section 4.2. */
import { simulateStorageNodes, type StorageNodesResult, type StorageNodesStudy } from "../c2p/storage-nodes.ts";
import { change, ms, rowOf, run, share, table, type Tables } from "./page.ts";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

export const c2p: Tables = { storageNodes, responseTimes, betweenPops, lateEvents };

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
