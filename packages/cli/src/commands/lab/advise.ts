/** `agarose lab advise FILE`: which code, in which regions, with how much cache, before a byte is uploaded. */
import type { PlacementRegion } from "@agarose/core/format";
import { readJson } from "@agarose/dev-world/scenario-file";
import { advise, dataOfLog, judge, type Advice, type AdviceRequest, type Baseline } from "@agarose/solver/advisor";
import { chooseCodes, codesLine, type CodeChoice } from "@agarose/storage/layout/object-layout";
import { logLine, printResult, tableLines } from "../../ui/output.ts";
import { withProgress } from "../../ui/progress.ts";
import { readTrace, reportLines } from "../../lib/own-log.ts";
import type { Values } from "../../command.ts";
import type { adviseArgs } from "./index.ts";

const SHOWN_MAX = 20;
const NOTE =
  "* neither slower nor dearer than any other; avail. and durab. are nines: of the time in which an object can be " +
  "read, and of the probability that it is not lost within a year; CDN is one copy behind a CDN, whose cache is free";

/**
 * Runs `agarose lab advise FILE`. Rejects with FILE_UNREADABLE, SCENARIO_INVALID or REQUEST_INVALID for a file that
 * cannot be used.
 */
export async function adviseFor({ file, ...options }: Values<typeof adviseArgs>): Promise<void> {
  const prices = (await readJson(file)) as SizedRequest;
  const request = options.trace.length === 0 ? prices : { ...prices, data: await dataOf(options) };
  const advice = advise(request);
  const verdict = judge(request, advice);
  const sized = chooseCodes({ ...request, regions: request.regions.map((region) => placed(region, request)) });
  printResult(options, { verdict, data: request.data, advice, ...sized }, [
    ...linesOf(advice, verdict.oneCopy),
    codesLine(sized),
    `${verdict.use ? "use this" : "do not use this"}: ${verdict.why}`,
  ]);
}

/** The figures of an access log, which replace `data` of the file. */
async function dataOf({
  trace: logs,
  format,
  ...output
}: Omit<Values<typeof adviseArgs>, "file">): Promise<AdviceRequest["data"]> {
  const trace = await withProgress((show) => readTrace(logs, { format, isStrict: false, perSecond: 1 }, show), output);
  for (const line of reportLines(logs, trace)) logLine(line);
  const data = dataOfLog(trace);
  logLine(`taken as ${data.readsPerMonth} reads a month of ${data.objects} objects, Zipf exponent ${data.zipf}`);
  return data;
}

/** The request with the fields that only the codes by size use. */
type SizedRequest = AdviceRequest & Pick<CodeChoice, "connections" | "storageMax">;

/** A region as its whole audience sees it. */
function placed(
  { name, provider = name, latencyMs }: AdviceRequest["regions"][number],
  { pops }: AdviceRequest,
): PlacementRegion {
  const weights = pops.reduce((sum, { weight }) => sum + weight, 0);
  const meanMs = pops.reduce((sum, pop) => sum + (pop.weight / weights) * latencyMs[pop.name]!, 0);
  return { name, provider, latencyMs: meanMs };
}

function linesOf(advice: readonly Advice[], oneCopy: Baseline): string[] {
  const shown = advice.slice(0, SHOWN_MAX).map((one) => ({ ...one, mark: one.isEfficient ? "*" : "" }));
  const rows = [...shown, { ...oneCopy, mark: "" }].map((one) => [
    one.mark,
    one.m === 0 ? "CDN" : `${one.k}+${one.m}`,
    `${(100 * one.cacheShare).toFixed(0)}%`,
    one.meanMs.toFixed(1),
    one.p99Ms.toFixed(0),
    `${one.storageOverhead.toFixed(2)}x`,
    one.costPerMonth.toFixed(2),
    one.availabilityNines.toFixed(1),
    one.durabilityNines.toFixed(1),
    one.regions.join(" "),
  ]);
  const head = ["", "code", "cache", "mean ms", "p99 ms", "storage", "$/month", "avail.", "durab.", "regions"];
  return [...tableLines([head, ...rows], (column) => column < 9), NOTE];
}
