/**
 * The work of a PoP for one hostile request, and its cost: `node packages/worker/scripts/hostile-costs.ts` prints
 * the table of docs/reference/request-costs.md. `packages/worker/test/hostile-costs.slow.test.ts` counts the operations
 * of each request in workerd, and fails when a row says too little or far too much.
 */
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { PRICES, S3_EGRESS_USD_PER_GB } from "./operating-costs.ts";

/** The cost of one request, with the flush of counts that follows when no other request shares it. */
export interface RequestCost {
  /** Everything that the platform counts: GETs, KV, Durable Objects and the Cache API. */
  readonly subrequests: number;
  readonly gets: number;
  readonly kvReads: number;
  readonly objectCalls: number;
  /** Rows that they write. */
  readonly rows: number;
  readonly egressBytes: number;
}

const cost = (
  subrequests: number,
  gets: number,
  kvReads: number,
  objectCalls: number,
  rows: number,
  egressBytes: number,
): RequestCost => ({ subrequests, gets, kvReads, objectCalls, rows, egressBytes });

/** At most, by request. Objects are 4+2 and not cached; those of 8 MiB have two stripes. */
export const HOSTILE_REQUESTS = {
  "GET /o/, one byte, the first request for the key": cost(16, 9, 1, 2, 1, 90_000),
  "GET /o/, one byte": cost(8, 4, 1, 2, 1, 90_000),
  "GET /o/, 16 ranges of one byte": cost(32, 24, 1, 2, 1, 750_000),
  "GET /o/, whole, 8 MiB": cost(14, 8, 1, 2, 1, 12_700_000),
  "GET /o/, If-None-Match: *": cost(2, 0, 1, 0, 0, 0),
  "HEAD /o/": cost(2, 0, 1, 0, 0, 0),
  "GET /o/, a key without an object": cost(10, 6, 1, 0, 0, 0),
  "GET /o/, the same key again within 10 s": cost(0, 0, 0, 0, 0, 0),
  "GET /o/, a private key, a wrong token": cost(0, 0, 0, 0, 0, 0),
  "GET /t/, the first tile of an archive": cost(24, 14, 1, 2, 1, 200_000),
  "GET /v1/read/, whole, 8 MiB": cost(4, 0, 1, 1, 1, 0),
  "GET /v1/read/, one byte": cost(8, 4, 1, 2, 1, 90_000),
  "GET /v1/read/, a key without an object": cost(10, 6, 1, 0, 0, 0),
  "GET /v1/plans, 100 objects": cost(2, 0, 1, 0, 0, 0),
  "GET /v1/plans, 100 objects of 20 kB with bodies": cost(450, 420, 2, 12, 4, 2_200_000),
  "GET /v1/plans, 100 keys without an object": cost(130, 96, 1, 0, 0, 0),
  "GET /v1/chunk/, not cached": cost(2, 0, 1, 0, 0, 0),
  "POST /v1/peers, without a signature": cost(0, 0, 0, 0, 0, 0),
  "GET /healthz": cost(0, 0, 0, 0, 0, 0),
  "GET /v1/status, a wrong token": cost(0, 0, 0, 0, 0, 0),
  "GET /metrics, a wrong token": cost(0, 0, 0, 0, 0, 0),
  "POST /v1/purge, a wrong token": cost(0, 0, 0, 0, 0, 0),
  "GET of a path without a route": cost(0, 0, 0, 0, 0, 0),
} as const satisfies Readonly<Record<string, RequestCost>>;

/** The name of a row. */
export type HostileRequest = keyof typeof HOSTILE_REQUESTS;

/** Returns the price of a million such requests in US dollars, beyond what is included, with buckets at S3. */
function usdPerMillion({ gets, kvReads, objectCalls, rows, egressBytes }: RequestCost): number {
  return (
    PRICES.requestsPerMillion +
    gets * PRICES.s3GetsPerMillion +
    kvReads * PRICES.kvReadsPerMillion +
    objectCalls * PRICES.objectRequestsPerMillion +
    rows * PRICES.rowsWrittenPerMillion +
    (egressBytes / 1e9) * 1e6 * S3_EGRESS_USD_PER_GB
  );
}

/** Returns the table as Markdown. */
export function hostileTable(): string {
  const lines = Object.entries<RequestCost>(HOSTILE_REQUESTS).map(([name, one]) => {
    const { subrequests, gets, kvReads, objectCalls, rows, egressBytes } = one;
    const usd = usdPerMillion(one);
    const price = usd < 10 ? usd.toFixed(2) : Math.round(usd).toLocaleString("en");
    const cells = [name, subrequests, gets, kvReads, objectCalls, rows, kilobytes(egressBytes), `$${price}`];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| request | subrequests | GETs at buckets | KV reads | Durable Object requests | rows written | egress | a million |",
    "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ...lines,
  ].join("\n");
}

function kilobytes(bytes: number): string {
  return bytes === 0 ? "0" : `${Math.ceil(bytes / 1000).toLocaleString("en")} kB`;
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) console.log(hostileTable());
