/**
 * A reporter of Playwright that writes one page for a run: how long the reads of each test took, and where each chunk
 * came from. It takes what the fixture `reads` attaches.
 *
 * @module
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { FullConfig, Reporter, TestCase, TestResult } from "@playwright/test/reporter";
import { quantile } from "@agarose/solver/simulator";
import { READS_ATTACHMENT, READS_TYPE } from "./attachments.ts";
import type { Read } from "./reads.ts";
import { runPage, type TestReads } from "./run-page.ts";

/** Options of the reporter. */
export interface ReadsReporterOptions {
  /** Where to write the page, below the folder of the configuration. Default: `agarose-reads/index.html`. */
  readonly outputFile?: string;
}

const OUTPUT_DEFAULT = join("agarose-reads", "index.html");

/** Writes the page when the run ends. A test that was retried has a row for each try. */
export default class ReadsReporter implements Reporter {
  readonly #output: string;
  readonly #tests: Promise<TestReads>[] = [];
  #folder = process.cwd();

  constructor({ outputFile = OUTPUT_DEFAULT }: ReadsReporterOptions = {}) {
    this.#output = outputFile;
  }

  printsToStdio(): boolean {
    return false;
  }

  onBegin({ configFile, rootDir }: FullConfig): void {
    this.#folder = configFile === undefined ? rootDir : dirname(configFile);
  }

  onTestEnd(test: TestCase, result: TestResult): void {
    const found = result.attachments.find(
      ({ name, contentType }) => name === READS_ATTACHMENT && contentType === READS_TYPE,
    );
    if (!found) return;
    const { status, retry } = result;
    const file = relative(this.#folder, test.location.file);
    // The first is the root of all suites, the second the project.
    const title = test.titlePath().slice(3).join(" › ");
    const about = { file, line: test.location.line, title, status, retry };
    this.#tests.push(readsOf(found).then((reads) => ({ ...about, reads, ...figuresOf(reads) })));
  }

  async onEnd(): Promise<void> {
    const path = resolve(this.#folder, this.#output);
    const tests = await Promise.all(this.#tests);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, runPage(tests));
    if (tests.length > 0) console.log(`\n  reads by test: ${relative(process.cwd(), path)}`);
  }
}

async function readsOf({ body, path }: TestResult["attachments"][number]): Promise<Read[]> {
  const text = body ? body.toString("utf8") : await readFile(path!, "utf8");
  return JSON.parse(text) as Read[];
}

function figuresOf(reads: readonly Read[]): Pick<TestReads, "meanMs" | "p99Ms"> {
  const times = reads.map(({ ms }) => ms).toSorted((a, b) => a - b);
  if (times.length === 0) return { meanMs: undefined, p99Ms: undefined };
  return { meanMs: times.reduce((sum, ms) => sum + ms, 0) / times.length, p99Ms: quantile(times, 0.99) };
}
