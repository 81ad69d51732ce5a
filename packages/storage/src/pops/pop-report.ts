/** One PoP as `agarose status` sees it: what its `/healthz` and `/v1/status` say, and what of it is wrong. */
import { toAgaroseError } from "@agarose/core";
import { formatBytes } from "../maintenance/amounts.ts";
import { coloNear, distanceKm } from "./colos.ts";
import type { FillEgressToday, PopClient, StatusAnswer } from "./pop-client.ts";
import { ADMIN_TOKEN_VARIABLE } from "./admin-token.ts";

/** The status of one PoP, and the conclusions. */
export interface PopReport {
  readonly name: string;
  readonly url: string;
  /** Problems that need attention. The command fails unless this is empty. */
  readonly problems: readonly string[];
  /** Parts that work, but less well than they could. */
  readonly warnings: readonly string[];
  /** Remarks. */
  readonly notes: readonly string[];
  /** Undefined without an admin token, or where the PoP did not answer. */
  readonly state: PopSummary | undefined;
}

/** The state of a PoP, from `GET /v1/status`. Sizes in bytes; null is unknown. */
export type PopSummary = ReturnType<typeof summaryOf>["summary"];

/** From this share of a day's egress for fills on, the command says so. */
const FILL_EGRESS_SHARE = 0.8;
/** The Cron Trigger runs each minute: one that is missed may be Cloudflare's, three are not. */
const PERIOD_AGE_SECONDS_MAX = 240;

/** The report of a PoP, and the conclusions from it at `nowMs` since 1970. Never rejects. */
export async function popReport(client: PopClient, nowMs: number): Promise<PopReport> {
  const { name, url, placement: wanted } = client.pop;
  const empty = { name, url, problems: [], warnings: [], notes: [], state: undefined };
  try {
    const { pop } = (await client.health()).answer;
    const notes = pop === name ? [] : [`calls itself ${JSON.stringify(pop)}`];
    if (!client.hasToken)
      return { ...empty, notes: [...notes, `without ${ADMIN_TOKEN_VARIABLE}, only its health was checked`] };
    const { answer, placement } = await client.status();
    const state = summaryOf(answer, nowMs);
    const isEverywhere = Boolean(answer.continent);
    const place = judgePlace(state.summary.place, { placement, wanted, isEverywhere });
    const found = [judge(state.summary, state.periodErrors), place];
    return {
      ...empty,
      problems: found.flatMap(({ problems }) => problems),
      warnings: found.flatMap(({ warnings }) => warnings),
      notes: [...notes, ...found.flatMap(({ remarks }) => remarks)],
      state: state.summary,
    };
  } catch (cause) {
    const { code, message } = toAgaroseError(cause, "SOURCE_FAILED");
    return { ...empty, problems: [`${code}: ${message}`] };
  }
}

/** The conclusions from an answer of `/v1/status`, as of `nowMs`. */
export function summaryOf(
  { epoch, policy, cache, regions, lastPeriod, spending, fillEgress, isolate, place = null, ideas = [] }: StatusAnswer,
  nowMs: number,
) {
  const { hits, misses } = isolate.chunkCache;
  return {
    periodErrors: lastPeriod?.errors ?? [],
    summary: {
      epoch,
      policy,
      cachedBytes: cache.cachedBytes,
      capacityBytes: cache.capacityBytes,
      objects: cache.objects.length,
      /** Share of the stripes looked up that the cache had, in the isolate that answered. */
      stripeHitRatio: hits + misses > 0 ? hits / (hits + misses) : null,
      /** As the PoP measures them: times to the first byte of a chunk, in milliseconds. */
      regions: regions.map(({ name, p50Ms = null, p99Ms = null }) => ({ name, p50Ms, p99Ms })),
      /** The most popular keys, in requests per period. */
      popular: lastPeriod?.popular ?? [],
      /** The cost of the cache manager's KV operations this month. */
      spentUsd: spending?.usd ?? null,
      /** Bytes that fills of the cache have fetched from the regions today, UTC, and their limit. */
      fillEgress: fillEgress ?? null,
      regionsDown: regions.filter(({ down }) => down).map(({ name }) => name),
      regionsSlow: regions.filter(({ slow }) => slow).map(({ name }) => name),
      /** Since the end of the last period. */
      periodAgeSeconds: lastPeriod ? Math.max(0, Math.round((nowMs - lastPeriod.at) / 1000)) : null,
      /** Where the PoP's parts run; null for a PoP without LOCATION, and outside Cloudflare, too. */
      place,
      /** The ideas of the papers, and what each saves a read by the PoP's estimate. */
      ideas,
      /** Lambda of EC-Cache: by how many percent the busiest region gets more requests than the mean, as estimated. */
      imbalancePercent: lastPeriod?.savings?.imbalancePercent ?? null,
      /** How much longer the reads of the last period took than with the best contents for them. */
      regretMs: lastPeriod?.savings?.regretMs ?? null,
      /** Recovered chunks that the answering isolate has delivered, each instead of a decode. */
      recoveredChunks: isolate.recoveredChunks ?? 0,
    },
  };
}

