/** Playwright's `expect` with assertions of latency. */
import { AgaroseError, systemClock } from "@agarose/core";
import { keyOfPath } from "@agarose/core/http";
import {
  expect as base,
  type ExpectMatcherState,
  type ExpectMatcherUtils,
  type MatcherReturnType,
} from "@playwright/test";
import { readIn } from "../measure/page-reads.ts";
import { collect, describeReads, figureOf, slowestOf, type Sample, type Statistic, type TimedRead } from "./latency.ts";
import type { RepeatedRead } from "./reads.ts";
import { waterfallLines } from "./waterfall.ts";

/** The limit of a latency, and the number of reads. */
export type LatencyLimit = (
  | {
      /** Milliseconds. */
      readonly ms: number;
    }
  | {
      /**
       * The alternative that the same page reads in turn with the object, over the same links. `one-copy` is a whole
       * copy of the object in the region nearest to the client. No PoP and no cache is part of it.
       */
      readonly baseline: "one-copy";
      /** The limit as a multiple of the same figure of the baseline. */
      readonly ratio: number;
    }
) & {
  /** Reads of the object, and of the baseline. Default: 30. */
  readonly reads?: number;
  /** Milliseconds to collect them in. Default: 20,000, less than the time of a test. */
  readonly timeout?: number;
};

const READS_DEFAULT = 30;
const TIMEOUT_MS_DEFAULT = 20_000;
const PREFIX_DEFAULT = "/ec/";

/** Playwright's `expect` with assertions of latency, whose argument is the result of `reads.of`. */
export const expect = base.extend({
  /**
   * Reads until there are enough reads, and compares the 99th percentile of their durations (nearest rank) with the
   * limit. The p99 of up to 99 reads, so also of the default 30, is their maximum. A failed read is infinitely slow.
   */
  toHaveP99Below(this: ExpectMatcherState, read: RepeatedRead, limit: LatencyLimit) {
    return compare(this, "toHaveP99Below", "p99", read, limit);
  },
  /** As `toHaveP99Below`, with the median. */
  toHaveP50Below(this: ExpectMatcherState, read: RepeatedRead, limit: LatencyLimit) {
    return compare(this, "toHaveP50Below", "p50", read, limit);
  },
  /** As `toHaveP99Below`, with the mean. */
  toHaveMeanBelow(this: ExpectMatcherState, read: RepeatedRead, limit: LatencyLimit) {
    return compare(this, "toHaveMeanBelow", "mean", read, limit);
  },
});

async function compare(
  { utils, isNot }: { utils: ExpectMatcherUtils; isNot: boolean },
  name: string,
  statistic: Statistic,
  read: RepeatedRead,
  limit: LatencyLimit,
): Promise<MatcherReturnType> {
  const wanted = limit.reads ?? READS_DEFAULT;
  const timeoutMs = limit.timeout ?? TIMEOUT_MS_DEFAULT;
  const startMs = systemClock.now();
  const copy = "baseline" in limit ? await read.world.copy(await keyOf(read)) : undefined;
  await untilControlled(read, timeoutMs);
  const urls = [read.path, ...(copy ? [copy.url] : [])];
  const [own, baseline] = (await collect(
    urls.map((url) => timedRead(read, url)),
    { reads: wanted, timeoutMs: startMs + timeoutMs - systemClock.now(), clock: systemClock },
  )) as [Sample[], Sample[] | undefined];
  if (own.length < wanted || (baseline && baseline.length < wanted)) {
    const counts = [`${own.length} of ${wanted} reads`, ...(baseline ? [`${baseline.length} of the copy`] : [])];
    throw new AgaroseError(
      "READ_TIMEOUT",
      `${read.path}: ${counts.join(" and ")} in ${timeoutMs} ms are too few: ask for fewer \`reads\`, or allow more \`timeout\``,
      { wanted, reads: own.length, timeoutMs },
    );
  }
  const baselineMs = baseline && figureOf(baseline, statistic);
  if (baselineMs === Number.POSITIVE_INFINITY) {
    throw new AgaroseError(
      "SOURCE_FAILED",
      `the copy of ${read.path} in ${copy!.region} has no ${statistic} to compare with (${describeReads(baseline!, statistic)}): ` +
        "end the fault of its region, or give the limit in `ms`",
      { region: copy!.region },
    );
  }
  const limitMs = "ms" in limit ? limit.ms : limit.ratio * baselineMs!;
  const figureMs = figureOf(own, statistic);
  const trace = await traceOf(read, own);
  return {
    pass: figureMs < limitMs,
    name,
    expected: limitMs,
    actual: figureMs,
    message: () =>
      [
        utils.matcherHint(name, `reads of ${read.path}`, "limit", { isNot }),
        "",
        `Agarose:  ${describeReads(own, statistic)}`,
        ...(copy ? [`One copy: ${describeReads(baseline!, statistic)}, in ${copy.region}`] : []),
        `Limit:    ${isNot ? "not " : ""}below ${limitMs.toFixed(1)} ms${"ratio" in limit ? `, ${limit.ratio} of one copy` : ""}`,
        "",
        ...trace,
      ].join("\n"),
  };
}

/** The key that the page reads at the path, by the prefix of the app. */
async function keyOf({ page, path, world }: RepeatedRead): Promise<string> {
  const config = (await (await fetch(new URL("/agarose.json", world.app))).json()) as { prefix?: string };
  const { prefix = PREFIX_DEFAULT } = config;
  const { pathname } = new URL(path, page.url());
  if (pathname.startsWith(prefix)) return keyOfPath(pathname.slice(prefix.length));
  throw new AgaroseError("USAGE", `${path} is outside the paths of objects, which begin with ${prefix}`, {
    path,
    prefix,
  });
}

/** Without a service worker the reads are those of a PoP, and would say nothing of the app's. */
async function untilControlled({ page }: RepeatedRead, timeoutMs: number): Promise<void> {
  await page
    .waitForFunction(() => navigator.serviceWorker?.controller, undefined, { timeout: timeoutMs })
    .catch((error: Error) => {
      if (error.name !== "TimeoutError") throw error;
      const problem = `no service worker controls ${page.url()} after ${timeoutMs} ms, so there are 0 reads`;
      throw new AgaroseError("READ_TIMEOUT", `${problem}: go to a page that registers it first`, {}, error);
    });
}

function timedRead({ page }: RepeatedRead, url: string): TimedRead {
  return async (timeoutMs) => {
    const at = Date.now();
    try {
      const read = await readIn(page, url, timeoutMs);
      if (read.status === 200) return { ms: read.ms, at: read.at };
      return { ms: Number.POSITIVE_INFINITY, at: read.at, error: `${read.status} ${read.text}`.trim() };
    } catch (error) {
      if (!(error instanceof AgaroseError)) throw error;
      return { ms: Number.POSITIVE_INFINITY, at, error: error.message };
    }
  };
}

/** The service worker's report of the slowest read. Page and service worker have one clock. */
async function traceOf(read: RepeatedRead, samples: readonly Sample[]): Promise<string[]> {
  const slowest = slowestOf(samples);
  if (!slowest) return [];
  const key = await keyOf(read);
  const reads = (await read.reads.all()).filter((one) => one.key === key);
  const [trace] = reads.toSorted((a, b) => Math.abs(a.at - slowest.at) - Math.abs(b.at - slowest.at));
  return [`The slowest read took ${slowest.ms.toFixed(1)} ms:`, ...(trace ? waterfallLines(trace) : ["not reported"])];
}
