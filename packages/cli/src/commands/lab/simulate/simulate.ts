/** `agarose lab simulate FILE...`: compares caching policies on a scenario, or on the user's own access log. */
import { AgaroseError } from "@agarose/core";
import { simulate, withCacheFactor, type Scenario, type SimulationRow } from "@agarose/solver/simulator";
import type { Trace } from "@agarose/solver/traces";
import { loadScenario } from "@agarose/dev-world/scenario-file";
import { logLine, printResult, tableLines } from "../../../ui/output.ts";
import { withProgress } from "../../../ui/progress.ts";
import { formatOfLog, LOG_FACTORS, readTrace, reportLines, scenarioFor } from "../../../lib/own-log.ts";
import type { Values } from "../../../command.ts";
import type { simulateArgs } from "../index.ts";
import { adviseLines, simulateSizes, type CacheSizes } from "./cache-sizes.ts";

type Options = Values<typeof simulateArgs>;

/** Runs `agarose lab simulate FILE...`. Times are in milliseconds, sizes in bytes, costs in US dollars a month. */
export async function run(options: Options): Promise<void> {
  const { scenario, trace, isLogAlone } = await loadInput(options);
  const factors = options.cacheSizes ?? (isLogAlone ? LOG_FACTORS : undefined);
  // Every cache size plays all requests once more.
  const passes = 1 + (factors?.length ?? 0);
  const { results, sizes } = await withProgress(
    (show) => {
      const onProgress = (done: number): void => show("comparing policies", done / passes);
      const now = (): number => performance.now();
      const played = trace ? withCacheFactor(scenario, trace.share) : scenario;
      const rows = simulate(played, { now, onProgress, ...(trace ? { trace } : {}) });
      const bySize =
        factors &&
        simulateSizes(scenario, factors, trace, (done) =>
          show("comparing cache sizes", (1 + done * (passes - 1)) / passes),
        );
      return { results: rows, sizes: bySize };
    },
    { ...options, hint: hintOf(scenario, passes) },
  );
  const json = {
    results,
    ...(sizes ? { bySize: sizes } : {}),
    ...(trace ? { trace: { ...trace.report, share: trace.share } } : {}),
  };
  printResult(options, json, linesOf(scenario, results, sizes));
}

/** How to wait less. */
function hintOf({ runs }: Scenario, passes: number): string {
  const ways = [
    ...(runs > 1 ? [`--runs 1 plays 1 of ${runs} runs`] : []),
    ...(passes > 1 ? [`--cache-sizes 1 plays 2 passes instead of ${passes}`] : []),
  ];
  return ways.length > 0 ? ways.join(", ") : "fewer requests, objects or policies in the scenario take less";
}

interface Input {
  readonly scenario: Scenario;
  readonly trace: Trace | undefined;
  readonly isLogAlone: boolean;
}

/** A scenario, one with a log to replay in it, or a log alone. */
async function loadInput({ files, ...options }: Options): Promise<Input> {
  const [file] = files as [string];
  const isLog = file === "-" || options.format !== undefined || (await formatOfLog(file)) !== undefined;
  const isLogAlone = options.trace.length === 0 && isLog;
  if (isLogAlone) {
    const trace = await loadTrace(files, options, 1);
    return { scenario: scenarioFor(trace, options), trace, isLogAlone };
  }
  if (files.length > 1) {
    const message = `${file} is a scenario, and of those one is simulated: give its logs by --trace, got ${files.length} files`;
    throw new AgaroseError("USAGE", message, { files });
  }
  const scenario = await loadScenario(file, options);
  const trace =
    options.trace.length === 0 ? undefined : await loadTrace(options.trace, options, scenario.requests.perSecond);
  return { scenario, trace, isLogAlone };
}

async function loadTrace(
  files: readonly string[],
  { format, strict, readsMax, ...output }: Omit<Options, "files">,
  perSecond: number,
): Promise<Trace> {
  const options = { format, isStrict: strict ?? false, perSecond, ...(readsMax === undefined ? {} : { readsMax }) };
  const trace = await withProgress((show) => readTrace(files, options, show), output);
  for (const line of reportLines(files, trace)) logLine(line);
  return trace;
}

function linesOf(scenario: Scenario, rows: readonly SimulationRow[], sizes: CacheSizes | undefined): string[] {
  return [...tableOf(scenario, rows), ...(sizes ? adviseLines(sizes) : [])];
}

/** Column title, and what it shows. */
const COLUMNS: readonly [string, (row: SimulationRow) => string][] = [
  ["policy", (row) => row.name],
  ["pop", (row) => row.pop],
  ["mean ms", (row) => row.meanMs.toFixed(1)],
  ["p50", (row) => row.p50Ms.toFixed(0)],
  ["p95", (row) => row.p95Ms.toFixed(0)],
  ["p99", (row) => row.p99Ms.toFixed(0)],
  ["hit", (row) => percent(row.hitRatio)],
  ["full hit", (row) => percent(row.fullHitRatio)],
  ["chunk hit", (row) => percent(row.chunkHitRatio)],
  ["req/read", (row) => row.requestsPerRead.toFixed(2)],
  ["writes", (row) => row.writes.toFixed(0)],
  ["solve ms", (row) => row.solveMs.toFixed(3)],
  ["loss", (row) => (row.lossPercent === undefined ? "-" : `${row.lossPercent.toFixed(1)}%`)],
];

/** One line per system and PoP; with several PoPs the line of all of them comes last. */
export function tableOf(scenario: Scenario, rows: readonly SimulationRow[]): string[] {
  const shown = scenario.pops.length === 1 ? rows.filter((row) => row.pop === "all") : rows;
  // Loss is measured against an oracle, which logs do not have.
  const columns = COLUMNS.filter(([name]) => name !== "loss" || shown.some((row) => row.lossPercent !== undefined));
  const cells = [columns.map(([title]) => title), ...shown.map((row) => columns.map(([, show]) => show(row)))];
  const table = tableLines(cells, (column) => column > 0);
  return [`${scenario.name}: ${scenario.about}; ${cadenceOf(scenario)}`, ...table, ...rows.flatMap(notesOf)];
}

function cadenceOf({ decide, exchangeSeconds, periodSeconds }: Scenario): string {
  if (decide === "request") return "caches change at each request";
  return `caches change every ${Math.min(exchangeSeconds, periodSeconds)} s, and KV is written every ${periodSeconds} s`;
}

function notesOf({ name, pop, failedReads, messages = 0 }: SimulationRow): string[] {
  if (pop !== "all") return [];
  const notes: string[] = [];
  if (failedReads > 0) notes.push(`${name}: ${failedReads} reads could not be completed`);
  if (messages > 0) notes.push(`${name}: ${messages.toFixed(0)} messages between PoPs`);
  return notes;
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)}%`;
}
