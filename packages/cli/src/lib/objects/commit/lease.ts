/**
 * Leases: a writer that works stores its claim again and again, so that no garbage collector takes its upload for that
 * of a writer that died (docs/reference/format.md, "Writing").
 */
import type { Store } from "../../store/store.ts";
import { askRegions } from "./ask-regions.ts";
import { majorityOf, type WriteContext } from "./write-context.ts";

/** A writer writes its manifest within an hour of the last time it stored its claim, or claims again. */
const LEASE_MS = 3_600_000;
/** Three tries fit into a lease. */
const RENEWAL_MS = LEASE_MS / 3;
/** From this age on, a claim is that of a writer that died. */
export const DEAD_MS = 2 * LEASE_MS;
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

/** The right to write one generation of a key, for as long as its claim is stored again in time. */
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
    const { timerMs, wallMs } = instantOf(this.#context);
    return timerMs - this.#start.timerMs > LEASE_MS || Math.abs(wallMs - this.#start.wallMs) > LEASE_MS;
  }

  /** Stores the claim no longer. */
  end(): void {
    this.#isOver = true;
    this.#cancel();
  }

  #plan(): void {
    this.#cancel = this.#context.clock.after(RENEWAL_MS, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const start = instantOf(this.#context);
    // What has ended stays so: meanwhile the writer was taken for dead.
    if (this.isExpired) return;
    const { name, body, holders } = this.#claim;
    const bytes = Buffer.from(body);
    const options = { bytes: bytes.length, contentType: "application/json" };
    const store = (holder: Store, signal: AbortSignal) => holder.put(name, bytes, { ...options, signal });
    const needed = majorityOf(this.#context.stores);
    const { signal } = new AbortController();
    const outcomes = await askRegions(holders, store, { enough: needed }, { ...this.#context, signal });
    const isStored = outcomes.filter(({ error }) => error === undefined).length >= needed;
    if (isStored && !this.isExpired) this.#start = start;
    if (!this.#isOver) this.#plan();
  }
}
