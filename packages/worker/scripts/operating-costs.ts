/**
 * The monthly costs of one PoP and its buckets: `node packages/worker/scripts/operating-costs.ts` prints what
 * docs/reference/request-costs.md has between its markers, and `scripts/docs/figures.test.ts` compares the pages that
 * quote it. `test/operation-costs.slow.test.ts` counts the operations.
 */
import { NEAREST_MAX } from "@agarose/solver/cooperation";
import { SLOTS } from "@agarose/solver/planner";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

/** Paid operations, as counted. */
export const OPERATIONS = {
  /** Of the first bundle in an isolate of a data center that has neither the configuration nor the stripe: one each. */
  kvReadsFirst: 2,
  /** Of a period that changes nothing, at most: the configuration is read, and written. */
  kvPeriodIdle: 2,
  /** Each stripe that a period fills is looked up and written. */
  kvPerStripeFilled: 2,
  /** Calls of Durable Objects of a period that changes nothing, at most. */
  objectCallsPeriodIdle: 15,
  /** Further ones of a period that fills: what it announces, its progress, and what it promises. */
  objectCallsFilling: 20,
  /** Calls of an exchange, at most: the shards, and the PoP's state, which is called once more by its alarm. */
  objectCallsExchange: 12,
  probesPerRegion: 3,
  /**
   * Popularity is a blob in each shard; regions, facts and what has changed of the ledger are rows of the PoP's state.
   */
  rowsPeriod: 40,
  /** The alarm, the lease, and the plan of up to a megabyte. */
  rowsExchange: 8,
  /** Of the ledger, for each stripe that a period fills, of objects with one. */
  rowsPerStripeFilled: 13,
  /** Each shard writes its counts as one row, at most every five seconds, and drops it at the end. */
  rowsCountsPeriod: 60 / 5 + 1,
  /** Lines that a period writes to the log, at most; reads write none. Cloudflare's own are off. */
  linesPeriod: 20,
};

/** The differences between deployments: change it and run the script. */
export const ASSUMED = {
  objectBytes: 100_000,
  k: 4,
  m: 2,
  delta: 1,
  regions: 6,
  /** The object of rank r gets a share of the reads that is proportional to r^-zipf. */
  zipf: 0.9,
  /** Of the full hits, the share with the stripe neither in the isolate's memory nor in the data center's Cache API. */
  kvReadRatio: 0.1,
  /** An isolate reads the configuration every five seconds while it has requests. */
  requestsPerSecondOfIsolate: 20,
  /** Different keys among the requests that an isolate hands on at once. */
  keysPerRequest: 0.5,
  /** A local workerd takes 0.23 ms for a bundle of this size; others run beside it at Cloudflare. */
  cpuMs: 1,
  /**
   * How long a call keeps a Durable Object active. An idle object without a timer is not billed
   * (developers.cloudflare.com/durable-objects/platform/pricing).
   */
  objectSecondsPerCall: 0.005,
  /** How long a period keeps the PoP's state and the state of the peers active: it fills, and waits for its turn. */
  periodSeconds: 15,
  /** How long an exchange keeps the PoP's state active. */
  exchangeSeconds: 0.3,
  /** Stripes written for each read: what `adaptive` wrote in a simulated day of a million requests. */
  stripesWrittenPerRead: 0.06,
  /** The budget of the cache manager in wrangler.toml. */
  cacheBudgetUsd: 20,
  cacheBytes: 1e9,
  /** `head_sampling_rate` of the lines. */
  linesKept: 0.1,
  storedBytes: 1e12,
  scrubsPerDay: 1,
};

/** Requests of a scrub for objects that are whole, as counted. */
export const SCRUB = {
  /** For each object, unless the configuration gives all objects one code. */
  manifestGets: 1,
  /** A listing names so many objects at once, of manifests and of chunks. */
  listedPerRequest: 1_000,
};

/** Requests of a PoP in a period, as `peers-many.slow.workerd.test.ts` counts them. */
export const PEERS = {
  /** To each neighbour, and to each PoP beyond that is measured. */
  probes: 4,
  /** To each neighbour, whose Durable Object takes them: what changed, and the end of its turn. */
  messages: 2,
  /** Of more than ten PoPs. */
  farMeasured: 2,
};

