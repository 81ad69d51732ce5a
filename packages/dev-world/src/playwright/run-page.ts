/** The reads of all tests of a run, as one HTML document without scripts. Pure. */
import type { Read } from "./reads.ts";
import { escaped, LEGEND, readSection, STYLE } from "./waterfall.ts";

/** A try of a test that has read. */
export interface TestReads {
  readonly file: string;
  readonly line: number;
  readonly title: string;
  /** As Playwright says it, such as `passed`. */
  readonly status: string;
  /** 0 for the first try. */
  readonly retry: number;
  readonly reads: readonly Read[];
  /** Milliseconds; undefined without a read. */
  readonly meanMs: number | undefined;
  readonly p99Ms: number | undefined;
}

const COLUMNS = ["test", "result", "reads", "mean, ms", "p99, ms", "failed requests", "sources"];

/** A table of the tests, and below it the waterfalls of each. */
export function runPage(tests: readonly TestReads[]): string {
  const rows = tests.map(
    (test, i) =>
      `<tr>${cellsOf(test, i)
        .map((cell) => `<td>${cell}</td>`)
        .join("")}</tr>`,
  );
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Reads by test</title>
<style>${STYLE}
  table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: 4px 10px; text-align: left; border-bottom: 1px solid #d5d5cc }
  summary { cursor: pointer; margin-top: 1rem; font-weight: 600 }
</style>
<h1>Reads by test</h1>
${
  tests.length === 0
    ? "<p>No test has attached reads: use the fixture <code>reads</code>, and set <code>readTrace</code> to <code>on</code>.</p>"
    : `<table><tr>${COLUMNS.map((name) => `<th>${name}</th>`).join("")}</tr>${rows.join("\n")}</table>
<p>A bar is the request of one chunk: ${LEGEND}.</p>`
}
${tests.map(detailsOf).join("\n")}
</html>
`;
}

function cellsOf({ title, status, retry, reads, meanMs, p99Ms }: TestReads, index: number): string[] {
  const requests = reads.flatMap((read) => read.requests);
  const failed = requests.filter(({ outcome }) => outcome === "failed").length;
  const used = Map.groupBy(
    requests.filter(({ outcome }) => outcome === "used"),
    ({ source }) => source,
  );
  const sources = [...used].toSorted(([, a], [, b]) => b.length - a.length);
  return [
    `<a href="#test-${index}">${escaped(title)}</a>`,
    `${escaped(status)}${retry > 0 ? `, try ${retry + 1}` : ""}`,
    String(reads.length),
    meanMs?.toFixed(0) ?? "",
    p99Ms?.toFixed(0) ?? "",
    String(failed),
    sources.map(([source, chunks]) => `${escaped(source)} ${chunks.length}`).join(", "),
  ];
}

function detailsOf({ file, line, title, status, reads }: TestReads, index: number): string {
  const open = status === "passed" ? "" : " open";
  return `<details id="test-${index}"${open}><summary>${escaped(title)} (${escaped(file)}:${line})</summary>
${reads.map(readSection).join("\n")}</details>`;
}
