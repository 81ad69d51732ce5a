/**
 * One PoP as `agarose status` sees it: what its `/healthz` and `/v1/status` say, and what of it is wrong.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import * as v from "valibot";
import { adminTokenOf } from "../../lib/admin-token.ts";
import { formatBytes } from "../../lib/output.ts";
import { POP_ANSWER_BYTES_MAX, readRecordText } from "../../lib/store/small-record.ts";
import { judgePlace, type PopPlace } from "./judge-place.ts";

/** A PoP as `pops` of the configuration lists it. */
export interface PopAddress {
  readonly name: string;
  readonly url: string;
  /** What its Worker is placed near, such as `aws:eu-central-1`. */
  readonly placement?: string | undefined;
}

/** What one PoP says of itself, and what follows from it. */
export interface PopReport {
  readonly name: string;
  readonly url: string;
  /** What needs attention. The command fails unless this is empty. */
  readonly problems: readonly string[];
  /** What works, but less well than it could. */
  readonly warnings: readonly string[];
  /** What is worth knowing. */
  readonly notes: readonly string[];
  /** Undefined without an admin token, or where the PoP did not answer. */
  readonly state: PopSummary | undefined;
}

/** The state of a PoP, from `GET /v1/status`. Sizes in bytes. */
export interface PopSummary {
  readonly epoch: number;
  readonly policy: string;
  readonly cachedBytes: number;
  readonly capacityBytes: number;
  readonly objects: number;
  /** Share of the stripes looked up that the cache had, in the isolate that answered; null before any was. */
  readonly stripeHitRatio: number | null;
  /** As the PoP measures them. */
  readonly regions: readonly RegionLatency[];
  /** The most popular keys, in requests per period; empty at PoPs of an older version. */
  readonly popular: readonly { readonly key: string; readonly popularity: number }[];
  /** What the cache manager's KV operations have cost this month; null at PoPs of an older version. */
  readonly spentUsd: number | null;
  /** What fills of the cache have fetched from the regions today, UTC, and may; null at PoPs of an older version. */
  readonly fillEgress: FillEgressToday | null;
  readonly regionsDown: readonly string[];
  readonly regionsSlow: readonly string[];
  /** Seconds since the end of the last period; null before the first one. */
  readonly periodAgeSeconds: number | null;
  /** Where the PoP's parts run; null for a PoP without LOCATION, and outside Cloudflare. */
  readonly place: PopPlace | null;
  /** The ideas of the papers, and what each saves a read by the PoP's estimate; null while unknown. */
  readonly ideas: readonly IdeaStatus[];
  /**
   * Lambda of EC-Cache: by how many percent the busiest region gets more requests than the mean, as the PoP estimates
   * it; null while unknown.
   */
  readonly imbalancePercent: number | null;
  /** How much longer the reads of the last period took than with the best contents for them; null while unknown. */
  readonly regretMs: number | null;
  /** Recovered chunks that the answering isolate has delivered, each instead of a decode. */
  readonly recoveredChunks: number;
}

