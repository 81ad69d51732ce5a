/**
 * Plays an hour of abuse, prints what came of it, and fails when the PoP did not bear it: when a good read failed, when
 * its isolate had more in use than a Worker may have, or when a read still holds memory after all clients have left.
 * The resident memory of workerd is printed only: the process holds ten more isolates, and buffers it does not give
 * back.
 *
 *     node packages/worker/test/abuse/soak.ts [hours]
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { ISOLATE_BYTES_MAX, playAbuse } from "./abuse.ts";

const hours = Number(process.argv[2] ?? 1);
// The buckets and the clients are in this process: where it is late, all of them are.
const lateness = monitorEventLoopDelay();
lateness.enable();
const report = await playAbuse(hours, (line) => process.stderr.write(`${line}\n`));
for (const { kind, events, outcomes } of report.kinds) {
  const ends = [...outcomes].map(([outcome, count]) => `${outcome}: ${count}`).join(", ");
  console.log(`${events} x ${kind.name} (${kind.clients} clients, ${kind.perSecond.toFixed(2)}/s each): ${ends}`);
}
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
const lateMs = [lateness.percentile(99), lateness.max].map((ns) => (ns / 1e6).toFixed(0));
const grownBytes = report.peakBytes - report.idleBytes;
console.log(`${report.seconds.toFixed(0)} s, ${report.periods} periods, good reads: ${report.goodReads}`);
console.log(`this process was late by ${lateMs[0]} ms (p99), ${lateMs[1]} ms (most)`);
console.log(`problems of the good reader: ${report.problems.length}`, report.problems.slice(0, 5));
console.log(
  `workerd: idle ${megabytes(report.idleBytes)}, at most ${megabytes(grownBytes)} above it, ` +
    `after the abuse ${megabytes(report.afterBytes - report.idleBytes)} above it`,
);
console.log(`the PoP's isolate had at most ${megabytes(report.isolateBytes)} in use`);
console.log(report.isolate);
process.exitCode =
  report.isolateBytes < ISOLATE_BYTES_MAX && report.problems.length === 0 && report.isolate.readsWithMemory === 0
    ? 0
    : 1;