/** Conclusions from a PoP's last period and its regions. */
export function judge(
  { periodAgeSeconds, regionsDown, regionsSlow, fillEgress }: PopSummary,
  periodErrors: readonly string[],
): { problems: string[]; warnings: string[]; remarks: string[] } {
  const problems: string[] = [];
  if (periodAgeSeconds === null)
    problems.push("no period has run yet: the first one starts within a minute of the start, by the Cron Trigger");
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

/** Light in fibre takes some 10 ms there and back: what a PoP measures from farther away is of another place. */
const FAR_KM = 1_000;

/** Data centers as airport codes; null where the platform did not say. */
export interface PopPlace {
  /** Cloudflare's location hint. */
  readonly location: string;
  /** Of the Worker that answered. */
  readonly worker: string | null;
  /** Of the object that runs the periods. */
  readonly popState: string | null;
  readonly requestMonitor: readonly (string | null)[];
  /** Null for a PoP on its own, too. */
  readonly peerState: string | null;
}

/** Facts besides the PoP's own answer. */
export interface PlaceFacts {
  /**
   * The header `cf-placement`: `remote-FRA` for a Worker that was placed, `local-SYD` for one that ran where the
   * request entered Cloudflare. Null where Cloudflare does not say.
   */
  readonly placement: string | null;
  /** `placement` of the configuration; undefined without one. */
  readonly wanted?: string | undefined;
  /** One Worker everywhere runs far from its continent's objects by design. */
  readonly isEverywhere: boolean;
}

/** Conclusions from the places of a PoP's parts. */
interface PlaceJudgement {
  readonly problems: string[];
  /** Each says what was found, and what to do. */
  readonly warnings: string[];
  readonly remarks: string[];
}

/** Returns what is wrong, what is doubtful and what is worth knowing. A place that no table knows is only named. */
export function judgePlace(place: PopPlace | null, facts: PlaceFacts): PlaceJudgement {
  if (place === null) return { problems: [], warnings: [], remarks: [] };
  const { placement, wanted, isEverywhere } = facts;
  const { location, worker: traced, popState, requestMonitor, peerState } = place;
  const [, mode, headerColo] = /^(local|remote)-([A-Z]{3})$/.exec(placement ?? "") ?? [];
  const worker = headerColo ?? traced;
  const objects = [...new Set([popState, ...requestMonitor, peerState].filter((colo) => colo !== null))];
  const problems: string[] = [];
  const warnings: string[] = [];
  const remarks = [`place: ${location}; Worker in ${worker ?? "?"}, Durable Objects in ${objects.join(", ") || "?"}`];

  const target = wanted === undefined ? undefined : coloNear(wanted);
  const offKm = worker === null || target === undefined ? undefined : distanceKm(worker, target);
  // A reader who enters Cloudflare beside the placement has the Worker run there: that is its place as well.
  if (mode === "local" && (offKm === undefined || offKm > FAR_KM)) {
    problems.push(`the Worker is not placed: it ran in ${worker}, where the request entered Cloudflare`);
  } else if (offKm !== undefined && offKm > FAR_KM) {
    const found = `the Worker ran in ${worker}, ${kilometres(offKm)} from ${wanted}`;
    warnings.push(`${found}: deploy it again, and ask again in some minutes`);
  }
  if (worker === null || isEverywhere) return { problems, warnings, remarks };
  for (const colo of objects.filter((one) => one !== worker)) {
    const km = distanceKm(colo, worker);
    const found = `Durable Objects run in ${colo}, ${km === undefined ? "not" : kilometres(km)}`;
    if (km === undefined) remarks.push(`${found} in ${worker}: an object stays where it was created`);
    else if (km <= FAR_KM) remarks.push(`${found} from ${worker}: an object stays where it was created`);
    else warnings.push(`${found} from ${worker}, for ever: give the PoP another name to create them near it`);
  }
  return { problems, warnings, remarks };
}

function kilometres(km: number): string {
  return `${(100 * Math.round(km / 100)).toLocaleString("en")} km`;
}
