/**
 * Claims: how a writer makes a generation of a key its own, so that equal generations mean equal manifests.
 *
 * The writer that creates the claim in a majority of the regions has the generation. Two majorities overlap, and only
 * one conditional write of a name succeeds, so no second writer can have it.
 */
import { AgaroseError } from "@agarose/core";
import { readRecordText, recordText } from "../buckets/small-record.ts";
import type { Store } from "../buckets/store.ts";
import { askRegions, isConditionFailed, type Outcome } from "../regions/ask-regions.ts";
import { batchesIn } from "./batches.ts";
import { singleAfter } from "./generations.ts";
import { DEAD_MS, instantOf, Lease, PASSABLE_MS, withdrawClaim, withdrawnClaim, type HeldClaim } from "./lease.ts";
import { claimName, claimPrefix } from "./names.ts";
import { surveyRegions } from "../regions/region-survey.ts";
import { majorityOf, pause, type RegionParts, type WriteContext } from "./write-context.ts";
import { jsonIn } from "../config/json.ts";

const ATTEMPTS_MAX = 8;
/**
 * Claims are not signed. One that is further ahead is no writer's: taking its generation would leave none above it.
 */
const CLAIMS_AHEAD_MAX = 1_000_000;
/** A garbage collector removes old claims, so a region that lists more of one key makes them up. */
const CLAIMS_MAX = 10_000;

/** The claim of a writer. */
export interface Claim {
  readonly key: string;
  /** Marks the claim as this writer's. */
  readonly upload: string;
  /** The newest generation that the writer has seen. */
  readonly newest: number;
  /**
   * Whether the writer repeats generation `newest` under its own generation. It may then pass over the claims of
   * dead writers only: with others it could repeat old content over what they put in between.
   */
  readonly copies?: boolean;
  /** Set if it keeps the chunks of a browser's upload, which another claim commits. No two begins share the text. */
  readonly begins?: string;
}

/**
 * Claims a generation above `newest`. Its caller ends the lease.
 *
 * @throws NO_QUORUM when no majority answers, REPLACED_MEANWHILE when other writers win every time.
 */
export async function claimGeneration(claim: Claim, context: WriteContext): Promise<Lease> {
  const unused: UnusedClaim[] = [];
  try {
    return await claimFirst(claim, unused, context);
  } catch (error) {
    await withdraw(unused, context);
    throw error;
  }
}

async function claimFirst(claim: Claim, unused: UnusedClaim[], context: WriteContext): Promise<Lease> {
  const { key, newest, copies = false } = claim;
  const needed = majorityOf(context.stores);
  const attempts = copies ? 2 : ATTEMPTS_MAX;
  let generation = singleAfter(newest);
  for (let attempt = 1; ; attempt++) {
    const start = instantOf(context);
    const name = claimName(key, generation);
    const body = bodyOf(claim);
    const take = (store: Store, signal: AbortSignal): Promise<boolean> => claimIn(store, name, body, signal);
    // A majority suffices. Only the age of a claim that is passed over needs our own in every region.
    const patience = { enough: needed, ...(!copies && { isGood: (taken: boolean) => taken }) };
    // An interruption waits for the answers, because it has to take back what was claimed.
    const { signal: unending } = new AbortController();
    const outcomes = await askRegions(context.stores, take, patience, { ...context, signal: unending });
    const answered = outcomes.filter(({ error }) => error === undefined);
    const holders = answered.filter(({ value }) => value).map(({ store }) => store);
    unused.push({ name, body, holders });
    context.signal.throwIfAborted();
    if (holders.length >= needed) {
      if (copies && generation > newest + 1 && !(await areDead(claim, generation, context)))
        throw overtaken(key, attempt);
      return new Lease({ generation, name, body, holders, start }, context);
    }
    if (answered.length < needed) throw noQuorum(key, outcomes, needed);
    if (attempt === attempts) throw overtaken(key, attempts);
    await pause(attempt, context);
    const survey = await surveyRegions(key, context);
    // Claims of writers that died are never removed, so they are passed over all at once.
    const limit = generation + CLAIMS_AHEAD_MAX;
    let highest = Math.max(generation, survey.generation);
    for (const { generation: other } of await listClaims(key, context)) {
      if (other > highest && other < limit) highest = other;
    }
    generation = singleAfter(highest);
  }
}

/** A claim under which its writer writes nothing. */
type UnusedClaim = Pick<HeldClaim, "name" | "body" | "holders">;

async function withdraw(unused: readonly UnusedClaim[], context: WriteContext): Promise<void> {
  for (const claim of unused) await withdrawClaim(claim, context);
}

