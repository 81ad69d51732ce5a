/** The example's Worker as Wrangler bundles it, in workerd, with six buckets and objects in them. For tests. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Miniflare } from "miniflare";
import { expect } from "vitest";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { AwsClient } from "aws4fetch";
import type { Store } from "@agarose/storage/buckets/store";
import { parseConfig } from "@agarose/storage/config/config";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { FetchStore } from "../src/fetch-store.ts";
import type { EndedWalk } from "../src/walks.ts";

const EXAMPLE = fileURLToPath(new URL("../example", import.meta.url));
/** Git ignores Wrangler's own folder, and what is in it finds the dependencies of this package. */
const BUILDS = fileURLToPath(new URL("../.wrangler", import.meta.url));
const WRANGLER = fileURLToPath(new URL("../bin/wrangler.js", import.meta.resolve("wrangler")));
const AGAROSE = fileURLToPath(new URL("../bin/agarose.js", import.meta.resolve("agarose")));
const CONFIG = "wrangler.scrubber.jsonc";
const SECRETS = { AWS_ACCESS_KEY_ID: "scrubber", AWS_SECRET_ACCESS_KEY: "a/secret+of=the-scrubber" };

export const REGIONS = ["frankfurt", "dublin", "virginia", "paulo", "tokyo", "sydney"];
export const ADMIN_TOKEN = "admin-token-of-16+";

/** Answers a request to a region in place of its bucket, or returns false. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;
export type ScrubberWorld = Awaited<ReturnType<typeof startScrubberWorld>>;

const run = promisify(execFile);

/** Starts buckets, and the Worker with `source` in place of the example's. */
export async function startScrubberWorld(source?: string) {
  const faults = new Map<string, Fault>();
  const fired = new Map<string, number>();
  const endpoint = await startS3Endpoint({
    accessKeyId: SECRETS.AWS_ACCESS_KEY_ID,
    secretAccessKey: SECRETS.AWS_SECRET_ACCESS_KEY,
    buckets: REGIONS,
    intercept(request, response) {
      const [, region = ""] = (request.url ?? "").split(/[/?]/);
      const isAnswered = faults.get(region)?.(request, response) ?? false;
      if (isAnswered) fired.set(region, (fired.get(region) ?? 0) + 1);
      return isAnswered;
    },
  });
  await mkdir(BUILDS, { recursive: true });
  const folder = await mkdtemp(join(BUILDS, "scrubber-"));
  await cp(EXAMPLE, folder, { recursive: true });
  if (source !== undefined) await writeFile(join(folder, "scrubber.ts"), source);
  const config = {
    regions: REGIONS.map((name) => ({ name, provider: name, endpoint: endpoint.url, bucket: name })),
    code: { k: 4, m: 2 },
    stripeBytes: 100_000,
    survive: { regions: 2, providers: 2 },
  };
  const client = new AwsClient({
    accessKeyId: SECRETS.AWS_ACCESS_KEY_ID,
    secretAccessKey: SECRETS.AWS_SECRET_ACCESS_KEY,
    service: "s3",
    region: "us-east-1",
  });
  const stores = parseConfig(JSON.stringify(config), CONFIG).regions.map((region) => new FetchStore(region, client));
  const configPath = join(folder, "agarose.config.json");
  await writeFile(configPath, JSON.stringify(config));
  const agarose = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, ...SECRETS };
    return (await run(process.execPath, [AGAROSE, "--config", configPath, ...args], { env })).stdout;
  };
  await run(process.execPath, [WRANGLER, "deploy", "--dry-run", "--outdir", "built", "-c", CONFIG], { cwd: folder });
  const miniflare = new Miniflare({
    ...unstable_getMiniflareWorkerOptions(join(folder, CONFIG)).workerOptions,
    modules: await modulesOf(join(folder, "built")),
    modulesRoot: "",
    bindings: { ...SECRETS, ADMIN_TOKEN },
    unsafeTriggerHandlers: true,
  });
  await miniflare.ready;
  const ask = (path: string, init: { method?: string; token?: string } = {}) =>
    miniflare.dispatchFetch(`http://scrubber.example${path}`, {
      method: init.method ?? "GET",
      headers: { authorization: `Bearer ${init.token ?? ADMIN_TOKEN}` },
    });

  return {
    faults,
    fired,
    agarose,
    ask,
    /** The bucket of a region. */
    store: (region: string): Store => stores.find((store) => store.region.name === region)!,
    /** Fires the Cron Trigger. */
    async cron(): Promise<void> {
      const worker = await miniflare.getWorker();
      expect((await worker.scheduled({})).outcome).toBe("ok");
    },
    /** Waits until a walk that began after `startMs` has reached its end. */
    async walked(startMs: number): Promise<EndedWalk> {
      let last: EndedWalk | null = null;
      await expect
        .poll(async () => {
          ({ last } = (await (await ask("/v1/scrub")).json()) as { last: EndedWalk | null });
          return last?.startMs ?? 0;
        })
        .toBeGreaterThanOrEqual(startMs);
      return last!;
    },
    /** Stores files of these lengths below `objects/`. */
    async put(lengths: readonly number[]): Promise<void> {
      const files = join(folder, "files");
      await mkdir(files, { recursive: true });
      for (const [i, length] of lengths.entries())
        await writeFile(join(files, `${i}.bin`), Buffer.alloc(length, i + 1));
      await agarose("sync", files, "objects/");
    },
    async close(): Promise<void> {
      await miniflare.dispose();
      await endpoint.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What Wrangler has built: a module, and the WebAssembly that it imports. */
async function modulesOf(folder: string) {
  const names = (await readdir(folder)).filter((name) => [".js", ".wasm"].includes(extname(name)));
  const modules = names.map(async (path) => {
    const contents = await readFile(join(folder, path));
    return extname(path) === ".js"
      ? { type: "ESModule" as const, path, contents: contents.toString() }
      : { type: "CompiledWasm" as const, path, contents: new Uint8Array(contents) };
  });
  // The first is the one that handles events.
  return (await Promise.all(modules)).toSorted((a, b) => a.type.localeCompare(b.type) * -1);
}
