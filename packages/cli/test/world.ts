/**
 * Six regions on one embedded endpoint, each of which can be made to fail, and the commands to work on them.
 */
import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import { chunkName, manifestName } from "@agarose/core/format";
import { parseConfig, type Config } from "@agarose/storage/config/config";
import { partsOf, type DeploymentParts, type GivenParts } from "@agarose/storage/parts";
import { getObject } from "@agarose/storage/objects/get-object";
import { main } from "../src/main.ts";
import { readManifest, type Consistency } from "@agarose/storage/objects/manifests";
import { putObject, type PutObject, type PutResult } from "@agarose/storage/objects/put-object";
import { fileSource } from "@agarose/storage/upload/file-source";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import { S3Store } from "@agarose/storage/buckets/s3-store";
import { verifyObject, type ObjectVerdict } from "@agarose/storage/objects/verify-object";

export const REGIONS = ["frankfurt", "dublin", "virginia", "paulo", "tokyo", "sydney"] as const;
export const CREDENTIALS = { accessKeyId: "world", secretAccessKey: "world-secret" };

/** The fault of a region for requests that it must break; returns whether it answered the request itself. */
export type Fault = (request: IncomingMessage, response: ServerResponse, name: string) => boolean | Promise<boolean>;

export interface WorldOptions {
  /** The clock of the regions. Default: that of this machine. */
  readonly nowMs?: () => number;
  readonly k?: number;
  readonly m?: number;
  /** Whether codes go by size instead. */
  readonly auto?: boolean;
  readonly stripeBytes?: number;
  readonly survive?: { regions: number; providers: number };
}

