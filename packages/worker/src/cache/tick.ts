/**
 * When and where the periods of this PoP run, with its real parts. The Cron Trigger is its clock, but
 * Cloudflare runs that handler on any idle machine of the world: it would measure the latencies of another city.
 * `PopState` lives where LOCATION says, so periods run in it.
 */
import { systemSha256 } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import type { Manifest } from "@agarose/core/format";
import { notifyPeers, takeTurn, type OwnTurn } from "../peers/cooperation.ts";
import { withTimeout } from "../runtime/async.ts";
import { OBJECT_DEADLINE_MS } from "../runtime/durable-objects.ts";
import { log } from "../runtime/log.ts";
import { Budget, OPERATIONS_MAX } from "../runtime/budget.ts";
import { FrontCache, recordHost } from "../read/front-cache.ts";
import { Invocation } from "../runtime/invocation.ts";
import { isolateOf, type Bindings } from "../runtime/isolate.ts";
import type { RequestContext } from "../runtime/request-context.ts";
import { forContinent, continentOf, everyContinent, isEverywhere, type Continent } from "../runtime/continents.ts";
import { closePeriod, exchangeRequests, forgetKeys } from "../popularity/monitor-shards.ts";
import type { KeyRequests } from "../popularity/request-monitor.ts";
import type { Configuration } from "./configuration.ts";
import { PopState } from "./pop-state.ts";
import { popState } from "./pop-state-stub.ts";
import { parseCacheSettings, pricesOf } from "./cache-settings.ts";
import { EXCHANGE_LEASE_MS, runExchange } from "./exchange.ts";
import { runPeriod } from "./period.ts";
import { PlannerKeeper } from "./planner-keeper.ts";
import type { PeriodContext } from "./period-context.ts";

/** A continent without requests for a day keeps what it has cached, and measures nothing. */
const USED_MS = 24 * 60 * 60_000;
/** How often an isolate notes that there are requests. */
const NOTE_USE_MS = 60 * 60_000;

const notedMs = new WeakMap<Bindings, number>();

/** Notes, once an hour, that there are requests at `env`, and by which host. Never rejects. */
export function recordUse(env: Bindings, host: string, context: RequestContext): void {
  recordHost(env, host);
  const nowMs = Date.now();
  if (nowMs - (notedMs.get(env) ?? 0) < NOTE_USE_MS) return;
  notedMs.set(env, nowMs);
  // After a failure the next request notes it.
  context.waitUntil(Promise.resolve(popState(env).recordUse(nowMs, host)).catch(() => notedMs.delete(env)));
}

/** A PoP without requests for so long exchanges nothing: isolates note their use once an hour. */
const EXCHANGED_MS = 2 * NOTE_USE_MS;

/** `PopState` as it is deployed. */
export class PeriodicPopState extends PopState {
  readonly #env: Bindings;
  /** Chunks that exchanges have kept in the Cache API. In memory only: the next ones keep it again. */
  readonly #kept = new Map<string, number>();
  readonly #planners = new PlannerKeeper();
  /** The last period's knowledge of the peers. */
  #peers: OwnTurn["peers"];
  #exchange: Promise<unknown> = Promise.resolve();
  #isInPeriod = false;

  constructor(state: DurableObjectState, env: Bindings) {
    super(state, env);
    this.#env = env;
  }

