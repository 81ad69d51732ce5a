/**
 * The damaged objects of a part of the walk. They are repaired together, the most endangered first, and only then does
 * the cursor pass them: after a kill in between, the next run finds them again.
 */
import { stateOf, type ObjectState, type ObjectVerdict } from "../../objects/verify-object.ts";
import { mapOrdered } from "../../listing/adaptive-pool.ts";
import type { DeploymentParts } from "../../parts.ts";
import { repairOne, type RepairOutcome } from "../../repair/repair-outcome.ts";
import { addOutcome, lossesLeft, type Found, type Totals } from "./totals.ts";

/** The record of a damaged object until its repair: no list of its stripes, which can be long. */
export interface Damaged extends Pick<ObjectVerdict, "key" | "removed" | "beyondK" | "chunks" | "chunksSound"> {
  readonly state: ObjectState;
  readonly lossesLeft: number;
  readonly isDeep: boolean;
}

/** How a span is worked off. */
export interface SpanOptions {
  /** Whether to report the damaged objects in place of repairing them. */
  readonly dryRun: boolean;
  /** Called with each damaged object of a dry run, in the order of danger. */
  readonly onDamaged?: ((object: Omit<Damaged, "isDeep">) => Promise<void>) | undefined;
  /** Called with what came of each repair, in the order of danger. */
  readonly onRepair?: ((outcome: RepairOutcome) => Promise<void>) | undefined;
  /** As of `RepairHow`. */
  readonly chunkBytesMax?: number | undefined;
  /** Damaged objects of a span. Default: 10,000, some megabytes. */
  readonly max?: number;
  /** Repairs at a time. Default: 8. */
  readonly width?: number;
}

const SPAN_MAX = 10_000;
const REPAIRS_AT_A_TIME = 8;

/** Collects damaged objects, and repairs them when there are many, or at the end. */
export class DamagedSpan {
  readonly #options: SpanOptions;
  readonly #context: DeploymentParts;
  #damaged: Damaged[] = [];

  constructor(options: SpanOptions, context: DeploymentParts) {
    this.#options = options;
    this.#context = context;
  }

  /** Damaged objects that wait for their repair. */
  get size(): number {
    return this.#damaged.length;
  }

  /** Notes an object. One without known damage is forgotten at once. */
  add({ verdict, isQueued, read }: Found): void {
    const state = stateOf(verdict);
    if (!isQueued && state !== "damaged" && state !== "unreadable") return;
    const { key, removed, beyondK, chunks, chunksSound } = verdict;
    this.#damaged.push({
      key,
      removed,
      beyondK,
      chunks,
      chunksSound,
      state,
      lossesLeft: lossesLeft(verdict),
      isDeep: read !== undefined,
    });
  }

  /** For `Walk.settle`. */
  async settle(totals: Totals, isEnd: boolean): Promise<Totals | undefined> {
    const { max = SPAN_MAX, dryRun } = this.#options;
    if (this.#damaged.length === 0) return totals;
    if (this.#damaged.length < max && !isEnd) return undefined;
    const damaged = this.#damaged.toSorted((a, b) => a.lossesLeft - b.lossesLeft);
    this.#damaged = [];
    return dryRun ? this.#report(damaged, totals) : this.#repair(damaged, totals);
  }

  async #repair(damaged: readonly Damaged[], totals: Totals): Promise<Totals> {
    const { onRepair, width = REPAIRS_AT_A_TIME, chunkBytesMax } = this.#options;
    const limit = chunkBytesMax !== undefined && { chunkBytesMax };
    const repair = async (before: Damaged): Promise<{ before: Damaged; object: RepairOutcome }> => {
      return { before, object: await repairOne(before.key, this.#context, { quick: !before.isDeep, ...limit }) };
    };
    let sum = totals;
    for await (const { before, object } of mapOrdered(damaged, width, repair)) {
      await onRepair?.(object);
      sum = addOutcome(sum, before, object);
    }
    return sum;
  }

  async #report(damaged: readonly Damaged[], totals: Totals): Promise<Totals> {
    let sum = totals;
    for (const { isDeep: _, ...object } of damaged) {
      const { state } = object;
      await this.#options.onDamaged?.(object);
      if (state === "damaged" || state === "unreadable") sum = { ...sum, damaged: sum.damaged + 1 };
    }
    return sum;
  }
}
