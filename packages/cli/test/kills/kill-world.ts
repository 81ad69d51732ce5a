/**
 * Three regions, each a versitygw of its own, and the command line as a process that can be killed in any request.
 */
import { spawn } from "node:child_process";
import { createHash, hash } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { acceptUnsigned, encodeKey, parseManifest, systemClock, toAgaroseError, type Manifest } from "@agarose/core";
import { startVersitygw, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { parseConfig, type Config } from "../../src/lib/config.ts";
import { loadCodec, loadEncoder } from "../../src/lib/context.ts";
import { Breaker } from "../../src/lib/objects/commit/ask-regions.ts";
import { listHistory } from "../../src/lib/objects/commit/history.ts";
import { getObject } from "../../src/lib/objects/get-object.ts";
import { readManifest } from "../../src/lib/objects/manifests.ts";
import { putObject, type PutResult } from "../../src/lib/objects/put-object.ts";
import { fileSource } from "../../src/lib/objects/upload/file-source.ts";
import { nodeSha256 } from "../../src/lib/objects/sha256.ts";
import { verifyObject, type ObjectVerdict } from "../../src/lib/objects/verify-object.ts";
import { S3Store } from "../../src/lib/store/s3-store.ts";
import { KillProxies, type KillPoint } from "./proxy.ts";

const CLI = fileURLToPath(new URL("../../bin/agarose.js", import.meta.url));
const REGIONS = ["r0", "r1", "r2"] as const;
const KEYS = { accessKeyId: "kills", secretAccessKey: "kills-secret" };
/** Keys that begin with this have a history. */
export const KEPT = "kept-";
/** How long their versions stay. */
export const KEEP_HOURS = 72;
/** Keys that begin with this expire. */
export const EXPIRING = "expiring-";
/** How old they may become. */
export const EXPIRE_HOURS = 24;
const bucketOf = (region: string): string => `bucket-${region}`;

/** How a process ended. */
export interface Run {
  readonly code: number | null;
  /** Whether it was killed after its first request and before its end. */
  readonly isKilled: boolean;
  readonly requests: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a reader got: the SHA-256 of the bytes, `absent`, or the code of an error. */
export type Seen = string;

export class KillWorld {
  readonly dir: string;
  readonly config: Config;
  readonly stores: readonly S3Store[];
  readonly #servers: readonly S3Endpoint[];
  readonly #signal = new AbortController().signal;
  #files = 0;

  private constructor(dir: string, servers: readonly S3Endpoint[]) {
    this.dir = dir;
    this.#servers = servers;
    this.config = parseConfig(configText(servers.map(({ url }) => url)), join(dir, "agarose.config.json"));
    const options = { credentials: KEYS, attempts: 3 };
    this.stores = this.config.regions.map((region) => new S3Store(region, options));
  }

  static async start(): Promise<KillWorld> {
    const dir = await mkdtemp(join(tmpdir(), "agarose-kills-"));
    const start = (region: string): Promise<S3Endpoint> =>
      startVersitygw({ ...KEYS, buckets: [bucketOf(region)], dir: join(dir, region) });
    return new KillWorld(dir, await Promise.all(REGIONS.map(start)));
  }

  /** Runs the command line as a process, killed at `point`. The region that `drains` gets no new chunks. */
  async run(args: readonly string[], point?: KillPoint, drains?: string): Promise<Run> {
    const proxies = new KillProxies(point);
    const urls = await Promise.all(this.#servers.map(({ url }) => proxies.open(url)));
    const config = await this.file(configText(urls, drains), ".json");
    const env = { PATH: process.env["PATH"], AWS_ACCESS_KEY_ID: KEYS.accessKeyId };
    // A start takes a third of the time from the second on.
    const cache = { NODE_COMPILE_CACHE: join(this.dir, "compiled") };
    const secret = { AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey };
    const child = spawn(process.execPath, [CLI, "--config", config, ...args], { env: { ...env, ...secret, ...cache } });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (text: Buffer) => (stdout += text.toString()));
    child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
    proxies.onKill = () => void child.kill("SIGKILL");
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
      child.on("close", (...ended) => resolve(ended)),
    );
    await proxies.close();
    return { code, isKilled: signal === "SIGKILL", requests: proxies.requests, stdout, stderr };
  }

  /** Stores bytes, by the code of `put` in this process. */
  async put(key: string, bytes: Uint8Array): Promise<PutResult> {
    const source = fileSource(await this.file(bytes));
    const object = { key, source, contentType: "text/plain", headers: {}, force: false };
    const { config, stores } = this;
    return putObject(object, { config, stores, encoder: loadEncoder, nowMs: Date.now, signal: this.#signal });
  }

  /** What readers see, each of whom asks another region first. */
  async read(key: string): Promise<Seen[]> {
    return Promise.all(
      this.stores.map(async (_, first) => {
        const stores = [...this.stores.slice(first), ...this.stores.slice(0, first)];
        try {
          const manifest = await readManifest(key, stores, this.#signal);
          const hasher = createHash("sha256");
          const context = { stores, codec: loadCodec, signal: this.#signal };
          await getObject(manifest, undefined, async (part) => hasher.update(part), context);
          return hasher.digest("hex");
        } catch (error) {
          const { code, message } = toAgaroseError(error);
          return code === "OBJECT_NOT_FOUND" ? "absent" : `${code}: ${message}`;
        }
      }),
    );
  }

  /** The SHA-256 of what each copy of the history of a key gives. */
  async readHistory(key: string): Promise<Seen[]> {
    const copies = await listHistory(key, this.stores.length, this.#writing());
    return Promise.all(
      [...new Map(copies.map((copy) => [copy.upload, copy])).values()].map(async ({ store, name }) => {
        const response = await store.get(name);
        const bytes = new Uint8Array(await new Response(response.body as BodyInit).arrayBuffer());
        const manifest = (await parseManifest(bytes, { key, trust: acceptUnsigned, sha256: nodeSha256 })) as Manifest;
        const hasher = createHash("sha256");
        const context = { stores: this.stores, codec: loadCodec, signal: this.#signal };
        await getObject(manifest, undefined, async (part) => hasher.update(part), context);
        return hasher.digest("hex");
      }),
    );
  }

  #writing() {
    const [stores, signal, clock] = [this.stores, this.#signal, systemClock];
    return { stores, signal, clock, breaker: new Breaker(clock) };
  }

  verify(key: string): Promise<ObjectVerdict> {
    return verifyObject(key, { stores: this.stores, signal: this.#signal });
  }

  /** Names of a bucket's objects. */
  async names(prefix: string): Promise<string[]> {
    const names: string[] = [];
    for (const store of this.stores) for await (const { name } of store.list(prefix)) names.push(name);
    return names;
  }

  /** Lets what is below `prefix` of a key be stored `hours` earlier than it was. */
  async age(prefix: "claims" | "garbage" | "history" | "manifests", key: string, hours: number): Promise<void> {
    const atS = Date.now() / 1000 - hours * 3600;
    for (const region of REGIONS) {
      const folder = join(this.dir, region, bucketOf(region), prefix);
      const entries = await readdir(folder, { recursive: true }).catch(() => []);
      const own = entries.filter((entry) => entry.startsWith(`${encodeKey(key)}@`));
      for (const entry of own) await utimes(join(folder, entry), atS, atS);
    }
  }

  /** Writes a file of its own and returns its path. */
  async file(content: Uint8Array | string, suffix = ""): Promise<string> {
    const path = join(this.dir, `file-${this.#files++}${suffix}`);
    await writeFile(path, content);
    return path;
  }

  async close(): Promise<void> {
    for (const store of this.stores) store.close();
    await Promise.all(this.#servers.map((server) => server.close()));
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** The SHA-256 of what a reader should see. */
export function seenAs(bytes: Uint8Array): Seen {
  return hash("sha256", bytes);
}

function configText(urls: readonly string[], drains?: string): string {
  const regions = REGIONS.map((name, index) => {
    return { name, provider: name, endpoint: urls[index], bucket: bucketOf(name), drain: name === drains };
  });
  return JSON.stringify({
    regions,
    code: { k: 2, m: 1 },
    stripeBytes: 64 * 1024,
    survive: { regions: 1, providers: 1 },
    keep: [{ prefix: KEPT, time: `${KEEP_HOURS}h` }],
    expire: [{ prefix: EXPIRING, time: `${EXPIRE_HOURS}h` }],
    unsigned: true,
  });
}
