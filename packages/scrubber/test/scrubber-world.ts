/** The example's Worker as Wrangler bundles it, in workerd, with six buckets and objects in them. For tests. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { Miniflare } from "miniflare";
import { expect } from "vitest";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { AwsClient } from "aws4fetch";
import type { Store } from "@agarose/storage/buckets/store";
import { parseConfig } from "@agarose/storage/config/config";
import { startS3Endpoint, startVersitygw } from "@agarose/dev-world/s3-endpoint";
import { FetchStore } from "../src/fetch-store.ts";
import type { ScrubberOptions } from "../src/options.ts";
import type { WalkStarter } from "../src/walks.ts";

type Instance = Awaited<ReturnType<WalkStarter["get"]>>;
interface Workflow extends Pick<WalkStarter, "create"> {
  get(id: string): Promise<Instance & { terminate(): Promise<void> }>;
}
import type { EndedWalk, Progress } from "../src/ledger.ts";

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

/** How a world is, where it is not that of the example with the embedded S3 endpoint. */
export interface WorldOptions {
  /** Options of `createScrubber`. */
  readonly options?: ScrubberOptions;
  /** The server of the buckets. Faults need the embedded endpoint. */
  readonly buckets?: "embedded" | "versitygw" | { readonly url: string; close(): Promise<void> };
  /** How many of the regions there are. Default: six, for 4+2; with three, 2+1. */
  readonly regions?: 3 | 6;
  /** Steps after which the runtime ends a Workflow. */
  readonly stepLimit?: number;
}

/** Starts buckets and the Worker. */
export async function startScrubberWorld(world: WorldOptions = {}) {
  const { options, buckets = "embedded", regions = 6, stepLimit } = world;
  const faults = new Map<string, Fault>();
  const fired = new Map<string, number>();
  const owned = {
    accessKeyId: SECRETS.AWS_ACCESS_KEY_ID,
    secretAccessKey: SECRETS.AWS_SECRET_ACCESS_KEY,
    buckets: REGIONS,
  };
  const startEmbedded = () =>
    startS3Endpoint({
      ...owned,
      intercept(request, response) {
        const [, region = ""] = (request.url ?? "").split(/[/?]/);
        const isAnswered = faults.get(region)?.(request, response) ?? false;
        if (isAnswered) fired.set(region, (fired.get(region) ?? 0) + 1);
        return isAnswered;
      },
    });
  const endpoint =
    typeof buckets === "object" ? buckets : await (buckets === "versitygw" ? startVersitygw(owned) : startEmbedded());
  await mkdir(BUILDS, { recursive: true });
  const folder = await mkdtemp(join(BUILDS, "scrubber-"));
  await cp(EXAMPLE, folder, { recursive: true });
  const entry = join(folder, "scrubber.ts");
  const source = await readFile(entry, "utf8");
  if (options)
    await writeFile(entry, source.replace(/(?<=createScrubber\(config, )\{[^}]*\}/, JSON.stringify(options)));
  if (stepLimit !== undefined) {
    const wrangler = join(folder, CONFIG);
    const limited = (await readFile(wrangler, "utf8")).replace(
      '"schedules"',
      `"limits": { "steps": ${stepLimit} }, "schedules"`,
    );
    await writeFile(wrangler, limited);
  }
  const config = {
    regions: REGIONS.slice(0, regions).map((name) => ({ name, provider: name, endpoint: endpoint.url, bucket: name })),
    code: { k: (regions * 2) / 3, m: regions / 3 },
    stripeBytes: 100_000,
    survive: { regions: regions / 3, providers: regions / 3 },
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
  const logs: string[] = [];
  const miniflare = new Miniflare({
    ...unstable_getMiniflareWorkerOptions(join(folder, CONFIG)).workerOptions,
    modules: await modulesOf(join(folder, "built")),
    modulesRoot: "",
    bindings: { ...SECRETS, ADMIN_TOKEN },
    handleRuntimeStdio(stdout: Readable, stderr: Readable) {
      for (const stream of [stdout, stderr]) createInterface({ input: stream }).on("line", (line) => logs.push(line));
    },
  });
  await miniflare.ready;
  const bindings = await miniflare.getBindings<{ SCRUB: Workflow }>();
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
    /** Does what `schedules` of the Workflow does, which Miniflare has not. Returns the id of the new Workflow. */
    async schedule(): Promise<string> {
      const id = crypto.randomUUID();
      await bindings.SCRUB.create({ id });
      return id;
    },
    /** Ends a Workflow as `wrangler workflows instances terminate` does. False when it is not there, or has ended. */
    async terminate(id: string): Promise<boolean> {
      const instance = await bindings.SCRUB.get(id).catch(() => undefined);
      if ((await instance?.status())?.status !== "running") return false;
      await instance!.terminate();
      return true;
    },
    /** The log of the Worker. */
    logs,
    async state(): Promise<{
      readonly current: { readonly id: string; readonly status: string; readonly error?: unknown } | null;
      readonly open: Progress | null;
      readonly last: EndedWalk | null;
    }> {
      const answer = await ask("/v1/scrub");
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
      return (await answer.json()) as never;
    },
    /** Has the schedule begin a walk, and continue it whenever its parent has ended, to the end of the walk. */
    async walkedBySchedule() {
      const startMs = Date.now();
      let [ranges, running, parents, errors] = [0, 0, 0, ""];
      for (;;) {
        const { open, current, last } = await this.state();
        ranges = Math.max(ranges, open?.ranges ?? 0);
        running = Math.max(running, open?.rangesRunning ?? 0);
        if (last && last.startMs >= startMs) return { ...last, ranges, running, parents, errors };
        if (parents === 0 || (open && ["complete", "errored"].includes(current!.status))) {
          errors += JSON.stringify(current?.error ?? "");
          await this.schedule();
          parents++;
        }
        await wait(200);
      }
    },
    /** Waits until a walk that began after `startMs` has reached its end. */
    async walked(startMs: number): Promise<EndedWalk> {
      let last: EndedWalk | null = null;
      await expect
        .poll(async () => {
          ({ last } = await this.state());
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

/** The output of Wrangler: a module, and the WebAssembly that it imports. */
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