/** Whether another writer has claimed a generation above `own`, and has not withdrawn. NO_QUORUM. */
export async function isPassed(key: string, own: number, upload: string, context: WriteContext): Promise<boolean> {
  const later = (await listClaims(key, context)).filter(({ generation }) => generation > own);
  for (const listed of later) {
    const claim = await readClaim(listed, context.signal);
    if (claim.upload !== upload && claim.withdrawn !== true) return true;
  }
  return false;
}

/**
 * Whether all claims between `newest` and generation `own` are too old to hold us up, withdrawn, or left by our earlier
 * attempts. Their age is the time between their claim and ours by the clock of the region that has both.
 */
async function areDead(claim: Claim, own: number, context: WriteContext): Promise<boolean> {
  const claims = await listClaims(claim.key, context);
  const ownMs = new Map(claims.filter((one) => one.generation === own).map((one) => [one.store, one.modifiedMs]));
  const between = claims.filter(({ generation }) => generation > claim.newest && generation < own);
  const isDead = ({ store, modifiedMs }: ListedClaim): boolean =>
    (ownMs.get(store) ?? Number.NaN) - modifiedMs >= PASSABLE_MS;
  for (const listed of between.filter((one) => !isDead(one))) {
    // A region that does not say whose claim it is may have that of a writer that is alive.
    const other = await readClaim(listed, context.signal).catch(() => undefined);
    context.signal.throwIfAborted();
    if (!other || (other.upload !== claim.upload && other.withdrawn !== true)) return false;
  }
  return true;
}

/** Whether a writer has a claim to a generation above `generation`, be it alive or not. NO_QUORUM. */
export async function isClaimedAbove(key: string, generation: number, context: WriteContext): Promise<boolean> {
  return (await listClaims(key, context)).some((listed) => listed.generation > generation);
}

/** Whether a writer has claimed a generation in order to repeat generation `generation`. NO_QUORUM. */
export async function isCopied(key: string, generation: number, context: WriteContext): Promise<boolean> {
  const later = (await listClaims(key, context)).filter((listed) => listed.generation > generation);
  for (const listed of later) {
    if ((await readClaim(listed, context.signal)).copies === generation) return true;
  }
  return false;
}

/** The claim that keeps the chunks of a browser's upload. */
interface BegunUpload {
  readonly generation: number;
  readonly begins: string;
  /** Whether the same upload was begun once more, at the same moment. */
  readonly isTwice: boolean;
  /** Whether its writer has said so: it was committed. */
  readonly isOver: boolean;
}

/** The claim with `begins` of an upload; undefined where there is none. NO_QUORUM. */
export async function findBegun(key: string, upload: string, context: WriteContext): Promise<BegunUpload | undefined> {
  // A region that fails meanwhile is one that does not answer.
  const read = async (one: ListedClaim, signal: AbortSignal) => ({ ...one, ...(await readClaim(one, signal)) });
  const claims = await listClaims(key, context, majorityOf(context.stores), read);
  const own = claims.flatMap(({ begins, ...claim }) =>
    claim.upload === upload && begins !== undefined ? [{ ...claim, begins }] : [],
  );
  // Below the one that it has won, another writer may have what it has left in a few regions only.
  const last = own.toSorted((a, b) => b.generation - a.generation)[0];
  if (!last) return undefined;
  const { generation, begins } = last;
  const isTwice = own.some((claim) => claim.begins !== begins);
  return { generation, begins, isTwice, isOver: own.some(({ withdrawn }) => withdrawn === true) };
}

/**
 * Stores the claim of a begun upload again, so that its chunks are kept as long as those of a writer that works. Where
 * `isOver`, it says that the upload was committed, and is not a claim any more. It says so for good: who has not seen
 * that it is over stores it under a condition. NO_QUORUM where too few regions take it.
 */
export async function storeBegun(
  key: string,
  upload: string,
  { generation, begins, isOver }: Omit<BegunUpload, "isTwice">,
  context: WriteContext,
): Promise<void> {
  const name = claimName(key, generation);
  const body = bodyOf({ key, upload, newest: 0, begins });
  const bytes = Buffer.from(isOver ? withdrawnClaim(body) : body);
  const store = async (region: Store, signal: AbortSignal): Promise<void> => {
    const options = { bytes: bytes.length, contentType: "application/json", signal };
    const response = isOver ? undefined : await region.get(name, { signal });
    const ifMatch = response?.headers.get("etag") ?? undefined;
    if (response && ifMatch === undefined) {
      if (!(await claimIn(region, name, body, signal))) throw overtaken(key, 1);
      return;
    }
    if (response && (await readRecordText(response, name)) !== body) throw overtaken(key, 1);
    await region.put(name, bytes, { ...options, ...(ifMatch !== undefined && { ifMatch }) });
  };
  const needed = majorityOf(context.stores);
  const outcomes = await askRegions(context.stores, store, { enough: needed }, context);
  if (outcomes.filter(({ error }) => !error).length < needed) throw noQuorum(key, outcomes, needed);
}

