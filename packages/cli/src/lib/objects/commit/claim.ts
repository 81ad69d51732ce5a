/**
 * Claims: how a writer makes a generation of a key its own, so that equal generations mean equal manifests.
 *
 * The writer that creates the claim in a majority of the regions has the generation. Two majorities overlap, and only
 * one conditional write of a name succeeds, so no second writer can have it.
 */
import { AgaroseError } from "@agarose/core";
import type { Store } from "../../store/store.ts";
import { askRegions, isConditionFailed, type Outcome } from "./ask-regions.ts";
import { claimName, claimPrefix } from "./names.ts";
import { surveyRegions } from "./region-survey.ts";
import { majorityOf, pause, type WriteContext } from "./write-context.ts";

const ATTEMPTS_MAX = 8;
/** A writer writes its manifest within an hour of its claim, or claims again. */
const LEASE_MS = 3_600_000;
/**
 * Claims are not signed. One that is further ahead is no writer's: taking its generation would leave none above it.
 */
const CLAIMS_AHEAD_MAX = 1_000_000;
/** From this age on, a claim is that of a writer that died. */
const DEAD_MS = 2 * LEASE_MS;

/** What a writer claims. */
export interface Claim {
  readonly key: string;
  /** Marks the claim as this writer's. */
  readonly upload: string;
  /** The newest generation that the writer has seen. */
  readonly newest: number;
  /**
   * Whether the writer repeats generation `newest` under a generation of its own. It may then pass over the claims of
   * dead writers only: with others it could repeat old content over what they put in between.
   */
  readonly copies?: boolean;
}

/** The right to write one generation of a key. */
export interface Claimed {
  readonly generation: number;
  /** Whether it is too old to begin to write. */
  readonly isExpired: () => boolean;
}

/**
 * Claims a generation above `newest`.
 *
 * @throws NO_QUORUM when no majority answers, REPLACED_MEANWHILE when other writers win every time.
 */
export async function claimGeneration(claim: Claim, context: WriteContext): Promise<Claimed> {
  const { key, newest, copies = false } = claim;
  const needed = majorityOf(context.stores);
  const attempts = copies ? 2 : ATTEMPTS_MAX;
  let generation = newest + 1;
  for (let attempt = 1; ; attempt++) {
    const isExpired = leaseFrom(context);
    const name = claimName(key, generation);
    const body = bodyOf(claim);
    const take = (store: Store, signal: AbortSignal): Promise<boolean> => claimIn(store, name, body, signal);
    // A majority suffices. Only the age of a claim that is passed over needs our own in every region.
    const patience = { enough: needed, ...(!copies && { isGood: (taken: boolean) => taken }) };
    const outcomes = await askRegions(context.stores, take, patience, context);
    const answered = outcomes.filter(({ error }) => error === undefined);
    if (answered.filter(({ value }) => value).length >= needed) {
      if (attempt > 1 && copies && !(await areDead(claim, generation, context))) throw overtaken(key, attempt);
      return { generation, isExpired };
    }
    if (answered.length < needed) throw noQuorum(key, outcomes, needed);
    if (attempt === attempts) throw overtaken(key, attempts);
    await pause(attempt, context);
    const survey = await surveyRegions(key, context);
    // Claims of writers that died are never removed, so they are passed over all at once.
    const listed = (await listClaims(key, context)).map(({ generation: other }) => other);
    const highest = Math.max(0, ...listed.filter((other) => other < generation + CLAIMS_AHEAD_MAX));
    generation = Math.max(generation, survey.newest?.generation ?? 0, highest) + 1;
  }
}

/** Starts a lease. Both clocks count, because some stop while a machine sleeps. */
function leaseFrom({ clock, nowMs }: WriteContext): () => boolean {
  const [start, wallStart] = [clock.now(), nowMs()];
  return () => clock.now() - start > LEASE_MS || Math.abs(nowMs() - wallStart) > LEASE_MS;
}