/** The date of the prices. */
const PRICES_OF = "November 2026";
/** The price of S3 for each of the first GB after the free ones. */
export const S3_EGRESS_USD_PER_GB = 0.09;
/**
 * List prices in US dollars; `included` a month by Workers Paid, or by R2. Sources, as of `PRICES_OF`:
 * developers.cloudflare.com/workers/platform/pricing, /kv/platform/pricing, /durable-objects/platform/pricing,
 * /workers/observability/logs/workers-logs, /r2/pricing; aws.amazon.com/s3/pricing (us-east-1).
 */
export const PRICES = {
  planUsd: 5,
  requestsPerMillion: 0.3,
  requestsIncluded: 10e6,
  cpuMsPerMillion: 0.02,
  cpuMsIncluded: 30e6,
  kvReadsPerMillion: 0.5,
  kvReadsIncluded: 10e6,
  kvWritesPerMillion: 5,
  kvWritesIncluded: 1e6,
  kvGb: 0.5,
  kvGbIncluded: 1,
  objectRequestsPerMillion: 0.15,
  objectRequestsIncluded: 1e6,
  objectGbSecondsPerMillion: 12.5,
  objectGbSecondsIncluded: 400_000,
  rowsWrittenPerMillion: 1,
  rowsWrittenIncluded: 50e6,
  linesPerMillion: 0.6,
  linesIncluded: 20e6,
  s3GetsPerMillion: 0.4,
  s3ListsPerMillion: 5,
  /** Egress of all regions of an account together: so many GB at this price each. */
  s3EgressTiers: [
    { gb: 100, usd: 0 },
    { gb: 10 * 1024, usd: S3_EGRESS_USD_PER_GB },
    { gb: 40 * 1024, usd: 0.085 },
    { gb: 100 * 1024, usd: 0.07 },
    { gb: Infinity, usd: 0.05 },
  ],
  s3Gb: 0.023,
  r2GetsPerMillion: 0.36,
  r2GetsIncluded: 10e6,
  r2ListsPerMillion: 4.5,
  r2ListsIncluded: 1e6,
  r2Gb: 0.015,
  r2GbIncluded: 10,
};

const SECONDS = 730 * 3600;
const PERIODS = SECONDS / 60;
/** An alarm every five seconds. */
const EXCHANGES = SECONDS / 5;
/** An isolate hands on what it has counted so often, while it has requests. */
export const FLUSH_SECONDS = 2;
const CONFIGURATION_SECONDS = 5;
/** Durable Objects that share the keys. */
export const MONITOR_SHARDS = 4;

type Assumed = typeof ASSUMED;

const beyond = (amount: number, included: number): number => Math.max(0, amount - included);
const perMillion = (amount: number, included: number, usd: number): number => (beyond(amount, included) / 1e6) * usd;

/**
 * Returns the share of the reads that take all their chunks from the PoP's cache: those of the most popular objects, of
 * which it holds as many as its policy distinguishes and its cache has room for.
 */
export function fullHitRatio(assumed: Assumed = ASSUMED): number {
  const { storedBytes, objectBytes, zipf } = assumed;
  return weightOf(cachedObjects(assumed), zipf) / weightOf(storedBytes / objectBytes, zipf);
}

function cachedObjects({ storedBytes, objectBytes, cacheBytes }: Assumed = ASSUMED): number {
  return Math.min(storedBytes / objectBytes, SLOTS, cacheBytes / objectBytes);
}

/** The sum of rank^-zipf over the first `ranks`: the head in full, the tail by the Euler-Maclaurin formula. */
function weightOf(ranks: number, zipf: number): number {
  const head = Math.min(ranks, 1_000);
  let sum = 0;
  for (let rank = 1; rank <= head; rank++) sum += rank ** -zipf;
  const tail = (ranks ** (1 - zipf) - head ** (1 - zipf)) / (1 - zipf);
  return sum + tail + (ranks ** -zipf - head ** -zipf) / 2;
}

