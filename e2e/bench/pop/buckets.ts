/** Six buckets on this machine with objects in them, and the variables by which a PoP reads from there. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findCli } from "@agarose/dev-world/client";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";

const REGIONS = ["reg0", "reg1", "reg2", "reg3", "reg4", "reg5"];
const KEYS = { accessKeyId: "bench", secretAccessKey: "bench-secret" };
/** An isolate hands its counts on 2 s after the first. */
export const COUNTS_FLUSHED_MS = 2_500;
/** The configuration is looked at every 5 s. */
export const CONFIGURATION_MS = 5_500;

/** What to start. */
export interface BucketsOptions {
  readonly code: { readonly k: number; readonly m: number };
  /** How long a bucket holds a GET back. One beside the PoP would need no cache. Default: 0. */
  readonly delayMs?: number;
}

/** Running buckets. */
export interface Buckets {
  /** Is removed at the end. */
  readonly folder: string;
  /** Has the files of the objects. */
  readonly files: string;
  readonly variables: Readonly<Record<"UNSIGNED" | "REGIONS" | "MANIFEST_TTL_SECONDS", string>>;
  /** Writes files and stores them below `bench/`. Each name begins with the length of its file. */
  put(names: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Starts them. */
export async function startBuckets({ code, delayMs = 0 }: BucketsOptions): Promise<Buckets> {
  const folder = await mkdtemp(join(tmpdir(), "agarose-bench-"));
  const files = join(folder, "files");
  await mkdir(files);
  const s3 = await startS3Endpoint({
    ...KEYS,
    dir: join(folder, "s3"),
    buckets: REGIONS,
    ...(delayMs > 0 && { intercept: ({ method }) => method === "GET" && sleep(delayMs, false) }),
  });
  const config = join(folder, "agarose.config.json");
  const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: s3.url, bucket: name }));
  await writeFile(config, JSON.stringify({ regions, code }));
  const env = { ...process.env, AWS_ACCESS_KEY_ID: KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey };
  return {
    folder,
    files,
    variables: {
      UNSIGNED: "true",
      REGIONS: JSON.stringify(REGIONS.map((name) => ({ name, url: `${s3.url}/${name}` }))),
      MANIFEST_TTL_SECONDS: "3600",
    },
    async put(names) {
      for (const name of names) await writeFile(join(files, name), randomBytes(Number.parseInt(name, 10)));
      const paths = names.map((name) => join(files, name));
      const args = [findCli(), "--config", config, "put", ...paths, "--prefix", "bench/"];
      await promisify(execFile)(process.execPath, args, { env });
    },
    async close() {
      await s3.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Closes in the opposite order what `start` has added, also when it fails. */
export async function withClosers<T>(
  start: (closers: (() => unknown)[]) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const closers: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    return { ...(await start(closers)), close };
  } catch (error) {
    await close();
    throw error;
  }
}
