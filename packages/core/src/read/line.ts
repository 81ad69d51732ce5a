/**
 * The line of a reader, which all of its requests share: how fast it is, and how much must be under way to keep it
 * busy. On a narrow line the bytes that are needed next come first only if little else is on it.
 *
 * Bytes under way are about rate times latency, as in a congestion window (Jacobson, "Congestion Avoidance and
 * Control", 1988, section 1).
 */
import { orUndefined } from "../async/coalesce.ts";
import { Limiter } from "../async/limiter.ts";
import type { Clock } from "../ports.ts";

/** A measurement of the rate covers at least this time. */
const SAMPLE_MS = 25;
/** So many measurements are kept. */
const SAMPLES_MAX = 8;
/** Under way before anything was measured: about what a line of 100 Mbit/s carries in a round trip of 80 ms. */
const START_BYTES = 1024 * 1024;
/** Under way at least: the block that is read, and the next one. */
const WINDOW_BYTES_MIN = 128 * 1024;
/** Under way for at least this time of the line, so that a source that is late once does not leave it idle. */
const RESERVE_MS = 100;
/** The rate of a line that was not measured, in bytes per millisecond: 5 Mbit/s. */
const RATE_UNKNOWN = 625;
/** Of a source that was not measured, in milliseconds. */
const ANSWER_UNKNOWN_MS = 50;
/** When so much has come of each request that flows, a source that was silent has missed its turn. */
const TURN_BYTES = 128 * 1024;
/** One part of a response may bring the end of a chunk and few bytes of the next, which have no pace yet. */
const PART_BYTES = 16 * 1024;
/** A request that has brought nothing for so long is late, however slowly the others flow. */
const SILENCE_MS_MAX = 5_000;
/** A source is slow when so much more has come of each other request. */
const SLOW = 4;
/** Others take so much longer than their bytes would behind all that is under way. */
const QUEUE_MARGIN = 1.25;
/**
 * How many bytes all reads together request ahead of their consumers. Browsers keep the whole body of every open GET in
 * memory, whether it is read or not, so that requests are all that can be bounded.
 */
const AHEAD_BYTES = 64 * 1024 * 1024;
/** How many whole stripes are in memory at a time. Large reads take turns. */
const STRIPES_MAX = 6;
/** A consumer that takes longer for a stripe pauses, and holds up no other read. */
const PAUSE_MS = 500;
/** Weight of the newest answer of a source. */
const GAIN = 0.2;

/** One request on the line. */
export interface LineRequest {
  /**
   * Records that `bytes` bytes have come.
   *
   * @param waitMs how long the request was held back here. Undefined if it continues a GET, so that the time to its
   *   first bytes is not that of its source.
   */
  received(bytes: number, waitMs: number | undefined): void;
  /**
   * Whether its source is at fault and not the line, so that it is worth to request `bytes` bytes of others instead,
   * which takes `ms` milliseconds on an idle line.
   */
  isOverdue(bytes: number, ms: number): boolean;
  /** Must be called once, when nothing more is awaited. */
  end(): void;
}

/** The activity of one source on the line. */
interface Traffic {
  /** How many bytes of its requests under way have not come yet. */
  awaited: number;
  /** How many bytes it has sent, … */
  sent: number;
  /** … and how many had come of all when it sent the last of them. */
  lastReceived: number;
}