/** Monthly amounts and dollars of one PoP at `rate` requests a second. */
function monthlyCosts(rate: number, fullHits: number, assumed: Assumed = ASSUMED, prices = PRICES) {
  const reads = rate * SECONDS;
  const isolates = Math.max(1, rate / assumed.requestsPerSecondOfIsolate);
  const misses = reads * (1 - fullHits);
  const workerRequests = reads + PERIODS;
  const kvReads = reads * fullHits * assumed.kvReadRatio + isolates * (SECONDS / CONFIGURATION_SECONDS) * 2;
  const keysPerFlush = Math.max(1, (rate / isolates) * FLUSH_SECONDS * assumed.keysPerRequest);
  const flushes = isolates * (SECONDS / FLUSH_SECONDS) * Math.min(1, rate * FLUSH_SECONDS);
  const objectRequests =
    flushes * (Math.min(MONITOR_SHARDS, keysPerFlush) + 1) +
    (OPERATIONS.objectCallsPeriodIdle + OPERATIONS.objectCallsFilling) * PERIODS +
    OPERATIONS.objectCallsExchange * EXCHANGES;
  // A shard that is called all the time is billed all the time, however many calls it answers at once.
  const shardSeconds = Math.min(
    SECONDS,
    flushes * Math.min(1, keysPerFlush / MONITOR_SHARDS) * assumed.objectSecondsPerCall,
  );
  const stateSeconds = Math.min(
    SECONDS,
    flushes * assumed.objectSecondsPerCall + PERIODS * assumed.periodSeconds + EXCHANGES * assumed.exchangeSeconds,
  );
  const peerSeconds = PERIODS * assumed.periodSeconds;
  const objectGbSeconds = (MONITOR_SHARDS * shardSeconds + stateSeconds + peerSeconds) * 0.128;
  const stripesWritten = reads * assumed.stripesWrittenPerRead;
  // One publication a period.
  const kvWrites = Math.min(stripesWritten, (assumed.cacheBudgetUsd / prices.kvWritesPerMillion) * 1e6) + PERIODS;
  const rowsWritten =
    (OPERATIONS.rowsPeriod + MONITOR_SHARDS * OPERATIONS.rowsCountsPeriod) * PERIODS +
    OPERATIONS.rowsPerStripeFilled * (kvWrites - PERIODS) +
    OPERATIONS.rowsExchange * EXCHANGES;
  const lines = OPERATIONS.linesPeriod * PERIODS * assumed.linesKept;
  const gets = misses * (assumed.k + assumed.delta) + OPERATIONS.probesPerRegion * assumed.regions * PERIODS;
  // Of the requests beyond k some bytes are under way when they are aborted: half of a chunk.
  const egressGb = (misses * assumed.objectBytes * (1 + assumed.delta / assumed.k / 2)) / 1e9;
  const storedGb = (assumed.storedBytes * (1 + assumed.m / assumed.k)) / 1e9;
  const scrub = scrubRequests(assumed);
  const usd = {
    plan: prices.planUsd,
    requests: perMillion(workerRequests, prices.requestsIncluded, prices.requestsPerMillion),
    cpu: perMillion(workerRequests * assumed.cpuMs, prices.cpuMsIncluded, prices.cpuMsPerMillion),
    kvReads: perMillion(kvReads, prices.kvReadsIncluded, prices.kvReadsPerMillion),
    kvWrites: perMillion(kvWrites, prices.kvWritesIncluded, prices.kvWritesPerMillion),
    kvStorage: beyond(assumed.cacheBytes / 1e9, prices.kvGbIncluded) * prices.kvGb,
    objectRequests: perMillion(objectRequests, prices.objectRequestsIncluded, prices.objectRequestsPerMillion),
    objectDuration: perMillion(objectGbSeconds, prices.objectGbSecondsIncluded, prices.objectGbSecondsPerMillion),
    rowsWritten: perMillion(rowsWritten, prices.rowsWrittenIncluded, prices.rowsWrittenPerMillion),
    lines: perMillion(lines, prices.linesIncluded, prices.linesPerMillion),
  };
  const s3 = {
    gets: perMillion(gets, 0, prices.s3GetsPerMillion),
    egress: tiered(egressGb, prices.s3EgressTiers),
    storage: storedGb * prices.s3Gb,
    scrub: perMillion(scrub.gets, 0, prices.s3GetsPerMillion) + perMillion(scrub.lists, 0, prices.s3ListsPerMillion),
  };
  const r2 = {
    gets: perMillion(gets + scrub.gets, prices.r2GetsIncluded, prices.r2GetsPerMillion),
    lists: perMillion(scrub.lists, prices.r2ListsIncluded, prices.r2ListsPerMillion),
    storage: beyond(storedGb, prices.r2GbIncluded) * prices.r2Gb,
  };
  return {
    amounts: {
      workerRequests,
      kvReads,
      kvWrites,
      objectRequests,
      objectGbSeconds,
      rowsWritten,
      lines,
      gets,
      egressGb,
      storedGb,
      scrubRequests: scrub.gets + scrub.lists,
    },
    usd,
    s3,
    r2,
  };
}

