/**
 * The cache manager: one period, run by the Cron Trigger (Agar, ICDCS'17, section IV).
 *
 * Probe the regions, close the period of the request monitor, plan, evict, fill, publish. A step that fails leaves the
 * cache as it was. The next period finishes what this one left, for lack of budget or because it was killed.
 */
import { toAgaroseError } from "@agarose/core";
import type { RegionEstimate, Savings } from "@agarose/solver/planner";
import { probeRegions, SIZED_EVERY, sizedTargets } from "../regions/region-probes.ts";
import type { LedgerEntry, PeriodReport } from "./ledger.ts";
import type { PopSnapshot } from "./pop-state.ts";
import { CacheWriter, noWrites, type WriteCounts } from "./cache-writer.ts";
import { EgressBudget } from "./egress-budget.ts";
import type { PeriodContext } from "./period-context.ts";
import { planPeriod, type PeriodPlan } from "./period-plan.ts";
import { publishConfiguration } from "./publish.ts";
import { WriteBudget } from "./write-budget.ts";

/** A period starts no new work after this; the rest of the minute is for finishing. */
const WORK_MS = 45_000;
/** A period or purge that takes longer counts as killed. */
export const LEASE_MS = 120_000;
const ERRORS_MAX = 20;
/** Every period publishes, whatever the budget. */
const PUBLISHING_WRITES = 1;

/**
 * Runs one period. Resolves to undefined while another invocation runs one; rejects when the PoP's state is
 * unavailable.
 */
export async function runPeriod(context: PeriodContext): Promise<PeriodReport | undefined> {
  const snapshot = await context.state.beginPeriod(context.now(), LEASE_MS);
  return snapshot && new Period(context, snapshot).run();
}

class Period {
  readonly #context: PeriodContext;
  readonly #startMs: number;
  readonly #ledger: Map<string, LedgerEntry>;
  readonly #writeBudget: WriteBudget;
  readonly #egressBudget: EgressBudget;
  readonly #errors: string[] = [];
  #regions: readonly RegionEstimate[];
  #epoch: number;
  #planned: Pick<PeriodPlan, "candidates" | "popular"> = { candidates: 0, popular: [] };
  #counts: WriteCounts = noWrites();
  #waiting = 0;
  #refused = 0;
  #savings: Savings | undefined;

  constructor(context: PeriodContext, snapshot: PopSnapshot) {
    this.#context = context;
    this.#startMs = context.clock.now();
    this.#ledger = new Map(snapshot.ledger.map((entry) => [entry.version, entry]));
    this.#regions = snapshot.regions;
    this.#epoch = snapshot.epoch;
    this.#writeBudget = new WriteBudget(context.settings.spending, snapshot.spending, context.now());
    this.#writeBudget.reserve(PUBLISHING_WRITES);
    this.#egressBudget = new EgressBudget(context.settings.fillEgressBytesPerDay, snapshot.fillEgress, context.now());
  }

  async run(): Promise<PeriodReport> {
    const { settings, state, fetch, clock, findManifest } = this.#context;
    await this.#attempt(async () => {
      const keys = this.#epoch % SIZED_EVERY === 0 ? [...this.#ledger.values()].map(({ key }) => key) : [];
      const sized = await sizedTargets(keys, findManifest);
      this.#regions = await state.mergeRegions(await probeRegions({ regions: settings.regions, sized, fetch, clock }));
    });
    await this.#attempt(async () => this.#change(await this.#plan()));
    await this.#attempt(() => this.#publish());
    const report = this.#report();
    await state.endPeriod(report);
    return report;
  }

  #plan(): Promise<PeriodPlan> {
    return planPeriod(this.#context, {
      ledger: this.#ledger,
      regions: this.#regions,
      writeBudget: this.#writeBudget,
      egressBudget: this.#egressBudget,
      onError: (error) => this.#note(error),
    });
  }

  async #change({ change, candidates, popular, manifestOf, savings }: PeriodPlan): Promise<void> {
    const { state } = this.#context;
    this.#planned = { candidates, popular };
    this.#waiting = change.waiting;
    this.#refused = change.refused;
    const writer = new CacheWriter(this.#context, {
      ledger: this.#ledger,
      estimates: this.#regions,
      manifestOf,
      writeBudget: this.#writeBudget,
      egressBudget: this.#egressBudget,
      untilMs: this.#startMs + WORK_MS,
      onError: (error) => this.#note(error),
    });
    this.#counts = writer.counts;
    // The state records the money before it is spent, so a killed period has recorded too much rather than too little.
    const reserved = writer.atMost(change);
    const reservedBytes = writer.fetchesAtMost(change);
    await state.spend(reserved, this.#egressBudget.of(reservedBytes));
    try {
      await writer.apply(change);
    } finally {
      const { writes, reads } = this.#writeBudget.spent;
      await state.spend(
        this.#writeBudget.priceOf(writes - reserved.writes, reads - reserved.reads),
        this.#egressBudget.of(this.#egressBudget.spentBytes - reservedBytes),
      );
      this.#savings = savings();
    }
  }

  async #publish(): Promise<void> {
    const { state, onPublished } = this.#context;
    await state.spend(this.#writeBudget.priceOf(PUBLISHING_WRITES, 0));
    this.#writeBudget.spend({ writes: PUBLISHING_WRITES });
    await publishConfiguration(
      {
        ...this.#context,
        // This isolate reads by the configuration even if KV refuses it, and the report says so.
        onPublished: (configuration) => {
          this.#epoch = configuration.epoch;
          onPublished(configuration);
        },
      },
      this.#ledger.values(),
      this.#regions,
    );
  }

  #report(): PeriodReport {
    return {
      at: this.#context.now(),
      ms: this.#context.clock.now() - this.#startMs,
      epoch: this.#epoch,
      ...this.#planned,
      ...this.#counts,
      refused: this.#refused + this.#counts.refused,
      waiting: this.#waiting,
      ...(this.#savings ? { savings: this.#savings } : {}),
      usd: this.#writeBudget.spent.usd,
      operations: this.#context.budget.used,
      errors: this.#errors,
    };
  }

  async #attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.#note(error);
    }
  }

  #note(cause: unknown): void {
    const error = toAgaroseError(cause);
    if (this.#errors.length < ERRORS_MAX) this.#errors.push(`${error.code}: ${error.message}`);
  }
}
