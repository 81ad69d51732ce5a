/**
 * Leases: a writer that works stores its claim again and again, so that no garbage collector takes its upload for that
 * of a writer that died (docs/reference/format.md, "Writing").
 */
import type { Store } from "../buckets/store.ts";
import { askRegions } from "../regions/ask-regions.ts";
import { majorityOf, type WriteContext } from "./write-context.ts";
import { putRecord } from "../buckets/small-record.ts";

/** A writer writes its manifest within an hour of the last time it stored its claim, or claims again. */
export const LEASE_MS = 3_600_000;
/** Three tries fit into a lease. */
const RENEWAL_MS = LEASE_MS / 3;
/** From this age on, a claim is that of a writer that died. */
export const DEAD_MS = 2 * LEASE_MS;
/** Without a look at other claims, a writer relies on its own for so long after it has stored it. */
export const FRESH_MS = 20_000;
/**
 * From this age on, a claim no longer holds up a writer that depends on what is there. Its owner looks for such a
 * writer's claim before it writes, if its own is older than `FRESH_MS`.
 */
export const PASSABLE_MS = 2 * FRESH_MS;
/** A garbage collector deletes an upload within this time of a look at the claims, or not at all. */
export const CLEANING_MS_MAX = 300_000;
/** A writer whose lease has ended waits so long after its next claim: then who took it for dead is done. */
export const AWAKENING_MS = 2 * CLEANING_MS_MAX;

/** The claim of a writer, in the regions that have it. */
export interface HeldClaim {
  readonly generation: number;
  readonly name: string;
  readonly body: string;
  readonly holders: readonly Store[];
  /** When it was about to be stored. */
  readonly start: Instant;
}

/** Both clocks count, because some stop while a machine sleeps. */
interface Instant {
  readonly timerMs: number;
  readonly wallMs: number;
}

/** This moment. */
export function instantOf({ clock, nowMs }: Pick<WriteContext, "clock" | "nowMs">): Instant {
  return { timerMs: clock.now(), wallMs: nowMs() };
}

/** Whether more than `ms` have gone by since `start`, by either clock. */
export function isPast(start: Instant, ms: number, context: Pick<WriteContext, "clock" | "nowMs">): boolean {
  const { timerMs, wallMs } = instantOf(context);
  return timerMs - start.timerMs > ms || Math.abs(wallMs - start.wallMs) > ms;
}

/** The right to write one generation of a key, for as long as its claim is rewritten in time. */
export class Lease {
  readonly generation: number;
  readonly #claim: HeldClaim;
  readonly #context: WriteContext;
  #start: Instant;
  #cancel: () => void = () => {};
  #isOver = false;

  constructor(claim: HeldClaim, context: WriteContext) {
    this.generation = claim.generation;
    this.#claim = claim;
    this.#context = context;
    this.#start = claim.start;
    this.#plan();
  }

  /** Whether it is too old to begin to write. */
  get isExpired(): boolean {
    return this.#isOlderThan(LEASE_MS);
  }

  /** Whether the claim was stored a moment ago, so that no other writer has passed over it. */
  get isFresh(): boolean {
    return !this.#isOlderThan(FRESH_MS);
  }

  /** Stores the claim again. Returns whether a majority took it in time. */
  async refresh(): Promise<boolean> {
    await this.#store();
    return this.isFresh;
  }

  /** Says in the claim that nothing is written under it, so that it holds up no other writer. Does not reject. */
  async withdraw(): Promise<void> {
    this.end();
    await withdrawClaim(this.#claim, this.#context);
  }

  /** Stores the claim no longer. */
  end(): void {
    this.#isOver = true;
    this.#cancel();
  }

  #plan(): void {
    this.#cancel = this.#context.clock.after(RENEWAL_MS, () => void this.#renew());
  }

  #isOlderThan(ms: number): boolean {
    return isPast(this.#start, ms, this.#context);
  }

  async #renew(): Promise<void> {
    // An expired lease stays expired, because the writer may have been declared dead.
    if (this.isExpired) return;
    await this.#store();
    if (!this.#isOver) this.#plan();
  }

  async #store(): Promise<void> {
    const start = instantOf(this.#context);
    const { name, body, holders } = this.#claim;
    const store = (holder: Store, signal: AbortSignal) => putRecord(holder, name, body, { signal });
    const needed = majorityOf(this.#context.stores);
    const { signal } = new AbortController();
    const outcomes = await askRegions(holders, store, { enough: needed }, { ...this.#context, signal });
    const isStored = outcomes.filter(({ error }) => error === undefined).length >= needed;
    if (isStored && !this.isExpired) this.#start = start;
  }
}

/** A claim that says of itself that it is none any more. */
export function withdrawnClaim(body: string): string {
  return JSON.stringify({ ...(JSON.parse(body) as object), withdrawn: true });
}

/** No command waits longer for the regions to take back what it has claimed. */
const WITHDRAWAL_MS = 5_000;

/**
 * Says in a claim that its writer writes nothing under it. Its name stays taken: a removal that arrives late could
 * remove the claim of another writer. Does not reject: what fails here grows old.
 */
export async function withdrawClaim(
  { name, body, holders }: Pick<HeldClaim, "name" | "body" | "holders">,
  context: WriteContext,
): Promise<void> {
  // A command that is interrupted withdraws all the same.
  const { signal } = new AbortController();
  const store = (holder: Store, ended: AbortSignal) => putRecord(holder, name, withdrawnClaim(body), { signal: ended });
  const patience = { enough: Math.min(holders.length, majorityOf(context.stores)), limitMs: WITHDRAWAL_MS };
  if (holders.length > 0) await askRegions(holders, store, patience, { ...context, signal });
}