/** Measurements of one line. Bytes are those of chunks; times are in milliseconds of `clock`. */
export class Line {
  readonly #clock: Clock;
  /** The rates while some request flowed, … */
  readonly #flow = new Samples();
  /** … and with the waits for sources, which count until something has flowed: the line is at least as fast. */
  readonly #busy = new Samples();
  /** By source, how long it takes to send its first byte, without what was ahead of it on the line. */
  readonly #answers = new Map<string, number>();
  readonly #sources = new Map<string | object, Traffic>();
  /** The sum of what has not come. */
  #awaited = 0;
  /** Of how many requests some bytes have come, and others have not. */
  #flowing = 0;
  /** How many bytes have come. */
  #received = 0;
  /** When the last of them came, or a request found the line idle. */
  #heardMs = 0;
  /** When bytes came last. Undefined until the first bytes of an idle line have come. */
  #lastMs: number | undefined;
  /** How many reads are under way. They share the line, and count themselves. */
  reads = 0;
  readonly #turns = new Limiter(STRIPES_MAX);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The rate in bytes per millisecond; undefined before it was measured. */
  get rate(): number | undefined {
    return this.#flow.rate ?? this.#busy.rate;
  }

  /** `rate` in megabits per second. */
  get mbit(): number | undefined {
    return this.rate && this.rate / 125;
  }

