/**
 * `agarose put` of many small files, against the AWS SDK putting the same files into one bucket, 32 at a time. Each
 * request takes 40 ms on its way.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { findCli } from "@agarose/dev-world/client";
import type { Bench } from "../bench.ts";
import { describeMachine } from "../lib/machine.ts";
import { spread, summarize, table } from "../lib/statistics.ts";

const CLI = findCli();
const SERVER = fileURLToPath(new URL("s3-server.ts", import.meta.url));
const SDK = fileURLToPath(new URL("sdk-bulk.ts", import.meta.url));
const REGIONS = ["r0", "r1", "r2", "r3", "r4", "r5"];
const FILE_BYTES = 18_000;
const FILES = 2_000;
const FILES_QUICK = 200;
const DELAY_MS = 40;
const ROUNDS = 3;
const ENVIRONMENT = { ...process.env, AWS_ACCESS_KEY_ID: "bench", AWS_SECRET_ACCESS_KEY: "bench-secret" };
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

/** Each in a fresh process, against a server of its own over the folder `data`. */
async function measure(
  way: (typeof WAYS)[number],
  data: string,
  folder: string,
  files: string,
  count: number,
): Promise<Run> {
  const dir = join(data, way === WAYS[0] ? "sdk" : "agarose");
  await mkdir(dir, { recursive: true });
  const child = spawn(process.execPath, [SERVER, "embedded", dir, ...[...REGIONS, "plain"].map(bucketName)], {
    env: { ...ENVIRONMENT, BENCH_DELAY_MS: String(DELAY_MS) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: url } = (await lines.next()) as { value: string };
  const config = join(folder, "config.json");
  const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: url, bucket: bucketName(name) }));
  await writeFile(config, JSON.stringify({ regions }));
  const args =
    way === WAYS[0]
      ? [SDK, url, bucketName("plain"), files]
      : [CLI, "--config", config, "--json", "put", files, "--key", "bulk"];
  const startMs = performance.now();
  await run(args);
  const seconds = (performance.now() - startMs) / 1000;
  child.stdin.end();
  const { value: requests } = (await lines.next()) as { value: string };
  return { objectsPerSecond: count / seconds, requestsPerObject: Number(requests) / count };
}

async function run(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, args, { env: ENVIRONMENT, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
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

function bucketName(name: string): string {
  return `bench-${name}`;
}
