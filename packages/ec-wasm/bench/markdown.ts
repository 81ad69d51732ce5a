/** The report as the tables of docs/internals/benchmarks.md. */
import type { CodecReport, CodecResult } from "./index.ts";

const MIB = 1 << 20;
const HEADER = [
  "| implementation | runtime | median us | best us | MB/s | x crate in WASM | x klauspost AVX2 |",
  "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
];

export function toMarkdown(report: CodecReport): string {
  const byWork = Map.groupBy(report.results, ({ op, k, m, bytes, lost }) => JSON.stringify({ op, k, m, bytes, lost }));
  const tables = [...byWork.values()].map((results) => {
    const rows = results.map((result) => toRow(result, results));
    return [`**${title(results[0]!)}**`, "", ...HEADER, ...rows].join("\n");
  });
  const skipped = report.skipped.map(({ implementation, reason }) => `Not measured: ${implementation} ${reason}.`);
  return [...tables, ...skipped].join("\n\n");
}

function title({ op, k, m, bytes, lost }: CodecResult): string {
  const what = op === "encode" ? `Encode ${m} parity shards` : `Reconstruct ${lost} of ${k} data shards`;
  return `${what}, RS(${k},${m}), ${bytes / MIB} MiB`;
}

function toRow(result: CodecResult, all: readonly CodecResult[]): string {
  const times = (yardstick: string) => {
    const other = all.find(({ implementation }) => implementation === yardstick);
    return other ? (other.medianUs / result.medianUs).toFixed(2) : "";
  };
  const cells = [
    result.implementation,
    // Of a version, the first number is enough.
    result.runtime.replace(/(\d+)\.[\d.]+/, "$1"),
    threeDigits(result.medianUs),
    threeDigits(result.bestUs),
    result.mbPerSecond.toFixed(0),
    times("reed-solomon-erasure wasm"),
    times("klauspost avx2"),
  ];
  return `| ${cells.join(" | ")} |`;
}

function threeDigits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