  /**
   * Records a request to `source` for `bytes` bytes.
   *
   * @param source names a region, or is a response that brings several chunks one after the other.
   */
  begin(source: string | object, bytes: number): LineRequest {
    const startMs = this.#clock.now();
    const isResponse = typeof source === "object";
    // It may be the last in turn.
    const ahead = isResponse ? this.#awaited : 0;
    const aheadMs = this.queueMs(0);
    if (this.#awaited === 0) {
      this.#heardMs = startMs;
      this.#lastMs = undefined;
    }
    const there = this.#await(source, bytes);
    const aheadThere = there.awaited;
    const { sent } = there;
    let rest = bytes;
    // Where it began, and since its first bytes, where these have come.
    let since = { ms: startMs, received: this.#received, flowing: 0, rest };
    return {
      received: (count, waitMs) => {
        const own = Math.min(count, rest);
        // The end of an empty body comes without a byte.
        const isFirst = own > 0 && rest === bytes;
        rest -= own;
        this.#await(source, -own);
        this.#carried(count);
        there.sent += count;
        there.lastReceived = this.#received;
        if (!isFirst) return;
        const ms = this.#clock.now();
        if (waitMs !== undefined && !isResponse) {
          const answerMs = Math.max(1, ms - startMs - waitMs - aheadMs);
          const before = this.#answers.get(source) ?? answerMs;
          // A longer one may have waited for the line.
          this.#answers.set(source, before + (answerMs > before ? GAIN : 1) * (answerMs - before));
        }
        since = { ms, received: this.#received, flowing: ++this.#flowing, rest };
      },
      isOverdue: (insteadBytes, insteadMs) => {
        const nowMs = this.#clock.now();
        const came = bytes - rest;
        if (came > (isResponse ? PART_BYTES : 0)) {
          const tookMs = nowMs - since.ms;
          const restMs = (rest / came) * tookMs;
          const others = this.#received - since.received - (since.rest - rest);
          const mostMs = 2 * insteadMs * (insteadBytes / bytes);
          // The line had time for far more than has come, so that a source which stops or drips is what it waits for.
          if (tookMs > mostMs + (SLOW * (others + insteadBytes)) / (this.rate ?? RATE_UNKNOWN)) return true;
          // A source that sends alone shows its own pace and not that of the line.
          if (others < came) return restMs > mostMs;
          return (
            SLOW * came * Math.max(since.flowing, this.#flowing) < others &&
            // The rest says nothing of a source that stopped just before the end.
            (tookMs > SILENCE_MS_MAX || restMs > 2 * insteadMs + QUEUE_MARGIN * this.queueMs(insteadBytes))
          );
        }
        const last = Math.max(since.received, there.lastReceived);
        const sending = [...this.#sources.values()].filter((one) => one.awaited && one.lastReceived > last);
        return (
          nowMs - startMs > SILENCE_MS_MAX ||
          (isResponse && this.#received === since.received) ||
          this.#awaited < 2 * bytes ||
          // Those who came later are served.
          there.sent - sent >= 2 * aheadThere ||
          this.#received - last >= Math.max(ahead, Math.max(1, sending.length, this.#flowing) * TURN_BYTES) ||
          nowMs - this.#heardMs >= Math.max(RESERVE_MS, TURN_BYTES / (this.rate ?? RATE_UNKNOWN))
        );
      },
      end: () => {
        if (rest < bytes) this.#flowing--;
        this.#await(source, -rest);
        rest = 0;
      },
    };
  }

  /** How long `bytes` more bytes take, behind all that is under way. */
  queueMs(bytes: number): number {
    return (this.#awaited + bytes) / (this.rate ?? RATE_UNKNOWN);
  }

  /** How many bytes one read should have under way to `sources`. */
  windowBytes(sources: readonly string[]): number {
    if (this.rate === undefined) return START_BYTES;
    return Math.max(WINDOW_BYTES_MIN, this.#share * Math.max(RESERVE_MS, 2 * this.#answerMs(sources)));
  }

  /** Calls `read` for a whole stripe in its turn, which lasts until its consumer has taken the stripe, or pauses. */
  inTurn<T>(read: () => Promise<T>, signal: AbortSignal, taken?: Promise<void>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const turn = async (): Promise<void> => {
      resolve(read());
      await promise;
      if (taken) await orUndefined(taken, PAUSE_MS, this.#clock, signal);
    };
    this.#turns.run(turn, signal).catch(reject);
    return promise;
  }

  /** How many bytes one read may request ahead of its consumer. */
  get aheadBytes(): number {
    return AHEAD_BYTES / this.reads;
  }

  /** Whether `bytes` bytes come within two round trips to `sources`, so that their order makes no difference. */
  isWide(bytes: number, sources: readonly string[]): boolean {
    return this.rate !== undefined && this.#share * 2 * this.#answerMs(sources) >= bytes;
  }

  /** The rate of one read. */
  get #share(): number {
    return (this.rate ?? RATE_UNKNOWN) / Math.max(1, this.reads);
  }

  /** The answer of the slowest one of `sources`. */
  #answerMs(sources: readonly string[]): number {
    return Math.max(...sources.map((source) => this.#answers.get(source) ?? ANSWER_UNKNOWN_MS));
  }

  /** Adds to what is awaited of a source. */
  #await(source: string | object, bytes: number): Traffic {
    const there = this.#sources.get(source) ?? { awaited: 0, sent: 0, lastReceived: 0 };
    there.awaited += bytes;
    this.#awaited += bytes;
    this.#sources.set(source, there);
    // A response ends with its read, and a region stays.
    if (there.awaited === 0 && typeof source === "object") this.#sources.delete(source);
    return there;
  }

  #carried(bytes: number): void {
    const nowMs = this.#clock.now();
    const last = this.#lastMs;
    this.#received += bytes;
    this.#heardMs = this.#lastMs = nowMs;
    // How long the first bytes behind a wait were on the line is not known.
    if (last === undefined) return;
    this.#busy.add(bytes, nowMs - last);
    if (this.#flowing > 0) this.#flow.add(bytes, nowMs - last);
  }
}

/** The newest rates, in bytes per millisecond. */
class Samples {
  readonly #rates: number[] = [];
  /** The measurement under way. */
  #bytes = 0;
  #ms = 0;

  /**
   * The second highest of the last eight: a line that waits for its sources seems slower than it is, and one that was
   * not read for a moment seems faster.
   */
  get rate(): number | undefined {
    const [first, second = first] = this.#rates.toSorted((a, b) => b - a);
    return second;
  }

  /** Counts bytes that came within so many milliseconds. */
  add(bytes: number, ms: number): void {
    this.#bytes += bytes;
    this.#ms += ms;
    if (this.#ms < SAMPLE_MS) return;
    this.#rates.push(this.#bytes / this.#ms);
    if (this.#rates.length > SAMPLES_MAX) this.#rates.shift();
    this.#bytes = this.#ms = 0;
  }
}
