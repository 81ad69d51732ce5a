/** A local world that runs in its own process. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve as resolvePath } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { RunOptions } from "../run/run-world.ts";
import type { WorldName } from "../world/world-options.ts";
import type { LinkRecord } from "../world/wan-link.ts";
import { ControlClient, type ControlState, type WholeCopy } from "./control-client.ts";
import { Client, Pop, Region } from "./places.ts";

/** How to start a world. Every field has the default of `agarose dev`, unless it says otherwise. */
export interface LocalWorldOptions {
  /**
   * The app to test: a folder of static files, or the URL of its server. The world puts its own addresses into the
   * app's `agarose.json`. Default: a blank page.
   */
  readonly app?: string;
  /** Six providers of one continent, or the world of Agar's paper (six regions over the world, 9+3). */
  readonly world?: WorldName;
  /** Places, latencies and code: the path of a scenario file, or its content. Default: those of `world`. */
  readonly geography?: string | object;
  /** Multiplies every latency. Default: 1, or 0.25 in the world `agar`. */
  readonly scale?: number;
  /** k data chunks and m parity chunks of an object. Default: `auto`, or 9 and 3 in the world `agar`. */
  readonly code?: "auto" | { readonly k: number; readonly m: number };
  /** Standard deviation of the logarithm of each latency. Default: 0.1. */
  readonly jitter?: number;
  /** Megabits per second of one transfer; 0 is unlimited. Default: 200. */
  readonly mbit?: number;
  /** Megabits per second that all downloads of the browser share; 0 is unlimited. Default: 100, or 0 in `agar`. */
  readonly lineMbit?: number;
  /** Seeds jitter and faults. Default: 1. */
  readonly seed?: number;
  /** Capacity of each PoP's chunk cache in bytes. Default: 3,000,000. */
  readonly cacheBytes?: number;
  /** The runtime of each PoP, in their order: `workerd`, or `node` for `agarose pop`. Default: workerd. */
  readonly pops?: readonly ("workerd" | "node")[];
  /** Variables of every PoP, as in wrangler.toml. Default: none. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Whether PoPs read from each other's caches. Default: true. */
  readonly peers?: boolean;
  /** Relative paths, those of `put` included, start at this folder. Default: the working directory. */
  readonly folder?: string;
  /** The path of a module that exports a `Demo`: its page and samples are served instead of `app`. Default: none. */
  readonly demo?: string;
}

/** How to store an object. */
export interface PutFileOptions {
  /** Default: by the extension of the key. */
  readonly contentType?: string;
  /** Further response headers, such as `cache-control`. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The module that the process runs: a source in the repository, and JavaScript in the published package. */
const MAIN = fileURLToPath(new URL(`../run/main${extname(import.meta.url)}`, import.meta.url));

/** The output of `agarose dev --json`. */
interface Announcement {
  readonly app?: string;
  readonly demo?: string;
  readonly control: string;
  readonly config: string;
  readonly pops: readonly { readonly name: string; readonly url: string }[];
  readonly regions: readonly { readonly name: string; readonly endpoint: string; readonly bucket: string }[];
}

/** A running world. Its Cron Trigger fires only when `cron` is called. */
export class LocalWorld {
  /** Address of the app, with a trailing slash. */
  readonly app: string;
  readonly controlUrl: string;
  /** Path of a configuration by which the CLI works on this world. */
  readonly config: string;
  /** The PoPs as the client reaches them. */
  readonly pops: Announcement["pops"];
  /** The buckets as the client reaches them. */
  readonly regions: Announcement["regions"];
  readonly client: Client;
  readonly #control: ControlClient;
  readonly #process: ChildProcess;
  readonly #folder: string;

