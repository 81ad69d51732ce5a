/** A PoP on Node with six buckets on this machine that are 15 ms away. */
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

const BUCKET_MS = 15;
const REGIONS = ["reg0", "reg1", "reg2", "reg3", "reg4", "reg5"];
const KEYS = { accessKeyId: "bench", secretAccessKey: "bench-secret" };

/** Options of the process. */
export interface NodePopOptions {
  /** Files to store below `bench/`. Each name begins with the length of its file. */
  readonly names: readonly string[];
  /** `MEMORY_BYTES` of the PoP. Default: its own. */
  readonly memoryBytes?: number;
}

/** A running PoP. */
export interface NodePop {
  readonly pop: PopProcess;
  /** Is removed at the end. */
  readonly folder: string;
  /** Has the files of the objects. */
  readonly files: string;
  /** Writes files and stores them as 4+2 below `bench/`. */
  put(names: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Starts buckets and PoP, and stores the files. */
export async function startNodePop({ names, memoryBytes }: NodePopOptions): Promise<NodePop> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-bench-"));
  const closers: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    const files = join(folder, "files");
    await mkdir(files);
    const s3 = await startS3Endpoint({
      ...KEYS,
      dir: join(folder, "s3"),
      buckets: REGIONS,
      intercept: ({ method }) => method === "GET" && sleep(BUCKET_MS, false),
    });
    closers.push(() => s3.close());
    const config = join(folder, "agarose.config.json");
    const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: s3.url, bucket: name }));
    await writeFile(config, JSON.stringify({ regions, code: { k: 4, m: 2 } }));
    const env = { ...process.env, AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey };
    const put = async (stored: readonly string[]): Promise<void> => {
      for (const name of stored) await writeFile(join(files, name), randomBytes(Number.parseInt(name, 10)));
      const paths = stored.map((name) => join(files, name));
      const args = [findCli(), "--config", config, "put", ...paths, "--prefix", "bench/"];
      await promisify(execFile)(process.execPath, args, { env });
    };
    await put(names);
    const variables = {
      UNSIGNED: "true",
      REGIONS: JSON.stringify(REGIONS.map((name) => ({ name, url: `${s3.url}/${name}` }))),
      MANIFEST_TTL_SECONDS: "3600",
      POP: "bench",
      CACHE_BYTES: "100000000",
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