/**
 * Whether all claims between `newest` and generation `own` are those of dead writers, or left by our earlier attempts.
 * Their age is the time between their claim and ours by the clock of the region that has both.
 */
async function areDead(claim: Claim, own: number, context: WriteContext): Promise<boolean> {
  const claims = await listClaims(claim.key, context);
  const ownMs = new Map(claims.filter((one) => one.generation === own).map((one) => [one.store, one.modifiedMs]));
  const between = claims.filter(({ generation }) => generation > claim.newest && generation < own);
  const isDead = ({ store, modifiedMs }: ListedClaim): boolean =>
    (ownMs.get(store) ?? Number.NaN) - modifiedMs >= DEAD_MS;
  const body = bodyOf(claim);
  for (const { store, name } of between.filter((one) => !isDead(one))) {
    if ((await readText(store, name, context.signal)) !== body) return false;
  }
  return true;
}

/** Whether a writer has claimed a generation in order to repeat generation `generation`. NO_QUORUM. */
export async function isCopied(key: string, generation: number, context: WriteContext): Promise<boolean> {
  const later = (await listClaims(key, context)).filter((listed) => listed.generation > generation);
  for (const { store, name } of later) {
    const text = await readText(store, name, context.signal);
    if (text !== "" && (JSON.parse(text) as { copies?: number }).copies === generation) return true;
  }
  return false;
}

interface ListedClaim {
  readonly store: Store;
  readonly name: string;
  readonly generation: number;
  readonly modifiedMs: number;
}

/** The claims to generations of a key, in a majority of the regions. NO_QUORUM. */
async function listClaims(key: string, context: WriteContext): Promise<ListedClaim[]> {
  const prefix = claimPrefix(key);
  const needed = majorityOf(context.stores);
  const list = async (store: Store, signal: AbortSignal): Promise<ListedClaim[]> => {
    const claims: ListedClaim[] = [];
    for await (const { name, modifiedMs } of store.list(prefix, signal)) {
      claims.push({ store, name, generation: Number(name.slice(prefix.length)), modifiedMs });
    }
    return claims;
  };
  const outcomes = await askRegions(context.stores, list, { enough: needed }, context);
  const answers = outcomes.flatMap(({ value }) => (value ? [value] : []));
  if (answers.length < needed) throw noQuorum(key, outcomes, needed);
  return answers.flat();
}

/** Whether the claim in this region is ours. */
async function claimIn(store: Store, name: string, body: string, signal: AbortSignal): Promise<boolean> {
  const bytes = Buffer.from(body);
  const options = { bytes: bytes.length, contentType: "application/json", signal };
  try {
    await store.put(name, bytes, { ...options, ifNoneMatch: "*" });
    return true;
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    // An earlier try of the same request may have succeeded without our knowing.
    return (await readText(store, name, signal)) === body;
  }
}

function bodyOf({ upload, newest, copies }: Claim): string {
  return JSON.stringify({ upload, ...(copies && { copies: newest }) });
}

async function readText(store: Store, name: string, signal: AbortSignal): Promise<string> {
  const response = await store.get(name, { signal });
  return response.status === 200 ? new Response(response.body as BodyInit).text() : "";
}

function noQuorum(key: string, outcomes: readonly Outcome<unknown>[], needed: number): AgaroseError {
  const first = outcomes.find(({ error }) => error)!.error!;
  const answered = outcomes.filter(({ error }) => error === undefined).length;
  return new AgaroseError(
    first.code === "CREDENTIALS_REFUSED" ? first.code : "NO_QUORUM",
    `${answered} of ${outcomes.length} regions took a claim to ${JSON.stringify(key)}, ${needed} are needed: ` +
      `readers see the version before; try again once they answer. First: ${first.message}`,
    { key, answered, needed },
    first,
  );
}

function overtaken(key: string, attempts: number): AgaroseError {
  return new AgaroseError(
    "REPLACED_MEANWHILE",
    `${attempts} of ${attempts} attempts to claim ${JSON.stringify(key)} met other writers: try again later`,
    { key, attempts },
  );
}
