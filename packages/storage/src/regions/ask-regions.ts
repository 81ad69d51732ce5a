/** Asks several regions at once, without waiting for one that hangs. */
import { AgaroseError, toAgaroseError, type Clock } from "@agarose/core";
import type { Store } from "../buckets/store.ts";

/** A request to one region. */
export interface Task<T> {
  readonly store: Store;
  readonly run: (signal: AbortSignal) => Promise<T>;
}

/** The outcome of a task: a value, or the reason why there is none. */
export type Outcome<T> =
  | { readonly store: Store; readonly value: T; readonly error?: undefined }
  | { readonly store: Store; readonly value?: undefined; readonly error: AgaroseError };

/** How long to wait. */
export interface Patience<T = unknown> {
  /** So many successes suffice; the other tasks then get as long again, twice, but at least 2.5 seconds. */
  readonly enough: number;
  /** The longest wait of all. Default 30 seconds. */
  readonly limitMs?: number;
  /**
   * Begin with `enough` tasks only. The others start when one of these fails, returns what is not good, or takes a
   * second; those that never start have no outcome. Default: all begin at once.
   */
  readonly isGood?: (value: T) => boolean;
  /** Whether a task that ends shows that its region answers. Bytes can be sent to one that hangs. Default: it does. */
  readonly isAnswered?: boolean;
  /**
   * Whether regions that were silent get the task, too, at most one each a second, and then as long again as the others
   * took.
   * Default: they are omitted like others that hung.
   */
  readonly tries?: boolean;
}

/** The caller of the regions. */
export interface AskContext {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly breaker: Breaker;
}

/** A region on the other side of the world takes over a second when its connection is new. */
const GRACE_MS_MIN = 2_500;
const SPARES_MS = 1_000;
const LIMIT_MS_DEFAULT = 30_000;
const OPEN_MS = 30_000;
/** Between two tries of a region that was silent. */
const TRY_MS = 1_000;
/** A try gets as long again as the others took, within these bounds. */
const TRY_GRACE_MS_MIN = 100;
const TRY_GRACE_MS_MAX = 1_000;
/** A region that works answers one of several requests in this time. It is shorter than any request is waited for. */
const SILENCE_MS = 2_000;
/** So often in a row, a region may ask for fewer requests, each time at the end of all tries. */
const REFUSALS = 2;
/** So many of a region's requests may be given up, and of many this share. */
const STRAGGLERS = 2;
const STRAGGLERS_SHARE = 0.1;

const NEVER = Number.NEGATIVE_INFINITY;

/** A command's experience with a region. */
interface Seen {
  openedMs: number;
  /** Whether it was silent then. */
  wasSilent: boolean;
  triedMs: number;
  answeredMs: number;
  /** Requests of the last `OPEN_MS` or so, from `sinceMs` on. */
  answered: number;
  gaveUp: number;
  /** In a row. */
  refused: number;
  sinceMs: number;
}

/** Remembers which regions hung or asked for less, so that only the first requests of a command wait for them. */
export class Breaker {
  readonly #clock: Clock;
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether `region` hung or asked for fewer requests in the last 30 seconds. */
  isOpen(region: string): boolean {
    return this.#of(region).openedMs + OPEN_MS > this.#clock.now();
  }

  /** Whether to try now whether `region`, which was silent, answers again. Counts as a try if so: one a second. */
  shouldTry(region: string): boolean {
    const seen = this.#of(region);
    const nowMs = this.#clock.now();
    if (!seen.wasSilent || nowMs - seen.triedMs < TRY_MS) return false;
    seen.triedMs = nowMs;
    return true;
  }

  /** Whether `region` has hung and has not answered since, so that nothing should wait long for it. */
  isSuspect(region: string): boolean {
    const { openedMs, answeredMs } = this.#of(region);
    return openedMs > answeredMs;
  }

  /** Counts the regions of `stores` from which an answer can be expected, at least 1. */
  countResponsive(stores: readonly Store[]): number {
    return Math.max(1, stores.filter(({ region }) => !this.isSuspect(region.name)).length);
  }

