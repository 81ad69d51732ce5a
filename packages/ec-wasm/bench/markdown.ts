/** The report as the table of docs/internals/benchmarks.md. */
import type { CodecReport, CodecResult } from "./index.ts";

const MIB = 1 << 20;

/** One row per implementation and runtime, one column of median MB/s per task. */
export function toMarkdown(report: CodecReport): string {
  const tasks = [...new Set(report.results.map(title))];
  const rows = Map.groupBy(report.results, ({ implementation, runtime }) => `${implementation} | ${shorten(runtime)}`);
  const table = [
    `| implementation | runtime | ${tasks.join(" | ")} |`,
    `| --- | --- | ${tasks.map(() => "---:").join(" | ")} |`,
    ...[...rows].map(([name, results]) => `| ${name} | ${tasks.map((task) => megabytes(results, task)).join(" | ")} |`),
  ];
  const skipped = report.skipped.map(({ implementation, reason }) => `Not measured: ${implementation} ${reason}.`);
  return [table.join("\n"), ...skipped].join("\n\n");
}

function title({ op, k, m, bytes, lost }: CodecResult): string {
  return `${op === "encode" ? "encode" : `lose ${lost}`}, RS(${k},${m}), ${bytes / MIB} MiB`;
}

function megabytes(results: readonly CodecResult[], task: string): string {
  return results.find((result) => title(result) === task)?.mbPerSecond.toFixed(0) ?? "";
}

/** Of a version, the first number is enough. */
function shorten(runtime: string): string {
  return runtime.replace(/(\d+)\.[\d.]+/, "$1");
}