/** A claim in one region. */
export interface ListedClaim {
  readonly store: Store;
  readonly name: string;
  readonly generation: number;
  readonly modifiedMs: number;
  /** Of a batch, which has been read. */
  readonly upload?: string;
}

/**
 * The uploads of writers that may be alive: those that claims name which `isDead` does not find too old. Every region
 * must answer, because a claim can be in a majority only.
 *
 * @throws NO_QUORUM, SOURCE_FAILED or CREDENTIALS_REFUSED.
 */
export async function claimedUploads(
  key: string,
  isDead: (claim: ListedClaim, deadMs: number) => boolean,
  context: RegionParts,
): Promise<ReadonlySet<string>> {
  const claims = await listClaims(key, context, context.stores.length);
  const uploads = new Set<string>();
  for (const claim of claims.filter((one) => !isDead(one, DEAD_MS))) {
    const { upload } = await readClaim(claim, context.signal);
    if (upload !== undefined) uploads.add(upload);
  }
  return uploads;
}

/**
 * The claims to generations of a key, those of batches among them, in `needed` regions or more, each as `read` has it.
 * NO_QUORUM.
 */
async function listClaims<T extends ListedClaim = ListedClaim>(
  key: string,
  context: RegionParts,
  needed = majorityOf(context.stores),
  read = async (claim: ListedClaim, _signal: AbortSignal): Promise<T> => claim as T,
): Promise<T[]> {
  const prefix = claimPrefix(key);
  const list = async (store: Store, signal: AbortSignal): Promise<T[]> => {
    const claims: ListedClaim[] = [];
    for await (const { name, modifiedMs } of store.list(prefix, signal)) {
      if (claims.length === CLAIMS_MAX) throw tooManyClaims(key, store);
      claims.push({ store, name, generation: Number(name.slice(prefix.length)), modifiedMs });
    }
    for (const { name, modifiedMs, entries } of await batchesIn(store, signal)) {
      const entry = entries.get(key);
      if (entry) claims.push({ store, name, modifiedMs, ...entry });
    }
    return Promise.all(claims.map((claim) => read(claim, signal)));
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
    return (await recordText(store, name, "claim", signal)) === body;
  }
}

function bodyOf({ upload, newest, copies, begins }: Claim): string {
  return JSON.stringify({ upload, ...(copies && { copies: newest }), ...(begins && { begins }) });
}

interface ClaimContent {
  readonly upload?: string;
  readonly copies?: number;
  readonly begins?: string;
  readonly withdrawn?: boolean;
}

/**
 * The content of a claim; undefined when it is malformed or missing. Rejects when its region does not answer:
 * SOURCE_FAILED.
 */
async function readClaim({ store, name, upload }: ListedClaim, signal: AbortSignal): Promise<ClaimContent> {
  if (upload !== undefined) return { upload };
  return jsonIn(await recordText(store, name, "claim", signal)) ?? {};
}

function noQuorum(key: string, outcomes: readonly Outcome<unknown>[], needed: number): AgaroseError {
  const first = outcomes.find(({ error }) => error)!.error!;
  const answered = outcomes.filter(({ error }) => error === undefined).length;
  return new AgaroseError(
    first.code === "CREDENTIALS_REFUSED" ? first.code : "NO_QUORUM",
    `${answered} of ${outcomes.length} regions accepted a claim to ${JSON.stringify(key)}, ${needed} are needed: ` +
      `readers see the version before; try again once they answer. First error: ${first.message}`,
    { key, answered, needed },
    first,
  );
}

function tooManyClaims(key: string, { region: { name: region } }: Store): AgaroseError {
  const message = `region ${region} lists more than ${CLAIMS_MAX} claims to ${JSON.stringify(key)}: delete garbage with \`agarose gc\``;
  return new AgaroseError("SOURCE_FAILED", message, { region, key, limit: CLAIMS_MAX });
}

function overtaken(key: string, attempts: number): AgaroseError {
  return new AgaroseError(
    "REPLACED_MEANWHILE",
    `${attempts} of ${attempts} attempts to claim ${JSON.stringify(key)} met other writers: run the command again in a ` +
      `minute. A command that was killed holds a key for ${PASSABLE_MS / 1000} seconds`,
    { key, attempts },
  );
}
