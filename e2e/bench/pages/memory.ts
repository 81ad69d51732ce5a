/** docs/explanation/performance.md: memory of Chromium while a page reads large files, beside one copy. */
import { randomBytes } from "node:crypto";
import { describeMachine } from "@agarose/dev-world/machine";
import type { LocalWorld } from "@agarose/dev-world/client";
import { descendants, peakResidentBytes, residentBytes } from "@agarose/dev-world/process-memory";
import { table } from "@agarose/dev-world/statistics";
import type { Bench } from "../bench.ts";
import type { AppPage } from "../../fixtures/app-page.ts";
import { chromiumVersion, startBrowser } from "../lib/browser.ts";
import { besideMegabytes, Contest, inContest, valuesOf } from "./contest.ts";

const FILE_BYTES = 50_000_000;
const LONG = "long";
const LONG_BYTES = 200_000_000;
/** The page then gives up what it still reads. */
const READ_MS = 20_000;
const ROUNDS = 3;

interface Reading {
  readonly name: string;
  readonly keys: readonly string[];
  /** Bytes per second that each read takes. */
  readonly pace: number;
}

const UNPACED = 1e12;
const FILES = Array.from({ length: 10 }, (_, index) => `file-${index}`);
const READINGS: readonly Reading[] = [
  { name: "10 reads", keys: FILES, pace: UNPACED },
  { name: "100 reads", keys: FILES.flatMap((key) => FILES.map(() => key)), pace: UNPACED },
  { name: "10 reads of 1 MB/s each", keys: FILES, pace: 1e6 },
  { name: "a read that is paused", keys: [LONG], pace: 1 },
];

export const memory: Bench = {
  name: "memory",
  page: "explanation/performance.md",
  title: "Memory of a page",
  async run({ quick, progress }) {
    const rounds = quick ? 1 : ROUNDS;
    const rows: string[][] = [];
    await inContest({ code: "auto" }, async (contest) => {
      const content = randomBytes(LONG_BYTES);
      const files = new Map(FILES.map((key) => [key, content.subarray(0, FILE_BYTES)]));
      await contest.put(files.set(LONG, content), contest.regions.slice(0, 1));
      await contest.throttle(0);
      for (const reading of READINGS) {
        const copies = contest.copies.slice(0, 1);
        const taken = await contest.takeTurns(rounds, [copies], async (page, [base]) => {
          let grown = 0;
          const bytes = await contest.megabytesDuring(async () => {
            grown = await grows(contest.world, page === contest.ours ? "ours" : "plain", base!, reading);
          });
          return { grown, bytes };
        });
        const cells = [besideMegabytes(...valuesOf(taken, "grown")), besideMegabytes(...valuesOf(taken, "bytes"))];
        progress(`${reading.name}: ${cells.join(", ")}`);
        rows.push([reading.name, ...cells]);
      }
    });
    return [
      `Medians of ${rounds} rounds, each in a browser of its own, on an unlimited line: by how much the resident memory of the`,
      `renderer grows at most, and the bytes that arrive. Files have ${FILE_BYTES / 1e6} MB, and that of the paused read has`,
      `${LONG_BYTES / 1e6} MB. The page reads at once, and gives up after ${READ_MS / 1000} s. The renderer has both the page and its`,
      "service worker, and also the bytes that the page has dropped, until V8 collects them.",
      "",
      table(["", "memory", "bytes"], rows),
      "",
      describeMachine(await chromiumVersion()),
    ].join("\n");
  },
};

/** Megabytes by which the renderers of a new browser grow at most while a page of it reads. */
async function grows(
  world: LocalWorld,
  who: "ours" | "plain",
  base: string,
  { name, keys, pace }: Reading,
): Promise<number> {
  const others = new Set(renderers());
  const browser = await startBrowser();
  try {
    const own = await Contest.open(world, browser);
    const before = renderers()
      .filter((pid) => !others.has(pid))
      .map((pid) => [pid, residentBytes(pid) ?? 0] as const);
    const urls = keys.map((key) => base + key);
    const read = await readAll(own[who], urls, pace);
    if (read === 0) throw new Error(`${name}: nothing was read`);
    const grown = before.map(([pid, bytes]) => Math.max(0, (peakResidentBytes(pid) ?? bytes) - bytes));
    return grown.reduce((sum, bytes) => sum + bytes, 0) / 1e6;
  } finally {
    await browser.close();
  }
}

/** The processes of Chromium that run pages. */
function renderers(): number[] {
  return descendants(process.pid, "--type=renderer");
}

/** Reads all of `urls` at once, each at `pace`, for a while. Returns the bytes that were read. */
function readAll(page: AppPage, urls: readonly string[], pace: number): Promise<number> {
  return page.evaluate(
    async ([all, rate, ms]) => {
      const stop = AbortSignal.timeout(ms);
      const startMs = performance.now();
      let total = 0;
      const read = async (url: string): Promise<void> => {
        const response = await fetch(url, { cache: "no-store", signal: stop });
        if (!response.ok) throw new Error(`${url}: ${response.status}`);
        let bytes = 0;
        for await (const part of response.body! as never as AsyncIterable<Uint8Array>) {
          bytes += part.length;
          total += part.length;
          const waitMs = Math.min((1000 * bytes) / rate, ms) - (performance.now() - startMs);
          if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
        }
      };
      const isStopped = (error: unknown): void => {
        if (!stop.aborted) throw error;
      };
      await Promise.all(all.map((url) => read(url).catch(isStopped)));
      return total;
    },
    [urls, pace, READ_MS] as const,
  );
}
