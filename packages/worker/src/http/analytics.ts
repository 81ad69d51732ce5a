/** Totals of all isolates: one data point per answer in Workers Analytics Engine, which SQL reads. Optional. */
import { log } from "../runtime/log.ts";

/** The part of Cloudflare's binding that is used. It returns before anything is written. */
export interface AnalyticsBinding {
  writeDataPoint(point: DataPoint): void;
}

/** As Analytics Engine stores it: the columns `index1`, `blob1` to `blob20` and `double1` to `double20`. */
export interface DataPoint {
  readonly indexes: readonly [string];
  readonly blobs: readonly string[];
  readonly doubles: readonly number[];
}

interface CountedAnswer {
  readonly pop: string;
  /** As `routeOf` names it: no key and nothing of the client is stored. */
  readonly route: string;
  readonly status: number;
  readonly headers: Headers;
  /** Where the request entered Cloudflare; undefined elsewhere. */
  readonly entry: string | undefined;
  /** Of the deployed Worker. */
  readonly version: string | undefined;
}

/** Writes an answer, where there is a binding. Never throws: monitoring must not fail what it monitors. */
export function countAnswer(binding: AnalyticsBinding | undefined, answer: CountedAnswer): void {
  if (!binding) return;
  const { pop, route, status, headers, entry = "", version = "" } = answer;
  const text = (name: string): string => headers.get(name) ?? "";
  const blobs = [route, String(status), text("x-agarose-error"), text("x-agarose-read"), entry, version];
  try {
    binding.writeDataPoint({ indexes: [pop], blobs, doubles: [Number(headers.get("content-length") ?? 0)] });
  } catch (error) {
    log("warn", "a data point was refused", { error });
  }
}
