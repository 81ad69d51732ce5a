/** A PoP on Node with buckets that are 15 ms away. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findCli } from "@agarose/dev-world/client";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { startPopProcess, type PopProcess } from "@agarose/pop/test";

const REGIONS = ["reg0", "reg1", "reg2", "reg3", "reg4", "reg5"];
/** A bucket beside the PoP would need no cache. */
const BUCKET_MS = 15;
const KEYS = { accessKeyId: "bench", secretAccessKey: "bench-secret" };
/** An isolate hands its counts on 2 s after the first. */
export const COUNTS_FLUSHED_MS = 2_500;
/** The configuration is looked at every 5 s. */
export const CONFIGURATION_MS = 5_500;

/** What to start. */
export interface NodePopOptions {
  /** Files to store below `bench/`. Each name begins with the length of its file. */
  readonly names: readonly string[];
  /** `MEMORY_BYTES` of the PoP. Default: its own. */
  readonly memoryBytes?: number;
}

/** A running PoP. */
export interface NodePop {
  readonly pop: PopProcess;
  readonly folder: string;
  /** Has the files. */
  readonly files: string;
  /** Writes files and stores them below `bench/`. */
  put(names: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Starts buckets and PoP, and stores the files. */
export async function startNodePop({ names, memoryBytes }: NodePopOptions): Promise<NodePop> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), "agarose-bench-"));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const s3 = await startS3Endpoint({
      ...KEYS,
      dir: join(folder, "s3"),
      buckets: REGIONS,
      intercept: ({ method }) => method === "GET" && sleep(BUCKET_MS, false),
    });
    closers.push(() => s3.close());
    const files = join(folder, "files");
    await mkdir(files);
    const config = join(folder, "agarose.config.json");
    const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: s3.url, bucket: name }));
    await writeFile(config, JSON.stringify({ regions, code: { k: 4, m: 2 } }));
    const env = { ...process.env, AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey };
    const put = async (written: readonly string[]): Promise<void> => {
      for (const name of written) await writeFile(join(files, name), randomBytes(Number.parseInt(name, 10)));
      const paths = written.map((name) => join(files, name));
      const args = [findCli(), "--config", config, "put", ...paths, "--prefix", "bench/"];
      await promisify(execFile)(process.execPath, args, { env });
    };
    await put(names);
    const variables = {
      POP: "bench",
      UNSIGNED: "true",
      REGIONS: JSON.stringify(REGIONS.map((name) => ({ name, url: `${s3.url}/${name}` }))),
      CACHE_BYTES: "100000000",
      MANIFEST_TTL_SECONDS: "3600",
      ...(memoryBytes !== undefined && { MEMORY_BYTES: String(memoryBytes) }),
    };
    const pop = await startPopProcess({ variables, folder: join(folder, "pop"), periodMs: 0 }, () => {});
    closers.push(() => pop.kill());
    return { pop, folder, files, put, close };
  } catch (error) {
    await close();
    throw error;
  }
}
