/**
 * Regions, each its own versitygw, and the command line as a process that can be killed in any request.
 */
import { spawn } from "node:child_process";
import { createHash, hash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { toAgaroseError } from "@agarose/core";
import { acceptUnsigned, keyName, parseManifest, type Manifest } from "@agarose/core/format";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { startVersitygw, type S3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { parseConfig, type Config, type RegionConfig } from "@agarose/storage/config/config";
import { partsOf, type DeploymentParts } from "@agarose/storage/parts";
import { listHistory } from "@agarose/storage/commit/history";
import { getObject } from "@agarose/storage/objects/get-object";
import { readManifest } from "@agarose/storage/objects/manifests";
import { putObject, type PutResult } from "@agarose/storage/objects/put-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { nodeSha256 } from "@agarose/storage/objects/sha256";
import { verifyObject, type ObjectVerdict } from "@agarose/storage/objects/verify-object";
import { S3Store } from "@agarose/storage/buckets/s3-store";
import { KillProxies, type KillPoint } from "./proxy.ts";

const CLI = fileURLToPath(new URL("../../bin/agarose.js", import.meta.url));
const KEYS = { accessKeyId: "kills", secretAccessKey: "kills-secret" };
/** Keys that begin with this have a history. */
export const KEPT = "kept-";
/** How long their versions stay. */
export const KEEP_HOURS = 72;
/** Keys that begin with this expire. */
export const EXPIRING = "expiring-";
/** How old they may become. */
export const EXPIRE_HOURS = 24;
/** Keys that begin with this are encrypted. */
export const ENCRYPTED = "encrypted-";
const SECRETS = ["first", "second"] as const;
/** The configuration that the command line finds in its folder. */
export const CONFIG_FILE = "agarose.config.json";
const bucketOf = (region: string): string => `bucket-${region}`;
/** At the server of the first region. */
const ORIGIN_BUCKET = "plain";

/** Texts by the names of their files. */
export type Files = Readonly<Record<string, string>>;

/** A region that gets another name. */
export interface Renamed {
  readonly from: string;
  readonly to: string;
}

/** Changes to the configuration of one process. */
export interface ConfigChange {
  /** The names of its regions. Default: all. */
  readonly regions?: readonly string[];
  /** Default: none. */
  readonly renamed?: Renamed | undefined;
  /** The region that gets no new chunks. */
  readonly drains?: string;
  /** Whether the environment has the admin token of the PoP, which names `KillWorld.hot`. */
  readonly heats?: boolean;
  /** Whether it has an origin: `KillWorld.origin`. */
  readonly origin?: boolean;
  /** The secret that encrypts. Both decrypt. Default: the first. */
  readonly secret?: (typeof SECRETS)[number];
}

/** How a process ended. */
export interface Run {
  readonly code: number | null;
  /** Whether it was killed after its first request and before its end. */
  readonly isKilled: boolean;
  readonly requests: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The files that it was given, as it left them. */
  readonly files: Files;
}

/** The result of a read: the SHA-256 of the bytes, `absent`, or the code of an error. */
export type Seen = string;

/** Beyond this age, the writer of a claim counts as dead: two hours, with a margin. */
const DEAD_CLAIM_HOURS = 3;

export class KillWorld {
  readonly dir: string;
  readonly config: Config;
  readonly stores: readonly S3Store[];
  /** A bucket of plain objects. */
  readonly origin: S3Store;
  /** The keys that the PoP is asked for. */
  readonly hot: string[];
  readonly #servers: readonly S3Endpoint[];
  readonly #pop: TestPop;
  readonly #signal = new AbortController().signal;
  #files = 0;

  private constructor(dir: string, servers: readonly S3Endpoint[], pop: TestPop, renamed?: Renamed) {
    this.dir = dir;
    this.hot = pop.hot;
    this.#servers = servers;
    this.#pop = pop;
    const config = parseConfig(this.configText({ renamed }), join(dir, CONFIG_FILE));
    const withFormer = (region: RegionConfig): RegionConfig =>
      renamed && region.name === renamed.to ? { ...region, formerly: renamed.from } : region;
    this.config = { ...config, regions: config.regions.map(withFormer) };
    const options = { credentials: KEYS, attempts: 3 };
    this.stores = this.config.regions.map((region) => new S3Store(region, options));
    this.origin = new S3Store({ ...this.config.regions[0]!, name: "origin", bucket: ORIGIN_BUCKET }, options);
  }

  /** Starts one server for each of so many regions: `r0`, `r1` and so on. Its readers know one by both names. */
  static async start(count = 3, renamed?: Renamed): Promise<KillWorld> {
    const dir = await mkdtemp(join(tmpdir(), "agarose-kills-"));
    for (const name of SECRETS) await writeFile(join(dir, name), `aes256:${randomBytes(32).toString("base64")}`);
    const start = (region: string): Promise<S3Endpoint> =>
      startVersitygw({ ...KEYS, buckets: [bucketOf(region), ORIGIN_BUCKET], dir: join(dir, region) });
    const servers = await Promise.all(Array.from({ length: count }, (_, index) => start(`r${index}`)));
    return new KillWorld(dir, servers, await startPop(), renamed);
  }

  /** Runs the command line as a process, killed at `point`. */
  async run(args: readonly string[], point?: KillPoint, change?: ConfigChange): Promise<Run> {
    return this.runIn({ [CONFIG_FILE]: this.configText(change) }, args, point);
  }

  /** Runs it in a folder that has these files. */
  async runIn(files: Files, args: readonly string[], point?: KillPoint): Promise<Run> {
    const proxies = new KillProxies(point);
    const own = this.#servers.map(({ url }) => url);
    const proxied = await Promise.all(own.map((url) => proxies.open(url)));
    const folder = join(this.dir, `run-${this.#files++}`);
    await mkdir(folder);
    for (const [name, text] of Object.entries(files))
      await writeFile(join(folder, name), replaceAll(text, own, proxied));
    const env = { PATH: process.env["PATH"], AWS_ACCESS_KEY_ID: KEYS.accessKeyId };
    // A start takes a third of the time from the second on.
    const cache = { NODE_COMPILE_CACHE: join(this.dir, "compiled") };
    const secret = { AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey, AGAROSE_ADMIN_TOKEN: "the token of a test" };
    const child = spawn(process.execPath, [CLI, ...args], { cwd: folder, env: { ...env, ...secret, ...cache } });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (text: Buffer) => (stdout += text.toString()));
    child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
    proxies.onKill = () => void child.kill("SIGKILL");
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
      child.on("close", (...ended) => resolve(ended)),
    );
    await proxies.close();
    const left: Record<string, string> = {};
    for (const name of Object.keys(files)) {
      left[name] = replaceAll(await readFile(join(folder, name), "utf8"), proxied, own);
    }
    return { code, isKilled: signal === "SIGKILL", requests: proxies.requests, stdout, stderr, files: left };
  }

  /** Stores bytes, by the code of `put` in this process. */
  async put(key: string, bytes: Uint8Array): Promise<PutResult> {
    const source = fileSource(await this.file(bytes));
    const object = { key, source, contentType: "text/plain", headers: {}, force: false };
    return putObject(object, this.#parts());
  }

  /** Results of readers of some regions, each of whom starts with a different one. */
  async read(key: string, of: readonly S3Store[] = this.stores): Promise<Seen[]> {
    return Promise.all(
      of.map(async (_, first) => {
        const stores = [...of.slice(first), ...of.slice(0, first)];
        try {
          const parts = { ...this.#parts(), stores };
          const manifest = await readManifest(key, parts, { consistency: "eventual" });
          const hasher = createHash("sha256");
          await getObject(manifest, undefined, async (part) => hasher.update(part), parts);
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
    const copies = await listHistory(key, this.stores.length, this.#parts());
    return Promise.all(
      [...new Map(copies.map((copy) => [copy.upload, copy])).values()].map(async ({ store, name }) => {
        const response = await store.get(name);
        const bytes = new Uint8Array(await new Response(response.body as BodyInit).arrayBuffer());
        const manifest = (await parseManifest(bytes, { key, trust: acceptUnsigned, sha256: nodeSha256 })) as Manifest;
        const hasher = createHash("sha256");
        await getObject(manifest, undefined, async (part) => hasher.update(part), this.#parts());
        return hasher.digest("hex");
      }),
    );
  }

  #parts(): DeploymentParts {
    return partsOf({ config: this.config, stores: this.stores, signal: this.#signal });
  }

  verify(key: string): Promise<ObjectVerdict> {
    return verifyObject(key, this.#parts());
  }

  /** Names of objects in all buckets, or in that of one region. */
  async names(prefix: string, region?: string): Promise<string[]> {
    const names: string[] = [];
    const stores = this.stores.filter((store) => region === undefined || store.region.name === region);
    for (const store of stores) for await (const { name } of store.list(prefix)) names.push(name);
    return names;
  }

  /** Lets what is below `prefix` of a key be stored `hours` earlier than it was. */
  async age(prefix: "claims" | "garbage" | "history" | "manifests", key: string, hours: number): Promise<void> {
    const atS = Date.now() / 1000 - hours * 3600;
    for (const { region } of this.stores) {
      const folder = join(this.dir, region.formerly ?? region.name, region.bucket, prefix);
      const entries = await readdir(folder, { recursive: true }).catch(() => []);
      const own = entries.filter((entry) => entry.startsWith(keyName(key)));
      for (const entry of own) await utimes(join(folder, entry), atS, atS);
    }
  }

  /** Makes the claims to a key so old that a command which replaces one generation only no longer waits for them. */
  ageClaims(key: string): Promise<void> {
    return this.age("claims", key, DEAD_CLAIM_HOURS);
  }

  /** A configuration of the world's regions. */
  configText(change: ConfigChange = {}): string {
    const { regions: names, drains, renamed, heats = false, origin = false, secret = "first" } = change;
    const regions = this.#servers.flatMap(({ url }, index) => {
      const first = `r${index}`;
      const name = first === renamed?.from ? renamed.to : first;
      if (names && !names.includes(name)) return [];
      return { name, provider: first, endpoint: url, bucket: bucketOf(first), drain: name === drains };
    });
    const secrets = SECRETS.toSorted((a) => (a === secret ? -1 : 1));
    return JSON.stringify({
      regions,
      ...(origin && { origin: { endpoint: this.#servers[0]!.url, bucket: ORIGIN_BUCKET } }),
      ...(heats && { pops: [{ name: "pop", url: this.#pop.url }], hot: { storage: 1 } }),
      code: { k: 2, m: 1 },
      stripeBytes: 64 * 1024,
      survive: { regions: 1, providers: 1 },
      keep: [{ prefix: KEPT, time: `${KEEP_HOURS}h` }],
      expire: [{ prefix: EXPIRING, time: `${EXPIRE_HOURS}h` }],
      encryption: [{ prefix: ENCRYPTED, secrets: secrets.map((file) => ({ file: join(this.dir, file) })) }],
      unsigned: true,
    });
  }

  /** Writes its own file and returns its path. */
  async file(content: Uint8Array | string, suffix = ""): Promise<string> {
    const path = join(this.dir, `file-${this.#files++}${suffix}`);
    await writeFile(path, content);
    // Most files are older than a moment, and a put reads those once.
    const thenS = Date.now() / 1000 - 3_600;
    await utimes(path, thenS, thenS);
    return path;
  }

  async close(): Promise<void> {
    for (const store of [...this.stores, this.origin]) store.close();
    this.#pop.server.close();
    await Promise.all(this.#servers.map((server) => server.close()));
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** A server that says what a PoP is asked for. */
interface TestPop {
  readonly hot: string[];
  readonly server: Server;
  readonly url: string;
}

async function startPop(): Promise<TestPop> {
  const hot: string[] = [];
  const server = createServer((_request, response) => response.end(JSON.stringify(statusOf(hot))));
  return { hot, server, url: await listenLocally(server) };
}

/** A PoP's status for its operator: the third region is far. */
function statusOf(hot: readonly string[]): object {
  const region = (name: string, meanMs: number) => ({ name, down: false, slow: false, meanMs, sdMs: 1 });
  return {
    epoch: 1,
    policy: "exact",
    cache: { capacityBytes: 1, cachedBytes: 0, objects: [] },
    regions: [region("r0", 10), region("r1", 100), region("r2", 300)],
    lastPeriod: { at: 1, errors: [], popular: hot.map((key) => ({ key, popularity: 1 })) },
    isolate: { chunkCache: { hits: 0, misses: 0 } },
  };
}

/** The SHA-256 of what a reader should see. */
export function seenAs(bytes: Uint8Array): Seen {
  return hash("sha256", bytes);
}

function replaceAll(text: string, from: readonly string[], to: readonly string[]): string {
  return from.reduce((result, url, index) => result.replaceAll(url, to[index]!), text);
}
