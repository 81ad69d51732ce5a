/**
 * Three regions behind one real S3 endpoint, and a folder for files.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import type { Store } from "../src/buckets/store.ts";
import { configOfFields } from "../src/config/config.ts";
import { Deployment } from "../src/deployment.ts";
import { openParts } from "../src/parts.ts";

/** The one key pair of the endpoint. */
export const KEYS = { accessKeyId: "storage", secretAccessKey: "storage-secret" };

/** Names of the regions, which are those of their buckets. */
export const REGIONS: readonly string[] = ["frankfurt", "dublin", "tokyo"];

/** Return value of `startThreeRegions`. */
export type ThreeRegions = Awaited<ReturnType<typeof startThreeRegions>>;

/** Starts the endpoint, which has the bucket `paris` as well. */
export async function startThreeRegions() {
  const down = new Set<string>();
  const refused = { requests: 0 };
  const clock = { aheadMs: 0 };
  const held: { until: ((method: string, url: string) => Promise<void>) | undefined } = { until: undefined };
  const nowMs = (): number => Date.now() + clock.aheadMs;
  const endpoint = await startS3Endpoint({
    ...KEYS,
    buckets: [...REGIONS, "paris"],
    nowMs,
    async intercept(request, response) {
      response.setHeader("date", new Date(nowMs()).toUTCString());
      await held.until?.(request.method!, request.url!);
      if (![...down].some((bucket) => request.url!.startsWith(`/${bucket}`))) return false;
      refused.requests++;
      response.writeHead(500).end();
      return true;
    },
  });
  const folder = await mkdtemp(join(tmpdir(), "agarose-storage-"));
  const credentialsFile = join(folder, "credentials");
  await writeFile(
    credentialsFile,
    `[default]\naws_access_key_id = ${KEYS.accessKeyId}\naws_secret_access_key = ${KEYS.secretAccessKey}\n`,
  );
  const regionsOf = (names: readonly string[]): object[] =>
    names.map((name) => ({ name, provider: name, endpoint: endpoint.url, bucket: name }));
  const config = {
    regions: regionsOf(REGIONS),
    code: { k: 2, m: 1 },
    stripeBytes: 10_000,
    survive: { regions: 1, providers: 1 },
    credentials: { credentialsFile, profile: "default" },
    unsigned: true,
  };
  return {
    config,
    folder,
    /** Buckets that answer 500, and how many requests have met one. */
    down,
    refused,
    regionsOf,
    /** Requests wait for what it returns. */
    held,
    /** Of the regions, before that of this machine. */
    clock,
    async close(): Promise<void> {
      await endpoint.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** The deployment of a configuration whose buckets list what `list` makes of their listings. */
export function listingOtherwise(
  config: object,
  list: (found: ReturnType<Store["list"]>) => ReturnType<Store["list"]>,
) {
  const parts = openParts(configOfFields(config, "test"), { attempts: 3 }, new AbortController().signal);
  const changed = (region: Store): Store =>
    new Proxy(region, {
      get(target, property) {
        if (property === "list") return (...args: Parameters<Store["list"]>) => list(target.list(...args));
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  return new Deployment({ ...parts, stores: parts.stores.map(changed) });
}

/** All items of a walk. */
export async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