  /**
   * Runs one period: of `continent`, for one Worker everywhere, unless nothing is read there. Rejects as `period` does.
   */
  override async runPeriod(continent?: Continent): Promise<void> {
    if (continent !== undefined && !this.isUsed(Date.now(), USED_MS)) return;
    const env = continent === undefined ? this.#env : forContinent(this.#env, continent);
    const host = this.host();
    if (host !== undefined) recordHost(env, host);
    // An exchange holds the lease of a period for a second. One that hangs must not hold up all periods.
    const onTurn = async ({ peers }: OwnTurn): Promise<void> => {
      this.#peers = peers;
      this.#isInPeriod = true;
      await orUndefined(this.#exchange, EXCHANGE_LEASE_MS, isolateOf(env).clock);
    };
    try {
      await this.#period(env, onTurn);
    } catch (error) {
      log("error", "period failed", { error });
      throw error;
    } finally {
      this.#isInPeriod = false;
    }
  }

  /**
   * Notes requests, and begins to exchange. One Worker everywhere exchanges nothing: its readers enter at many data
   * centers, and each has a Cache API of its own.
   */
  override async recordUse(nowMs: number, host: string): Promise<void> {
    await super.recordUse(nowMs, host);
    if ((await this.ctx.storage.getAlarm()) === null) await this.#setAlarm();
  }

  /** Exchanges, and sets the next alarm. Never rejects: the platform would repeat it at once. */
  override async alarm(): Promise<void> {
    if (this.isUsed(Date.now(), EXCHANGED_MS)) await this.#setAlarm();
    if (this.#isInPeriod) return;
    this.#exchange = this.#runExchange().catch((error: unknown) => log("warn", "exchange failed", { error }));
    await this.#exchange;
  }

  /** This object's own methods and planner: a call of its stub would copy the ledger. */
  get #memory(): Pick<PeriodContext, "state" | "planners"> {
    return { state: this, planners: this.#planners };
  }

  /**
   * Runs one period, once `onTurn` has settled. Rejects when the PoP's state is unavailable: the cache stays as it is
   * until the next period.
   */
  async #period(env: Bindings, onTurn: (turn: OwnTurn) => Promise<void>): Promise<void> {
    const { settings, clock, configuration, peers } = isolateOf(env);
    // Finding manifests may take half of the subrequests, and the changes the other half.
    const budget = new Budget(Math.min(OPERATIONS_MAX, Math.ceil(settings.subrequestsMax / 2)));
    const invocation = new Invocation(env, this.ctx, { onFetch: () => budget.spend() });
    const costMsPerByte = pricesOf(parseCacheSettings(env), settings.regions)?.egressPerByte;
    const turn = await takeTurn({
      env,
      settings,
      clock,
      fetch: invocation.fetch,
      regions: () => this.regions(),
      snapshot: peers,
      costMsPerByte,
    });
    await onTurn(turn);
    let published: Configuration | undefined;
    const onPublished = (current: Configuration): void => {
      configuration.set(current);
      published = current;
    };
    const report = await runPeriod({ ...periodContext(invocation, { budget, turn, onPublished }), ...this.#memory });
    if (published) await notifyPeers(env, settings, published, turn.mayChange, clock);
    if (!report) return;
    const { popular: _keys, ...counts } = report;
    log(report.errors.length > 0 ? "warn" : "info", "period", { pop: settings.pop, ...counts });
  }

  async #setAlarm(): Promise<void> {
    const { exchangeSeconds } = parseCacheSettings(this.#env);
    if (exchangeSeconds === 0 || isEverywhere(this.#env) || !FrontCache.isHere) return;
    await this.ctx.storage.setAlarm(Date.now() + exchangeSeconds * 1_000);
  }

  async #runExchange(): Promise<void> {
    const host = this.host();
    if (host !== undefined) recordHost(this.#env, host);
    const { settings, clock } = isolateOf(this.#env);
    const budget = new Budget(Math.min(OPERATIONS_MAX, Math.ceil(settings.subrequestsMax / 2)));
    const invocation = new Invocation(this.#env, this.ctx, { onFetch: () => budget.spend() });
    const turn = { mayChange: true, ...(this.#peers ? { peers: this.#peers } : {}) };
    const context = { ...periodContext(invocation, { budget, turn, onPublished() {} }), ...this.#memory };
    const asked = (limit: number): Promise<KeyRequests[]> =>
      withTimeout(exchangeRequests(this.#env, limit), OBJECT_DEADLINE_MS, clock, "counting requests for an exchange");
    const requests = { ...context.requests, closePeriod: asked };
    const report = await runExchange({ ...context, requests }, this.#kept);
    if (report) this.lastExchange = report;
  }
}

/**
 * The Cron Trigger: hands on what this isolate has counted, and runs a period at the PoP's place. Rejects as `period`
 * does, and while the object is unavailable.
 */
export async function tick(env: Bindings, context: RequestContext): Promise<void> {
  const ticks = await Promise.allSettled(everyContinent(env).map((one) => tickOf(one, context)));
  const failed = ticks.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
}

async function tickOf(env: Bindings, context: RequestContext): Promise<void> {
  const { counter } = isolateOf(env);
  const waitUntil = (promise: Promise<unknown>): void => context.waitUntil(promise);
  await counter.flush(waitUntil);
  await popState(env).runPeriod(continentOf(env));
}

/** The separate parts of a period and a purge. */
interface PeriodParts {
  readonly budget: Budget;
  readonly turn: OwnTurn;
  readonly onPublished: (configuration: Configuration) => void;
}

/** Returns the context of a period or purge that `invocation` runs. Throws CONFIG_INVALID. */
export function periodContext(invocation: Invocation, { budget, turn, onPublished }: PeriodParts): PeriodContext {
  const { env, isolate, subrequests, fetch, cacheContext } = invocation;
  const { settings, breakers, cache, fetched, clock, codec } = isolate;
  const lookUpsMax = Math.ceil(settings.subrequestsMax / 2);
  const peers = settings.peers && {
    sourcesOf: (manifest: Manifest) => invocation.peerSources(manifest, []),
    note: (name: string, isGood: boolean) => (isGood ? breakers.succeeded(name) : breakers.failed(name)),
  };
  const answered = <T>(call: Promise<T>, what: string): Promise<T> =>
    withTimeout(call, OBJECT_DEADLINE_MS, clock, what);
  return {
    settings: { ...settings, ...parseCacheSettings(env) },
    state: popState(env),
    planners: new PlannerKeeper(),
    requests: {
      closePeriod: (limit) => answered(closePeriod(env, limit), "closing the period of the monitor"),
      forgetKeys: (keys) => answered(forgetKeys(env, keys), "removing keys from the monitor"),
      findManifest: (key) => invocation.manifest(key),
      mayLookUp: () => subrequests.used < lookUpsMax,
    },
    cache: { chunks: cache, kv: cacheContext, fetched, peers, onPublished },
    system: { fetch, budget, clock, now: Date.now, sha256: systemSha256, codec },
    turn,
  };
}