/** Times to the first byte of a chunk, in milliseconds; null while unknown. */
export interface RegionLatency {
  readonly name: string;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/** The egress of fills on one day, in bytes. */
export type FillEgressToday = v.InferOutput<typeof FILL_EGRESS_SHAPE>;

/** One idea, as the PoP reports it. */
export type IdeaStatus = v.InferOutput<typeof IDEA_SHAPE>;

/** What a report depends on. */
export interface PopReportOptions {
  readonly fetch: typeof globalThis.fetch;
  readonly token: string | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly timeoutMs: number;
}

/** From this share of a day's egress for fills on, the command says so. */
const FILL_EGRESS_SHARE = 0.8;
/** The Cron Trigger runs each minute: one that is missed may be Cloudflare's, three are not. */
export const PERIOD_AGE_SECONDS_MAX = 240;

/** What the PoP says, and what follows from it. Never rejects. */
export async function popReport(
  { name, url, placement: wanted }: PopAddress,
  options: PopReportOptions,
): Promise<PopReport> {
  try {
    const healthz = await ask(`${url}/healthz`, { ...options, token: undefined });
    const { pop } = v.parse(HEALTH_SHAPE, healthz.body);
    const notes = pop === name ? [] : [`calls itself ${JSON.stringify(pop)}`];
    if (options.token === undefined) {
      return {
        name,
        url,
        problems: [],
        warnings: [],
        notes: [...notes, "no admin token: only /healthz was asked"],
        state: undefined,
      };
    }
    const { body, placement } = await ask(`${url}/v1/status`, options);
    const answer = statusOf(body, url);
    const state = summaryOf(answer, options.nowMs);
    const isEverywhere = Boolean(answer.continent);
    const place = judgePlace(state.summary.place, { placement, wanted, isEverywhere });
    const found = [judge(state.summary, state.periodErrors), place];
    return {
      name,
      url,
      problems: found.flatMap(({ problems }) => problems),
      warnings: found.flatMap(({ warnings }) => warnings),
      notes: [...notes, ...found.flatMap(({ remarks }) => remarks)],
      state: state.summary,
    };
  } catch (cause) {
    const { code, message } = toAgaroseError(cause, "SOURCE_FAILED");
    return { name, url, problems: [`${code}: ${message}`], warnings: [], notes: [], state: undefined };
  }
}

/** `/v1/status`, in the part that is used here. */
export type StatusAnswer = v.InferOutput<typeof STATUS_SHAPE>;

/** `/healthz`: whatever it says, a name that is not the PoP's is only noted. */
const HEALTH_SHAPE = v.fallback(v.object({ pop: v.optional(v.unknown()) }), {});

const IDEA_SHAPE = v.object({
  name: v.string(),
  atWork: v.boolean(),
  /** Why it is not at work. */
  reason: v.nullable(v.string()),
  /** Estimates of what it saves a read, in milliseconds and in US dollars of egress; null while unknown. */
  savedMs: v.nullable(v.number()),
  savedUsd: v.nullish(v.number()),
});

const FILL_EGRESS_SHAPE = v.object({ bytes: v.number(), bytesPerDayMax: v.number(), refusedStripes: v.number() });

const STATUS_SHAPE = v.object({
  epoch: v.number(),
  policy: v.string(),
  cache: v.object({ capacityBytes: v.number(), cachedBytes: v.number(), objects: v.array(v.unknown()) }),
  regions: v.array(
    v.object({
      name: v.string(),
      down: v.boolean(),
      slow: v.boolean(),
      p50Ms: v.nullish(v.number()),
      p99Ms: v.nullish(v.number()),
    }),
  ),
  lastPeriod: v.nullable(
    v.object({
      at: v.number(),
      errors: v.array(v.string()),
      popular: v.optional(v.array(v.object({ key: v.string(), popularity: v.number() }))),
      savings: v.optional(v.object({ imbalancePercent: v.optional(v.number()), regretMs: v.optional(v.number()) })),
    }),
  ),
  spending: v.optional(v.object({ usd: v.number() })),
  fillEgress: v.optional(FILL_EGRESS_SHAPE),
  place: v.nullish(
    v.object({
      location: v.string(),
      worker: v.nullable(v.string()),
      popState: v.nullable(v.string()),
      requestMonitor: v.array(v.nullable(v.string())),
      peerState: v.nullable(v.string()),
    }),
  ),
  ideas: v.optional(v.array(IDEA_SHAPE)),
  /** Whose state one Worker everywhere has answered with. */
  continent: v.nullish(v.string()),
  /** Keys that regions lack the newest version of, as the PoP has seen. */
  behind: v.optional(v.array(v.object({ key: v.string(), regions: v.array(v.string()) }))),
  publisherKeys: v.optional(v.array(v.string())),
  peers: v.nullish(
    v.object({ peers: v.array(v.object({ name: v.string(), down: v.boolean(), silent: v.boolean() })) }),
  ),
  isolate: v.object({
    chunkCache: v.object({ hits: v.number(), misses: v.number() }),
    recoveredChunks: v.optional(v.number()),
    deniedRegions: v.optional(v.array(v.string())),
  }),
});

/** Returns the state in an answer to `/v1/status`. Throws SOURCE_FAILED for what no PoP of this version answers. */
export function statusOf(body: unknown, url: string): StatusAnswer {
  const read = v.safeParse(STATUS_SHAPE, body);
  if (read.success) return read.output;
  const message = `${url}/v1/status is not what a PoP of this version answers: check its url, or deploy it again`;
  throw new AgaroseError("SOURCE_FAILED", message, { url });
}

/** An answer of a PoP. */
export interface PopAnswer {
  /** Its JSON. */
  readonly body: unknown;
  readonly headers: Headers;
  /** Where Cloudflare says that the Worker ran; null where it does not say. */
  readonly placement: string | null;
}

/** Resolves to an answer with JSON. Rejects with SOURCE_FAILED or FORBIDDEN, which say what was answered instead. */
export async function ask(
  url: string,
  { fetch, token, timeoutMs, headers: more = {} }: PopReportOptions & { readonly headers?: Record<string, string> },
): Promise<PopAnswer> {
  const headers: Record<string, string> = { ...more, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, { headers, signal, redirect: "manual" }).catch((error: unknown) => {
    const why = (error as Error).name === "TimeoutError" ? `in ${timeoutMs} ms` : `(${reasonOf(error)})`;
    throw new AgaroseError("SOURCE_FAILED", `${url} did not answer ${why}`, { url }, error);
  });
  if (response.status === 401 || response.status === 403) {
    // Where a server closes the connection of an answer that nobody reads, Node's client ends the process.
    await response.body?.cancel();
    throw new AgaroseError("FORBIDDEN", `${url} refused the admin token: is it the PoP's ADMIN_TOKEN?`, { url });
  }
  if (response.status !== 200) {
    const text = await readRecordText(response, url).catch(() => "with more than an error");
    throw new AgaroseError("SOURCE_FAILED", `${url} answered ${response.status}: ${text.slice(0, 200)}`, { url });
  }
  const body = await readRecordText(response, url, POP_ANSWER_BYTES_MAX)
    .then((text): unknown => JSON.parse(text))
    .catch((error: unknown) => {
      throw new AgaroseError("SOURCE_FAILED", `${url} did not answer with JSON: is it a PoP?`, { url }, error);
    });
  return { body, headers: response.headers, placement: response.headers.get("cf-placement") };
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: Error & { code?: string } };
  return cause?.code ?? cause?.message ?? message;
}