export interface RunResult {
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export type World = Awaited<ReturnType<typeof startTestWorld>>;

export async function startTestWorld(options: WorldOptions = {}) {
  const { k = 4, m = 2, auto = false, stripeBytes = 1000, survive = { regions: 2, providers: 2 }, nowMs } = options;
  const dir = await mkdtemp(join(tmpdir(), "agarose-world-"));
  const faults = new Map<string, Fault>();
  /** How often each region's fault answered. */
  const fired = new Map<string, number>();
  const endpoint = await startS3Endpoint({
    ...CREDENTIALS,
    buckets: REGIONS.map(bucketOf),
    ...(nowMs && { nowMs }),
    async intercept(request, response) {
      if (nowMs) response.setHeader("date", new Date(nowMs()).toUTCString());
      const [, bucket = "", ...path] = new URL(request.url ?? "/", "http://x").pathname.split("/");
      const region = bucket.slice("bucket-".length);
      const broke = await faults.get(region)?.(request, response, decodeURIComponent(path.join("/")));
      if (broke) fired.set(region, (fired.get(region) ?? 0) + 1);
      return broke ?? false;
    },
  });
  const regions = REGIONS.map((name) => ({ name, provider: name, endpoint: endpoint.url, bucket: bucketOf(name) }));
  const json = { regions, code: auto ? "auto" : { k, m }, stripeBytes, survive };
  const configPath = join(dir, "agarose.config.json");
  await writeFile(configPath, JSON.stringify(json));
  const config = parseConfig(JSON.stringify(json), configPath);
  const stores = storesOf(config, CREDENTIALS);
  const signal = new AbortController().signal;
  const parts = (more: Partial<GivenParts> = {}): DeploymentParts => partsOf({ config, stores, signal, ...more });

  return {
    dir,
    config,
    configPath,
    stores,
    /** New ones, that have not seen yet which regions hang. */
    parts,
    faults,
    fired,
    endpoint,
    store: (region: string): S3Store => stores.find((store) => store.region.name === region)!,

    /** Puts `bytes` as a file would be that has been as it is for an hour. */
    async put(key: string, bytes: Uint8Array, more: Partial<PutObject & GivenParts> = {}): Promise<PutResult> {
      const path = join(dir, `upload-${crypto.randomUUID()}`);
      await writeFile(path, bytes);
      const thenS = Date.now() / 1000 - 3_600;
      await utimes(path, thenS, thenS);
      const object = {
        key,
        source: fileSource(path),
        contentType: "application/octet-stream",
        headers: {},
        force: false,
        ...more,
      };
      return putObject(object, parts(more));
    },

    async get(
      key: string,
      range?: { start: number; end: number },
      consistency: Consistency = "strong",
    ): Promise<Buffer> {
      const manifest = await readManifest(key, parts(), { consistency });
      const body: Uint8Array[] = [];
      await getObject(manifest, range, async (part) => body.push(part), parts());
      return Buffer.concat(body);
    },

    verify: (key: string): Promise<ObjectVerdict> => verifyObject(key, parts()),

    /** Changes what a region has stored under `name`; undefined removes it. */
    async tamper(region: string, name: string, change: (bytes: Buffer) => Uint8Array | undefined): Promise<void> {
      const store = stores.find((candidate) => candidate.region.name === region)!;
      const changed = change(await this.read(region, name));
      if (changed === undefined) await store.remove([name]);
      else await store.put(name, changed, { bytes: changed.length, contentType: "application/octet-stream" });
    },

    async read(region: string, name: string): Promise<Buffer> {
      const response = await stores.find((candidate) => candidate.region.name === region)!.get(name);
      if (response.status !== 200) throw new Error(`${region} has no ${name}`);
      return Buffer.from(await new Response(response.body).arrayBuffer());
    },

    async holders(name: string, bytes: Buffer): Promise<string[]> {
      const found = await Promise.all(
        REGIONS.map(async (region) => {
          const held = await this.read(region, name).catch(() => undefined);
          return held?.equals(bytes) ? [region] : [];
        }),
      );
      return found.flat();
    },

    async names(prefix = ""): Promise<string[]> {
      const names: string[] = [];
      for (const store of stores)
        for await (const { name } of store.list(prefix)) names.push(`${store.region.name}/${name}`);
      return names;
    },

    /** Runs the `agarose` command as its own process. */
    spawn: (args: readonly string[], input: RunInput = {}): Promise<RunResult> =>
      spawnAgarose(["--config", configPath, ...args], { cwd: dir, ...input }),

    /** Runs the `agarose` command inside this process, which is quicker. */
    run: (args: readonly string[], env: Record<string, string> = {}): Promise<RunResult> =>
      runAgarose(["--config", configPath, ...args], dir, env),

    /** Files of this world's folder, without the uploads. */
    async files(): Promise<string[]> {
      return (await readdir(dir)).filter((name) => name !== "agarose.config.json" && !name.startsWith("upload-"));
    },

    async close(): Promise<void> {
      for (const store of stores) store.close();
      await endpoint.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function storesOf(config: Config, credentials: typeof CREDENTIALS): S3Store[] {
  return config.regions.map((region) => new S3Store(region, { credentials, attempts: 1 }));
}

export interface RunInput {
  readonly stdin?: Uint8Array;
  readonly cwd?: string;
  /** Beyond the world's own keys and the PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Sends the child a signal once this resolves: SIGTERM unless `killSignal` says otherwise. */
  readonly killWhen?: Promise<unknown>;
  readonly killSignal?: NodeJS.Signals;
  readonly onStdout?: (part: Buffer) => void;
  readonly onStderr?: (part: Buffer) => void;
  readonly onStart?: (pid: number) => void;
}

const CREDENTIALS_ENV = {
  AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
};

export function spawnAgarose(
  args: readonly string[],
  { stdin, cwd, env: more, killWhen, killSignal = "SIGTERM", onStart, onStdout, onStderr }: RunInput = {},
): Promise<RunResult> {
  const script = fileURLToPath(new URL("../bin/agarose.js", import.meta.url));
  const env = { PATH: process.env["PATH"], ...CREDENTIALS_ENV, ...more };
  const child = spawn(process.execPath, [script, ...args], { cwd, env });
  if (child.pid !== undefined) onStart?.(child.pid);
  const stdout: Buffer[] = [];
  let stderr = "";
  child.stdout.on("data", (part: Buffer) => {
    stdout.push(part);
    onStdout?.(part);
  });
  child.stderr.on("data", (part: Buffer) => {
    stderr += part.toString();
    onStderr?.(part);
  });
  child.stdin.on("error", () => {});
  child.stdin.end(stdin ?? "");
  void killWhen?.then(() => child.kill(killSignal));
  return new Promise((resolve) =>
    child.on("close", (code) => resolve({ code: code ?? -1, stdout: Buffer.concat(stdout), stderr })),
  );
}

/** `main` with what it prints caught, in the folder `cwd`. One at a time. */
export async function runAgarose(
  args: readonly string[],
  cwd = process.cwd(),
  env: Record<string, string> = {},
): Promise<RunResult> {
  const before = { cwd: process.cwd(), env: { ...process.env } };
  const stdout: Buffer[] = [];
  let stderr = "";
  const catchInto =
    (take: (part: Buffer) => void) => (part: Uint8Array | string, encodingOrDone?: unknown, done?: unknown) => {
      take(Buffer.from(part as Uint8Array));
      const callback = done ?? encodingOrDone;
      if (typeof callback === "function") queueMicrotask(() => callback());
      return true;
    };
  const spies = [
    vi.spyOn(process.stdout, "write").mockImplementation(catchInto((part) => stdout.push(part))),
    vi.spyOn(process.stderr, "write").mockImplementation(catchInto((part) => (stderr += part.toString()))),
  ];
  process.chdir(cwd);
  Object.assign(process.env, CREDENTIALS_ENV, env);
  try {
    const code = await main(args);
    return { code, stdout: Buffer.concat(stdout), stderr };
  } finally {
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
    for (const name of Object.keys(process.env)) if (!(name in before.env)) delete process.env[name];
    Object.assign(process.env, before.env);
    process.chdir(before.cwd);
  }
}

/** A region that does not answer at all. */
export const DOWN: Fault = (request) => {
  request.destroy();
  return true;
};

/** A region that is so far away. It answers as any other, so it does not count as fired. */
export const far =
  (ms: number): Fault =>
  async () => {
    await setTimeout(ms);
    return false;
  };

/** A region that answers GETs of chunks with 200 or 206 and another number of bytes than asked for. */
export function wrongLength(bytes: number): Fault {
  return (request, response, name) => {
    if (request.method !== "GET" || !name.startsWith("chunks/")) return false;
    response.writeHead(request.headers.range ? 206 : 200, { "content-length": String(bytes) });
    response.end(Buffer.alloc(bytes));
    return true;
  };
}

export function bucketOf(region: string): string {
  return `bucket-${region}`;
}

/** Where chunk `chunk` of an object is: region and name. */
export function chunkPlace(put: PutResult, chunk: number): [string, string] {
  return [REGIONS[chunk % REGIONS.length]!, chunkName(put.key, put.upload, chunk)];
}

export { manifestName };