/** Requests to the buckets that scrubs make in a month. */
function scrubRequests({ storedBytes, objectBytes, regions, k, m, scrubsPerDay }: Assumed) {
  const objects = storedBytes / objectBytes;
  const scrubs = (SECONDS / 86_400) * scrubsPerDay;
  const listed = (regions + k + m) * objects;
  return { gets: scrubs * SCRUB.manifestGets * objects, lists: (scrubs * listed) / SCRUB.listedPerRequest };
}

/** Returns the price of `gb`, of which each tier takes what the tiers before it have left. */
function tiered(gb: number, tiers: typeof PRICES.s3EgressTiers): number {
  let left = gb;
  return tiers.reduce((sum, tier) => {
    const taken = Math.min(left, tier.gb);
    left -= taken;
    return sum + taken * tier.usd;
  }, 0);
}

const RATES = [1, 100, 10_000];
const total = (costs: Readonly<Record<string, number>>): number =>
  Object.values(costs).reduce((sum, usd) => sum + usd, 0);
const dollars = (usd: number): string =>
  usd > 0 && usd < 0.5 ? "below $1" : `$${Math.round(usd).toLocaleString("en")}`;
const UNITS = [
  [" T", 1e12],
  [" G", 1e9],
  [" M", 1e6],
  [" k", 1e3],
  ["", 1],
] as const;
const count = (amount: number): string => {
  const [unit, size] = UNITS.find(([, least]) => amount >= least) ?? ["", 1];
  return `${(amount / size).toLocaleString("en", { maximumSignificantDigits: 3 })}${unit}`;
};
const percent = (share: number): string => `${Math.round(100 * share)}%`;
type Month = ReturnType<typeof monthlyCosts>;

/** The cost of the PoP and its buckets in a month at `rate` requests a second, in dollars as pages quote them. */
export function quotedCosts(rate: number, assumed: Assumed = ASSUMED): { pop: string; s3: string; r2: string } {
  const { usd, s3, r2 } = monthlyCosts(rate, fullHitRatio(assumed), assumed);
  return { pop: dollars(total(usd)), s3: dollars(total(s3)), r2: dollars(total(r2)) };
}

/** The assumptions, and the table of costs by requests a second, in Markdown. */
export function costTable(): string {
  const fullHits = fullHitRatio();
  const months = RATES.map((rate) => monthlyCosts(rate, fullHits));
  const line = (name: string, usdOf: (month: Month) => number, amount?: keyof Month["amounts"]): string => {
    const counted = ({ amounts }: Month): string => (amount ? `${count(amounts[amount])}: ` : "");
    const cells = months.map((month) => `${counted(month)}${dollars(usdOf(month))}`);
    return `| ${name} | ${cells.join(" | ")} |`;
  };
  const { storedBytes, objectBytes, cacheBytes, k, m, regions, zipf } = ASSUMED;
  return [
    `This table is for one PoP and ${storedBytes / 1e12} TB of ${objectBytes / 1000} kB objects, as ${k}+${m} over ` +
      `${regions} regions, at list prices of ${PRICES_OF}. Popularity follows Zipf ${zipf}. Of the ` +
      `${count(storedBytes / objectBytes)} objects, the PoP caches the ${count(cachedObjects())} that ` +
      `${count(cacheBytes)}B holds and its policy distinguishes, so it answers ${percent(fullHits)} of the reads completely.`,
    "",
    `| a month, one PoP | ${RATES.map((rate) => `${rate.toLocaleString("en")} requests/s`).join(" | ")} |`,
    `| --- | ${RATES.map(() => "---:").join(" | ")} |`,
    line("Workers Paid", ({ usd }) => usd.plan),
    line("Worker requests", ({ usd }) => usd.requests, "workerRequests"),
    line("CPU", ({ usd }) => usd.cpu),
    line("KV reads", ({ usd }) => usd.kvReads, "kvReads"),
    line("KV writes", ({ usd }) => usd.kvWrites, "kvWrites"),
    line("KV storage", ({ usd }) => usd.kvStorage),
    line("Durable Objects, requests", ({ usd }) => usd.objectRequests, "objectRequests"),
    line("Durable Objects, GB-s", ({ usd }) => usd.objectDuration, "objectGbSeconds"),
    line("Durable Objects, rows written", ({ usd }) => usd.rowsWritten, "rowsWritten"),
    line("Workers Logs, lines", ({ usd }) => usd.lines, "lines"),
    line("**the PoP**", ({ usd }) => total(usd)),
    line("S3: GETs", ({ s3 }) => s3.gets, "gets"),
    line("S3: GB out", ({ s3 }) => s3.egress, "egressGb"),
    line("S3: storage of 1.5 TB", ({ s3 }) => s3.storage),
    line("S3: requests of a daily scrub", ({ s3 }) => s3.scrub, "scrubRequests"),
    line("**buckets at S3**", ({ s3 }) => total(s3)),
    line("**or at R2**, which charges nothing for GB out", ({ r2 }) => total(r2)),
  ].join("\n");
}