/**
 * The keys that PoPs have found regions to lack the newest version of. PoPs without an admin token here are not asked,
 * and those that do not answer are left out: a walk over all objects finds such keys, too.
 */
export async function keysBehind(pops: readonly PopAddress[]): Promise<string[]> {
  const keysOf = async ({ name, url }: PopAddress): Promise<string[]> => {
    const token = adminTokenOf(name);
    if (token === undefined) return [];
    const { body } = await ask(`${url}/v1/status`, { fetch, timeoutMs: BEHIND_TIMEOUT_MS, token, nowMs: 0 });
    return (statusOf(body, url).behind ?? []).slice(0, BEHIND_MAX).map(({ key }) => key);
  };
  const found = await Promise.all(pops.map((pop) => keysOf(pop).catch(() => [])));
  return [...new Set(found.flat())];
}

/** Keys that a PoP may name: each takes a look at every region. */
const BEHIND_MAX = 1_000;
const BEHIND_TIMEOUT_MS = 5_000;

/** What the answer of `/v1/status` says, as of `nowMs`. */
export function summaryOf(
  { epoch, policy, cache, regions, lastPeriod, spending, fillEgress, isolate, place = null, ideas = [] }: StatusAnswer,
  nowMs: number,
): { summary: PopSummary; periodErrors: readonly string[] } {
  const { hits, misses } = isolate.chunkCache;
  return {
    periodErrors: lastPeriod?.errors ?? [],
    summary: {
      epoch,
      policy,
      cachedBytes: cache.cachedBytes,
      capacityBytes: cache.capacityBytes,
      objects: cache.objects.length,
      stripeHitRatio: hits + misses > 0 ? hits / (hits + misses) : null,
      regions: regions.map(({ name, p50Ms = null, p99Ms = null }) => ({ name, p50Ms, p99Ms })),
      popular: lastPeriod?.popular ?? [],
      spentUsd: spending?.usd ?? null,
      fillEgress: fillEgress ?? null,
      regionsDown: regions.filter(({ down }) => down).map(({ name }) => name),
      regionsSlow: regions.filter(({ slow }) => slow).map(({ name }) => name),
      periodAgeSeconds: lastPeriod ? Math.max(0, Math.round((nowMs - lastPeriod.at) / 1000)) : null,
      place,
      ideas,
      imbalancePercent: lastPeriod?.savings?.imbalancePercent ?? null,
      regretMs: lastPeriod?.savings?.regretMs ?? null,
      recoveredChunks: isolate.recoveredChunks ?? 0,
    },
  };
}

/** What follows from a PoP's last period and from its regions. */
export function judge(
  { periodAgeSeconds, regionsDown, regionsSlow, fillEgress }: PopSummary,
  periodErrors: readonly string[],
): { problems: string[]; warnings: string[]; remarks: string[] } {
  const problems: string[] = [];
  if (periodAgeSeconds === null) problems.push("no period has run: is the Cron Trigger there?");
  else if (periodAgeSeconds > PERIOD_AGE_SECONDS_MAX) {
    problems.push(`the last period was ${periodAgeSeconds} s ago, ${PERIOD_AGE_SECONDS_MAX} s are the most`);
  }
  if (regionsDown.length > 0) problems.push(`regions down: ${regionsDown.join(", ")}`);
  const [first] = periodErrors;
  if (first !== undefined) problems.push(`the last period had ${periodErrors.length} errors, first: ${first}`);
  const warnings = fillEgress ? fillEgressWarnings(fillEgress) : [];
  return { problems, warnings, remarks: regionsSlow.length > 0 ? [`regions slow: ${regionsSlow.join(", ")}`] : [] };
}

/** A PoP that may fetch nothing for fills is set so. */
function fillEgressWarnings({ bytes, bytesPerDayMax, refusedStripes }: FillEgressToday): string[] {
  if (bytesPerDayMax === 0 || bytes < FILL_EGRESS_SHARE * bytesPerDayMax) return [];
  const waiting = refusedStripes > 0 ? `, and ${refusedStripes} stripes wait for tomorrow` : "";
  return [
    `fills have fetched ${formatBytes(bytes)} of the ${formatBytes(bytesPerDayMax)} that FILL_EGRESS_BYTES_PER_DAY allows ` +
      `today, UTC${waiting}: see what is popular there before you raise it`,
  ];
}