  private constructor(world: Announcement, child: ChildProcess, folder: string) {
    this.app = world.app ?? world.demo ?? "";
    this.controlUrl = world.control;
    this.config = world.config;
    this.pops = world.pops;
    this.regions = world.regions;
    this.#control = new ControlClient(world.control);
    this.client = new Client(this.#control);
    this.#process = child;
    this.#folder = folder;
  }

  /** Starts a world. It ends with this process at the latest, also when this process is killed. */
  static async start(options: LocalWorldOptions = {}): Promise<LocalWorld> {
    const { folder = process.cwd() } = options;
    const scenario = await scenarioFile(options.geography, folder);
    try {
      const run = JSON.stringify(runOptions(options, folder, scenario?.path));
      const child = spawn(process.execPath, [MAIN, run], { stdio: ["ignore", "pipe", "pipe"] });
      return new LocalWorld(await readAnnouncement(child), child, folder);
    } finally {
      await scenario?.remove();
    }
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** Returns the region of that name. Throws when there is none. */
  region(name: string): Region {
    return new Region(knownName(this.regions, name, "region"), this.#control);
  }

  /** Returns the PoP of that name. Throws when there is none. */
  pop(name: string): Pop {
    return new Pop(knownName(this.pops, name, "PoP"), this.#control);
  }

  /** Stores an object: the content itself, or the path of a file. Neither links nor faults are in between. */
  async put(
    key: string,
    content: Uint8Array | string,
    { contentType, headers = {} }: PutFileOptions = {},
  ): Promise<void> {
    const bytes = typeof content === "string" ? await readFile(resolvePath(this.#folder, content)) : content;
    await this.#control.put(key, bytes, { ...headers, ...(contentType && { "content-type": contentType }) });
  }

  /**
   * Stores a whole copy of an object in the region nearest to the client. No read of Agarose uses it: it is what
   * latencies are compared with.
   */
  copy(key: string): Promise<WholeCopy> {
    return this.#control.copy(key);
  }

  /** Fires the Cron Trigger of every PoP. Resolves when their caches hold the new configuration. */
  cron(): Promise<void> {
    return this.#control.post("/cron");
  }

  /** Ends every fault, empties the log, and gives the client its place and line back. Objects and caches stay. */
  reset(): Promise<void> {
    return this.#control.post("/reset");
  }

  /** Returns the requests over all links since the last reset. */
  log(): Promise<LinkRecord[]> {
    return this.#control.log();
  }

  /** Returns faults, latencies and the code. */
  state(): Promise<ControlState> {
    return this.#control.state();
  }

  /** Runs the `agarose` command line on this world. Returns the JSON that it prints, and rejects when it fails. */
  agarose(...args: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      execFile(process.execPath, [findCli(), "--config", this.config, "--json", ...args], (error, stdout, stderr) => {
        if (error) reject(new Error(`agarose ${args.join(" ")}: ${stderr}${stdout}`, { cause: error }));
        else resolve(JSON.parse(stdout));
      });
    });
  }

  /** Ends the world and returns the exit code of its process. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, "exit");
      this.#process.kill(signal);
      await ended;
    }
    return this.#process.exitCode;
  }
}

function runOptions(
  { app, demo, geography: _file, folder: _folder, pops, jitter, mbit, variables, ...options }: LocalWorldOptions,
  folder: string,
  scenario: string | undefined,
): RunOptions {
  const own = app === undefined || isUrl(app) ? app : resolvePath(folder, app);
  return {
    ...options,
    scenario,
    runtimes: pops,
    jitterSigma: jitter,
    mbitPerSecond: mbit,
    popVars: variables,
    cronMs: 0,
    app: own ?? (demo === undefined ? true : undefined),
    demo: demo && resolvePath(folder, demo),
  };
}

function isUrl(app: string): boolean {
  return /^https?:\/\//.test(app);
}

/** The path of the scenario, in a temporary file when it is not a file yet. */
async function scenarioFile(
  geography: LocalWorldOptions["geography"],
  base: string,
): Promise<{ path: string; remove: () => Promise<void> } | undefined> {
  if (geography === undefined) return undefined;
  if (typeof geography === "string") return { path: resolvePath(base, geography), remove: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), "agarose-scenario-"));
  const path = join(folder, "scenario.json");
  await writeFile(path, JSON.stringify(geography));
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Resolves with the line that the process prints when the world is up, or rejects with what it says instead. */
async function readAnnouncement(child: ChildProcess): Promise<Announcement> {
  let errors = "";
  child.stderr!.on("data", (part) => (errors += String(part)));
  for await (const line of createInterface({ input: child.stdout! })) return JSON.parse(line) as Announcement;
  throw new Error(`the process of the world ended before the world was up:\n${errors}`);
}

/** Returns the path of the `agarose` command: the project's own, or the one beside this package. Throws without one. */
export function findCli(): string {
  for (const from of [join(process.cwd(), "package.json"), import.meta.url]) {
    const path = resolvePackage(from);
    if (path === undefined) continue;
    const { bin } = JSON.parse(readFileSync(path, "utf8")) as { bin: { agarose: string } };
    return join(dirname(path), bin.agarose);
  }
  throw new Error("a local world needs the agarose command: npm install --save-dev agarose");
}

function resolvePackage(from: string): string | undefined {
  const folders = createRequire(from).resolve.paths("agarose") ?? [];
  return folders.map((folder) => join(folder, "agarose", "package.json")).find((path) => existsSync(path));
}

function knownName(places: readonly { readonly name: string }[], name: string, what: string): string {
  const names = places.map((place) => place.name);
  if (names.includes(name)) return name;
  throw new Error(`there is no ${what} ${JSON.stringify(name)}: there are ${names.join(", ")}`);
}
