/**
 * `agarose put` of many small files, against the AWS SDK putting the same files into one bucket, 32 at a time. Each
 * request takes 40 ms on its way.
 */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findCli } from "@agarose/dev-world/client";
import type { Bench } from "../bench.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { spread, summarize, table } from "@agarose/dev-world/statistics";
import { PLAIN_BUCKET, regionsAt, runProgram, startBenchServer } from "./bench-server.ts";

const CLI = findCli();
const SDK = fileURLToPath(new URL("sdk-bulk.ts", import.meta.url));
const FILE_BYTES = 18_000;
const FILES = 2_000;
const FILES_QUICK = 200;
const DELAY_MS = 40;
const ROUNDS = 3;
const WAYS = ["aws-sdk, 32 at a time", "agarose put", "agarose put, unchanged"] as const;

interface Run {
  readonly objectsPerSecond: number;
  readonly requestsPerObject: number;
}

export const bulk: Bench = {
  name: "bulk",
  title: "`put` of many small files",
  async run({ quick, progress }) {
    const folder = await mkdtemp(join(tmpdir(), "agarose-bench-"));
    const count = quick ? FILES_QUICK : FILES;
    try {
      const files = join(folder, "files");
      await mkdir(files);
      for (let file = 0; file < count; file++) await writeFile(join(files, `${file}.bin`), randomBytes(FILE_BYTES));
      const runs = new Map(WAYS.map((way) => [way, [] as Run[]]));
      for (let round = 0; round < (quick ? 1 : ROUNDS); round++) {
        const data = join(folder, `data-${round}`);
        await mkdir(data);
        for (const way of WAYS) {
          const own = await measure(way, data, folder, files, count);
          runs.get(way)!.push(own);
          progress(
            `${way}: ${own.objectsPerSecond.toFixed(0)} objects/s, ${own.requestsPerObject.toFixed(1)} requests`,
          );
        }
        await rm(data, { recursive: true, force: true });
      }
      return describe(runs, count);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** Each in a fresh process, against its own server over the folder `data`. */
async function measure(
  way: (typeof WAYS)[number],
  data: string,
  folder: string,
  files: string,
  count: number,
): Promise<Run> {
  const dir = join(data, way === WAYS[0] ? "sdk" : "agarose");
  await mkdir(dir, { recursive: true });
  const server = await startBenchServer("embedded", dir, DELAY_MS);
  const config = join(folder, "config.json");
  await writeFile(config, JSON.stringify({ regions: regionsAt(server.url) }));
  const args =
    way === WAYS[0]
      ? [SDK, server.url, PLAIN_BUCKET, files]
      : [CLI, "--config", config, "--json", "put", files, "--key", "bulk"];
  const startMs = performance.now();
  await runProgram(args);
  const seconds = (performance.now() - startMs) / 1000;
  const requests = await server.close();
  return { objectsPerSecond: count / seconds, requestsPerObject: requests / count };
}

function describe(runs: ReadonlyMap<string, readonly Run[]>, count: number): string {
  const median = (way: string): number =>
    summarize(runs.get(way)!.map(({ objectsPerSecond }) => objectsPerSecond)).median;
  const base = median(WAYS[0]);
  const rows = [...runs].map(([way, own]) => [
    way,
    spread(summarize(own.map(({ objectsPerSecond }) => objectsPerSecond)), 0),
    (median(way) / base).toFixed(2),
    own.at(-1)!.requestsPerObject.toFixed(1),
  ]);
  return [
    `${count} files of ${FILE_BYTES / 1000} kB, \`code\` by size over six buckets of one embedded S3 server in a process ` +
      `of its own, which holds each request back for ${DELAY_MS} ms; fresh processes, alternating, median (quartiles) of ` +
      `${runs.get(WAYS[0])!.length} rounds. The SDK puts each file once into one bucket, without copies, order or ` +
      "verification. Client and server share the cores.",
    table(["way", "objects/s", "of the SDK's", "requests per object"], rows),
    describeMachine(),
  ].join("\n\n");
}