  /** Notes that `region` hung. */
  open(region: string): void {
    Object.assign(this.#of(region), { openedMs: this.#clock.now(), wasSilent: true });
  }

  /** Notes that `region` answered. One that was silent is waited for again from now on. */
  answered(region: string): void {
    const seen = this.#of(region);
    seen.answered++;
    seen.refused = 0;
    seen.answeredMs = this.#clock.now();
    if (seen.wasSilent) Object.assign(seen, { openedMs: NEVER, wasSilent: false, gaveUp: 0 });
  }

  /**
   * Notes that a request to `region` was given up. Of many, some take long: the region hangs if it is silent, or if
   * more than a tenth of its requests, and more than two, are given up.
   */
  gaveUp(region: string): void {
    const seen = this.#of(region);
    seen.gaveUp++;
    if (this.#clock.now() - seen.answeredMs >= SILENCE_MS) this.open(region);
    else if (seen.gaveUp > Math.max(STRAGGLERS, seen.answered * STRAGGLERS_SHARE)) this.#leaveOut(seen);
  }

  /** Notes that `region` asked for fewer requests, in place of an answer. */
  refused(region: string): void {
    const seen = this.#of(region);
    if (++seen.refused > REFUSALS) this.#leaveOut(seen);
  }

  /** Leaves a region out that answers, and cannot keep up. */
  #leaveOut(seen: Seen): void {
    Object.assign(seen, { openedMs: this.#clock.now(), wasSilent: false });
  }

  #of(region: string): Seen {
    const nowMs = this.#clock.now();
    let seen = this.#seen.get(region);
    if (seen === undefined) {
      seen = {
        openedMs: NEVER,
        wasSilent: false,
        triedMs: NEVER,
        answeredMs: NEVER,
        answered: 0,
        gaveUp: 0,
        refused: 0,
        sinceMs: nowMs,
      };
      this.#seen.set(region, seen);
    }
    if (nowMs - seen.sinceMs > OPEN_MS) Object.assign(seen, { answered: 0, gaveUp: 0, sinceMs: nowMs });
    return seen;
  }
}

/** Milliseconds that stragglers get once enough others took `elapsedMs`. */
export function graceMs(elapsedMs: number): number {
  return Math.max(GRACE_MS_MIN, 2 * elapsedMs);
}

/**
 * Runs `tasks` and returns their outcomes in order. It omits regions that hung before when the others suffice. One
 * that was silent may be tried, and is given up soon after the others are over, so that a region that works again gets
 * its share of what is written. A task that is given up has its signal aborted, and the fate of what it wrote is
 * unknown.
 *
 * @throws the reason of `signal` when the caller aborts.
 */
export async function runTasks<T>(
  tasks: readonly Task<T>[],
  { enough, limitMs = LIMIT_MS_DEFAULT, isGood, isAnswered = true, tries = false }: Patience<T>,
  { clock, signal, breaker }: AskContext,
): Promise<Outcome<T>[]> {
  signal.throwIfAborted();
  const isOpen = tasks.map(({ store }) => breaker.isOpen(store.region.name));
  const suffices = isOpen.filter((open) => !open).length >= enough;
  const awaited = [...tasks.keys()].filter((index) => !suffices || !isOpen[index]);
  const outcomes: (Outcome<T> | undefined)[] = Array.from({ length: tasks.length });
  const spares = new Set(isGood ? awaited.slice(enough) : []);
  const leftOut = [...tasks.keys()].filter((index) => !awaited.includes(index));
  const tried = leftOut.filter((index) => tries && breaker.shouldTry(tasks[index]!.store.region.name));
  const startedMs = clock.now();
  const done = Promise.withResolvers<void>();
  const stops = tasks.map(() => new AbortController());
  const giveUp = (): void => {
    for (const [index, { store }] of tasks.entries()) {
      if (outcomes[index] || spares.has(index)) continue;
      if (awaited.includes(index)) breaker.gaveUp(store.region.name);
      const isLeftOut = !awaited.includes(index) && !tried.includes(index);
      outcomes[index] = { store, error: silent(store, isLeftOut ? 0 : Math.round(clock.now() - startedMs)) };
      stops[index]!.abort(new DOMException("given up", "AbortError"));
    }
    done.resolve();
  };
  const onAbort = (): void => {
    for (const stop of stops) stop.abort(signal.reason);
    done.reject(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const cancels = limitMs === Number.POSITIVE_INFINITY ? [] : [clock.after(limitMs, giveUp)];
  const isOver = (): boolean => awaited.every((index) => outcomes[index] !== undefined || spares.has(index));
  const endTries = (): void => {
    if (tried.every((index) => outcomes[index])) return giveUp();
    cancels.push(clock.after(Math.min(TRY_GRACE_MS_MAX, Math.max(TRY_GRACE_MS_MIN, clock.now() - startedMs)), giveUp));
  };
  const settle = (index: number, outcome: Outcome<T>): void => {
    if (outcomes[index]) return;
    outcomes[index] = outcome;
    if (!outcome.error && isAnswered) breaker.answered(outcome.store.region.name);
    if (outcome.error && asksForLess(outcome.error)) breaker.refused(outcome.store.region.name);
    if (outcome.error || isGood?.(outcome.value) === false) startSpares();
    if (isOver()) endTries();
    else if (outcome.error === undefined && outcomes.filter((one) => one && !one.error).length === enough) {
      cancels.push(clock.after(graceMs(clock.now() - startedMs), giveUp));
    }
  };
  const start = (index: number): void => {
    const { store, run } = tasks[index]!;
    run(stops[index]!.signal).then(
      (value) => settle(index, { store, value }),
      (error: unknown) => settle(index, { store, error: toAgaroseError(error, "SOURCE_FAILED") }),
    );
  };
  const startSpares = (): void => {
    const late = [...spares];
    spares.clear();
    for (const index of late) start(index);
  };
  for (const index of [...awaited, ...tried]) if (!spares.has(index)) start(index);
  if (spares.size > 0) cancels.push(clock.after(SPARES_MS, startSpares));
  if (isOver()) endTries();
  try {
    await done.promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    for (const cancel of cancels) cancel();
  }
  return outcomes.filter((outcome) => outcome !== undefined);
}

/** `runTasks` with the same action in every region of `stores`. */
export function askRegions<T>(
  stores: readonly Store[],
  action: (store: Store, signal: AbortSignal) => Promise<T>,
  patience: Patience<T>,
  context: AskContext,
): Promise<Outcome<T>[]> {
  return runTasks(
    stores.map((store) => ({ store, run: (signal: AbortSignal) => action(store, signal) })),
    patience,
    context,
  );
}

/** Whether a store asks for fewer requests, which it does by either status. */
function asksForLess({ details: { status } }: AgaroseError): boolean {
  return status === 503 || status === 429;
}

/** Whether a store refused a conditional request because its condition does not hold. */
export function isConditionFailed(error: unknown): boolean {
  const status = (error as AgaroseError | undefined)?.details?.["status"];
  // 409: a conditional request to the same name was under way. 404: If-Match, and nothing is there.
  return status === 412 || status === 409 || status === 404;
}

function silent({ region: { name } }: Store, ms: number): AgaroseError {
  const what = ms === 0 ? "did not answer shortly before" : `did not answer within ${ms} ms`;
  return new AgaroseError("SOURCE_FAILED", `region ${name} ${what}: check it with \`agarose doctor\``, {
    region: name,
    silentMs: ms,
  });
}
