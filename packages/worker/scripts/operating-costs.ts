/**
 * The monthly costs of one PoP, by requests per second: `node packages/worker/scripts/operating-costs.ts` prints the
 * table of docs/reference/request-costs.md, which names the sources. `test/operation-costs.slow.test.ts` counts the
 * operations. Prices are list prices in US dollars, beyond what Workers Paid includes.
 */
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

/** What differs from one deployment to the next: change it and run the script. */
export const ASSUMED = {
  objectBytes: 100_000,
  k: 4,
  m: 2,
  delta: 1,
  regions: 6,
  /** Reads that take all their chunks from the PoP's cache. */
  fullHitRatio: 0.8,
  /** Of those, the share that finds the stripe neither in the isolate's memory nor in the data center's Cache API. */
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
  /** Stripes written for each read: `adaptive` on a day of requests (docs/internals/policies-measured.md). */
  stripesWrittenPerRead: 0.06,
  /** The budget of the cache manager in wrangler.toml. */
  cacheBudgetUsd: 20,
  cacheBytes: 1e9,
  /** `head_sampling_rate` of the lines. */
  linesKept: 0.1,
  storedBytes: 1e12,
};

/** US dollars; `included` a month. */
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
  s3EgressGb: 0.09,
  s3Gb: 0.023,
  r2GetsPerMillion: 0.36,
  r2GetsIncluded: 10e6,
  r2Gb: 0.015,
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

const beyond = (amount: number, included: number): number => Math.max(0, amount - included);
const perMillion = (amount: number, included: number, usd: number): number => (beyond(amount, included) / 1e6) * usd;

/** Monthly amounts and dollars of one PoP at `rate` requests a second. */
function monthlyCosts(rate: number, assumed = ASSUMED, prices = PRICES) {
  const reads = rate * SECONDS;
  const isolates = Math.max(1, rate / assumed.requestsPerSecondOfIsolate);
  const misses = reads * (1 - assumed.fullHitRatio);
  const workerRequests = reads + PERIODS;
  const kvReads = reads * assumed.fullHitRatio * assumed.kvReadRatio + isolates * (SECONDS / CONFIGURATION_SECONDS) * 2;
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
    egress: egressGb * prices.s3EgressGb,
    storage: storedGb * prices.s3Gb,
  };
  const r2 = {
    gets: perMillion(gets, prices.r2GetsIncluded, prices.r2GetsPerMillion),
    storage: storedGb * prices.r2Gb,
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
    },
    usd,
    s3,
    r2,
  };
}

const RATES = [1, 100, 10_000];
const total = (costs: Readonly<Record<string, number>>): number =>
  Object.values(costs).reduce((sum, usd) => sum + usd, 0);
const dollars = (usd: number): string =>
  usd > 0 && usd < 0.5 ? "below $1" : `$${Math.round(usd).toLocaleString("en")}`;
const UNITS = [
  [" G", 1e9],
  [" M", 1e6],
  [" k", 1e3],
  ["", 1],
] as const;
const count = (amount: number): string => {
  const [unit, size] = UNITS.find(([, least]) => amount >= least) ?? ["", 1];
  return `${(amount / size).toLocaleString("en", { maximumSignificantDigits: 3 })}${unit}`;
};
type Month = ReturnType<typeof monthlyCosts>;

/** The table in Markdown. */
export function costTable(): string {
  const months = RATES.map((rate) => monthlyCosts(rate));
  const line = (name: string, usdOf: (month: Month) => number, amount?: keyof Month["amounts"]): string => {
    const counted = ({ amounts }: Month): string => (amount ? `${count(amounts[amount])}: ` : "");
    const cells = months.map((month) => `${counted(month)}${dollars(usdOf(month))}`);
    return `| ${name} | ${cells.join(" | ")} |`;
  };
  return [
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
    line("**buckets at S3**", ({ s3 }) => total(s3)),
    line("**or at R2**, which charges nothing for GB out", ({ r2 }) => total(r2)),
  ].join("\n");
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) console.log(costTable());