const OBJECTS = [1e4, 1e5, 1e6, 1e7, 1e8];

/** The costs at 100 requests a second by the number of objects, in Markdown. */
export function costsByObjects(): string {
  const rows = OBJECTS.map((objects) => {
    const assumed = { ...ASSUMED, storedBytes: objects * ASSUMED.objectBytes };
    const { pop, s3, r2 } = quotedCosts(100, assumed);
    const cells = [count(objects), `${count(assumed.storedBytes)}B`, percent(fullHitRatio(assumed)), pop, s3, r2];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| objects | bytes | full hits | the PoP | buckets at S3 | buckets at R2 |",
    "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}

/** PoPs, and how many neighbours each has on average: as `node packages/lab/bench/peers.ts` places them in cities. */
const COOPERATING = [
  { pops: 3, neighbours: 2 },
  { pops: 10, neighbours: NEAREST_MAX },
  { pops: 30, neighbours: 11 },
];

/** The requests between cooperating PoPs and their price beyond what is included, in Markdown. */
export function cooperationTable(): string {
  const cost = (pops: number, neighbours: number): [requests: number, usd: number] => {
    const far = Math.min(PEERS.farMeasured, pops - 1 - neighbours);
    const probes = (neighbours + far) * PEERS.probes * pops * PERIODS;
    const messages = neighbours * PEERS.messages * pops * PERIODS;
    const { requestsPerMillion, objectRequestsPerMillion } = PRICES;
    return [
      probes + messages,
      perMillion(probes + messages, 0, requestsPerMillion) + perMillion(messages, 0, objectRequestsPerMillion),
    ];
  };
  const rows = COOPERATING.map(({ pops, neighbours }) => {
    const [[requests, usd], [all, allUsd]] = [cost(pops, neighbours), cost(pops, pops - 1)];
    const cells = [pops, neighbours, count(requests), dollars(usd), dollars(usd / pops), count(all), dollars(allUsd)];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| PoPs | neighbours of each | requests a month | a month | a PoP | if all talked to all | a month |",
    "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...rows,
  ].join("\n");
}

const COPIES = [
  { name: "one copy", factor: 1, mayFail: 0 },
  { name: "two copies", factor: 2, mayFail: 1 },
  { name: "three copies", factor: 3, mayFail: 2 },
  {
    name: `${ASSUMED.k}+${ASSUMED.m} over six regions`,
    factor: 1 + ASSUMED.m / ASSUMED.k,
    mayFail: ASSUMED.m,
  },
];

/** The storage of 1 TB by how it is kept, as rows of cells. */
export function storageRows(): string[][] {
  return COPIES.map(({ name, factor, mayFail }) => [
    name,
    `${factor} TB`,
    dollars(1000 * factor * PRICES.s3Gb),
    dollars(1000 * factor * PRICES.r2Gb),
    String(mayFail),
  ]);
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) {
  console.log([costTable(), costsByObjects(), cooperationTable()].join("\n\n"));
}
