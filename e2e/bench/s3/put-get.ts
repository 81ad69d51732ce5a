/**
 * `agarose put` and `get` of one large file, against the AWS SDK moving the same file to the same server in one piece.
 * No emulated network: what is measured is the work, on both sides the same disk and the same loopback interface.
 */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { findCli } from "@agarose/dev-world/client";
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import type { Bench, BenchOptions } from "../bench.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { cpuMs, peakResidentBytes } from "@agarose/dev-world/process-memory";
import { spread, summarize, table } from "@agarose/dev-world/statistics";
import { PLAIN_BUCKET, REGION_BUCKETS, regionsAt, runProgram, startBenchServer } from "./bench-server.ts";

const CLI = findCli();
const SDK = fileURLToPath(new URL("sdk-client.ts", import.meta.url));
const BYTES = 1_000_000_000;
const BYTES_QUICK = 50_000_000;
const ROUNDS = 3;

const STEPS = ["sdk put", "sdk put, 12/9", "agarose put", "sdk get", "agarose get"] as const;
type Step = (typeof STEPS)[number];
/** The baseline of each. */
const BASE: Partial<Record<Step, Step>> = { "agarose put": "sdk put, 12/9", "agarose get": "sdk get" };

interface Run {
  readonly seconds: number;
  readonly peakBytes: number;
  readonly cpuSeconds: number;
}

export const putGet: Bench = {
  name: "put-get",
  title: "`put` and `get` of a large file",
  async run(options) {
    const folder = await mkdtemp(join(tmpdir(), "agarose-bench-"));
    try {
      const bytes = options.quick ? BYTES_QUICK : BYTES;
      await requireSpace(folder, bytes);
      const file = join(folder, "file");
      const sha256 = await writeRandom(file, bytes);
      const servers = (await findVersitygw()) ? ["embedded", "versitygw"] : ["embedded"];
      const rows: string[][] = [];
      for (const server of servers) rows.push(...(await measureServer(server, folder, file, sha256, bytes, options)));
      return describe(rows, bytes, roundsOf(options), servers);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function measureServer(
  kind: string,
  folder: string,
  file: string,
  sha256: string,
  bytes: number,
  options: BenchOptions,
): Promise<string[][]> {
  const data = join(folder, kind);
  await mkdir(data);
  const server = await startBenchServer(kind, data);
  try {
    const config = join(folder, `${kind}.json`);
    await writeFile(config, JSON.stringify({ regions: regionsAt(server.url), code: { k: 9, m: 3 } }));
    const out = join(folder, "out");
    const commands: Record<Step, string[]> = {
      "sdk put": [SDK, "put", server.url, PLAIN_BUCKET, "file", file],
      "sdk put, 12/9": [SDK, "put-coded", server.url, REGION_BUCKETS.join(","), "sdk", file],
      "agarose put": [CLI, "--config", config, "--json", "put", file, "--key", "file", "--force"],
      "sdk get": [SDK, "get", server.url, PLAIN_BUCKET, "file", out],
      "agarose get": [CLI, "--config", config, "--json", "get", "file", out],
    };
    const runs = new Map(STEPS.map((step) => [step, [] as Run[]]));
    for (let round = 0; round < roundsOf(options); round++) {
      for (const step of STEPS) {
        const run = await measure(commands[step]);
        runs.get(step)!.push(run);
        options.progress(
          `${kind}, ${step}: ${run.seconds.toFixed(1)} s, ${run.cpuSeconds.toFixed(1)} s of CPU, ${(run.peakBytes / 1e6).toFixed(0)} MB`,
        );
        if (!step.endsWith("get")) continue;
        if ((await hashOf(out)) !== sha256) throw new Error(`${step} returned other bytes than were put`);
        await rm(out);
      }
    }
    const rates = (step: Step) => summarize(runs.get(step)!.map((run) => bytes / 1e6 / run.seconds));
    return STEPS.map((step) => {
      const base = BASE[step];
      const ratio = base ? (rates(step).median / rates(base).median).toFixed(2) : "";
      const cpu = summarize(runs.get(step)!.map(({ cpuSeconds }) => cpuSeconds)).median;
      const peak = Math.max(...runs.get(step)!.map(({ peakBytes }) => peakBytes));
      return [`${kind}: ${step}`, spread(rates(step), 0), ratio, cpu.toFixed(1), (peak / 1e6).toFixed(0)];
    });
  } finally {
    await server.close();
    await rm(data, { recursive: true, force: true });
  }
}

/** Runs a Node program to its end, watching how much memory it takes. */
async function measure(args: readonly string[]): Promise<Run> {
  const startMs = performance.now();
  let peakBytes = 0;
  let cpuSeconds = 0;
  let watch: NodeJS.Timeout | undefined;
  try {
    await runProgram(args, ({ pid }) => {
      // Neither ever falls, so the last look before the end is the one that counts.
      watch = setInterval(() => {
        const peak = peakResidentBytes(pid!);
        if (peak === undefined) return;
        peakBytes = peak;
        cpuSeconds = cpuMs(pid!) / 1000;
      }, 20);
    });
  } finally {
    clearInterval(watch);
  }
  return { seconds: (performance.now() - startMs) / 1000, peakBytes, cpuSeconds };
}

async function writeRandom(path: string, bytes: number): Promise<string> {
  const hash = createHash("sha256");
  async function* parts(): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      const part = randomBytes(Math.min(left, 4 * 1024 * 1024));
      hash.update(part);
      left -= part.length;
      yield part;
    }
  }
  await pipeline(Readable.from(parts()), createWriteStream(path));
  return hash.digest("hex");
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** The file, its chunks twice, the SDK's object (twice while it is replaced) and what is read back. */
async function requireSpace(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const needed = 8 * bytes;
  if (bavail * bsize < needed) {
    throw new Error(`${folder} has ${bavail * bsize} bytes free, ${needed} are needed: set TMPDIR to a larger disk`);
  }
}

const roundsOf = ({ quick }: BenchOptions): number => (quick ? 1 : ROUNDS);

function describe(rows: readonly string[][], bytes: number, rounds: number, servers: readonly string[]): string {
  return [
    `One file of ${bytes / 1e6} MB with 9+3 over six buckets of one S3 server in a process of its own, without emulated ` +
      "delays; `agarose` in a fresh process each time, alternating with a program that moves the same file with one " +
      "`PutObjectCommand` or `GetObjectCommand` of `@aws-sdk/client-s3` in its defaults. _12/9_ is as much as `agarose " +
      "put` uploads: twelve ninths of the file at once, two to each of the six buckets. MB/s are bytes of the file over " +
      `the whole run of the process, start included, median (quartiles) of ${rounds} rounds; the ratio is to the row of the ` +
      "SDK with the same bytes. CPU time is that of the program alone, median; peak is the largest resident set (VmHWM) of " +
      "any. `put --force` reads the file once, as for a new key, and uploads 12/9 of it; `get` checks the SHA-256 of every " +
      "chunk and of the whole. Client, server and disk share the cores.",
    ...(servers.includes("versitygw")
      ? []
      : ["versitygw was not installed, so only the embedded endpoint was measured."]),
    table(["server: program", "MB/s", "ratio", "CPU time, s", "peak RSS, MB"], rows),
    describeMachine(),
  ].join("\n\n");
}
