/**
 * `agarose dev`: brings up the local world with samples and the demo page, prints where it is, and runs until told to stop.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgaroseError } from "@agarose/core";
import { InvalidArgumentError, type Command } from "commander";
import { WORLD_DEFAULTS } from "@agarose/dev-world/options";
import type { World } from "@agarose/dev-world";
import { loadScenario } from "../../lib/scenario-file.ts";

interface DevOptions {
  readonly scenario?: string;
  readonly s3: "embedded" | "versitygw";
  readonly scale?: number;
  readonly jitter?: number;
  readonly mbit?: number;
  readonly seed: number;
  readonly cacheBytes?: number;
  readonly var?: Record<string, string>;
  readonly peers: boolean;
  readonly cron: number;
  readonly port: number;
  readonly samples: boolean;
  readonly demo: boolean;
  readonly json?: boolean;
}

interface Sample {
  readonly key: string;
  readonly file: string;
}

const DEMO = new URL("../../../../../demo/", import.meta.url);
const CLI = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));

export function register(program: Command): void {
  program
    .command("dev")
    .description("run a whole world on this machine: buckets over an emulated WAN, PoPs in workerd, the demo page")
    .option("--scenario <file>", "places, latencies, code and cache of a scenario (JSON) instead of Agar's Table I")
    .option("--s3 <server>", "S3 server behind the links: embedded or versitygw", s3Server, WORLD_DEFAULTS.s3)
    .option(
      "--scale <factor>",
      `latencies as a multiple (default: ${WORLD_DEFAULTS.scale}; 1 with --scenario)`,
      number(0),
    )
    .option("--jitter <sigma>", `lognormal spread of every latency (default: ${WORLD_DEFAULTS.jitterSigma})`, number(0))
    .option(
      "--mbit <rate>",
      `Mbit/s of one transfer, 0 for unlimited (default: ${WORLD_DEFAULTS.mbitPerSecond})`,
      number(0),
    )
    .option("--seed <number>", "seed of the links' randomness", number(0), WORLD_DEFAULTS.seed)
    .option(
      "--cache-bytes <bytes>",
      `capacity of each PoP's chunk cache (default: ${WORLD_DEFAULTS.cacheBytes})`,
      number(0),
    )
    .option("--var <NAME=value>", "variable of every PoP, as in wrangler.toml; may be repeated", variable)
    .option("--no-peers", "PoPs that do not know each other")
    .option("--cron <seconds>", "how often the Cron Trigger fires, 0 for only when told to", number(0), 60)
    .option("--port <port>", "port of the demo page, 0 for any free one", number(0), 0)
    .option("--no-samples", "start with empty buckets")
    .option("--no-demo", "start without the demo page")
    .action(async (_options: unknown, command: Command) => run(command.optsWithGlobals<DevOptions>()));
}

async function run(options: DevOptions): Promise<void> {
  const closers: (() => Promise<unknown>)[] = [];
  const stop = stopSignal();
  try {
    const started = performance.now();
    // Loaded here, because Miniflare and esbuild take longer to load than any other verb takes to run.
    const { given, startControl, startWorld, worldOf } = await import("@agarose/dev-world").catch(sayWhatToInstall);
    const world = await startWorld({
      ...WORLD_DEFAULTS,
      ...(options.scenario === undefined ? {} : worldOf(await loadScenario(options.scenario))),
      ...given({
        scale: options.scale,
        jitterSigma: options.jitter,
        mbitPerSecond: options.mbit,
        cacheBytes: options.cacheBytes,
        popVars: options.var,
      }),
      s3: options.s3,
      peers: options.peers,
      seed: options.seed,
      progress,
    });
    closers.push(world.close);
    stop.own();
    const control = await startControl(world);
    closers.push(control.close);
    // Samples and page are the repository's; a published package has neither.
    const hasDemo = existsSync(DEMO);
    if (options.samples && hasDemo) await uploadSamples(world);
    const demo = options.demo && hasDemo ? await startDemoPage(world, control.url, options.port, closers) : undefined;
    if (options.cron > 0) closers.push(everyCron(world, options.cron));
    announce(options, world, control.url, demo, performance.now() - started);
    stop.own();
    await stop.asked;
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

/** The tools of a world are large, so the published packages leave them to those who want one. */
function sayWhatToInstall(error: NodeJS.ErrnoException): never {
  const [, name] = /Cannot find package '(esbuild|miniflare|wrangler)'/.exec(error.message) ?? [];
  if (name === undefined) throw error;
  throw new AgaroseError(
    "USAGE",
    `a world on this machine needs ${name}: npm install --save-dev esbuild@0.28 miniflare@4.20260730 wrangler@4.116`,
    { missing: name },
    error,
  );
}

function progress(step: string): void {
  process.stderr.write(`  ${step}\n`);
}

/** Puts the sample set with the real command line, as a user would; the links do not delay it. */
async function uploadSamples(world: World): Promise<void> {
  progress("samples");
  const { MODEL, PHOTOS, VIDEO } = (await import(new URL("samples/index.ts", DEMO).href)) as {
    MODEL: Sample;
    PHOTOS: readonly Sample[];
    VIDEO: Sample;
  };
  const { writeModel } = (await import(new URL("samples/make-model.ts", DEMO).href)) as {
    writeModel(path: string): Promise<void>;
  };
  const folder = await mkdtemp(join(tmpdir(), "agarose-samples-"));
  const put = (sample: Sample, from: string): Promise<void> =>
    agarose(["--config", world.config, "put", join(from, sample.file), "--key", sample.key]);
  world.state.wan = false;
  try {
    const samples = fileURLToPath(new URL("samples", DEMO));
    await writeModel(join(folder, MODEL.file));
    await Promise.all([
      agarose([
        "--config",
        world.config,
        "put",
        ...PHOTOS.map(({ file }) => join(samples, file)),
        "--prefix",
        "photos/",
      ]),
      put(VIDEO, samples),
      put(MODEL, folder),
    ]);
  } finally {
    world.state.wan = true;
    world.log.length = 0;
    await rm(folder, { recursive: true, force: true });
  }
}

function agarose(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [CLI, ...args, "--json"], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (part) => (output += String(part)));
  child.stderr.on("data", (part) => (output += String(part)));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      if (code === 0) return resolve();
      reject(new AgaroseError("STORE_FAILED", `agarose ${args.join(" ")} ended with ${code}:\n${output}`, { code }));
    });
  });
}

async function startDemoPage(
  world: World,
  control: string,
  port: number,
  closers: (() => Promise<unknown>)[],
): Promise<string> {
  progress("demo page");
  const serviceWorkerDir = await mkdtemp(join(tmpdir(), "agarose-sw-"));
  closers.push(() => rm(serviceWorkerDir, { recursive: true, force: true }));
  const { buildServiceWorker } = await import("@agarose/sw/build");
  await buildServiceWorker(serviceWorkerDir);
  const { startDemo } = (await import(new URL("server.ts", DEMO).href)) as {
    startDemo(options: object): Promise<{ url: string; close(): Promise<void> }>;
  };
  const demo = await startDemo({
    port,
    world: {
      control,
      config: {
        prefix: "/ec/",
        pops: world.pops,
        regions: world.regions.map(({ name, endpoint, bucket }) => ({ name, url: `${endpoint}/${bucket}` })),
      },
    },
    edge: () => world.pops.find(({ name }) => name === world.state.near)!.url,
    serviceWorkerDir,
  });
  closers.push(() => demo.close());
  return demo.url;
}

/** Miniflare fires no Cron Triggers by itself. A run that is still going when the next is due is not doubled. */
function everyCron(world: World, seconds: number): () => Promise<void> {
  let running = Promise.resolve();
  let busy = false;
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    running = world
      .cron()
      .catch((error: unknown) => void process.stderr.write(`  cron: ${String(error)}\n`))
      .finally(() => (busy = false));
  }, seconds * 1000);
  return async () => {
    clearInterval(timer);
    await running;
  };
}

function announce(options: DevOptions, world: World, control: string, demo: string | undefined, ms: number): void {
  if (options.json) {
    const { config, pops, regions } = world;
    process.stdout.write(`${JSON.stringify({ demo, control, config, pops, regions })}\n`);
    return;
  }
  const lines = [
    "",
    `  Agarose is up (${(ms / 1000).toFixed(1)} s)`,
    "",
    ...(demo ? [`  demo     ${demo}`] : []),
    `  control  ${control}`,
    `  config   ${world.config}`,
    ...world.pops.map(({ name, url }) => `  PoP ${name}  ${url}/o/<key>`),
    "",
    `  Try      npx agarose --config ${world.config} ls`,
    "  Stop     Ctrl-C",
    "",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** A terminal's Ctrl-C may arrive twice, from the terminal and passed on by npm: only a later one is a second one. */
const SECOND_SIGNAL_MS = 1000;

/** When the process is asked to stop. */
interface StopSignal {
  /** Resolves at the first SIGINT, SIGTERM or SIGHUP; another one after a while ends the process at once. */
  readonly asked: Promise<void>;
  /** Drops everybody else's signal handlers: Miniflare and Vite bring some that exit before anything is cleaned up. */
  own(): void;
}

function stopSignal(): StopSignal {
  const { promise, resolve } = Promise.withResolvers<void>();
  let firstMs: number | undefined;
  const stop = (): void => {
    firstMs ??= performance.now();
    if (performance.now() - firstMs > SECOND_SIGNAL_MS) process.exit(130);
    resolve();
  };
  const own = (): void => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.removeAllListeners(signal).on(signal, stop);
  };
  own();
  return { asked: promise, own };
}

function s3Server(value: string): "embedded" | "versitygw" {
  if (value === "embedded" || value === "versitygw") return value;
  throw new InvalidArgumentError("use embedded or versitygw");
}

function variable(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^([A-Z][A-Z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("use NAME=value");
  return { ...before, [name]: value };
}

function number(min: number): (value: string) => number {
  return (value) => {
    const parsed = Number(value);
    if (value.trim() !== "" && Number.isFinite(parsed) && parsed >= min) return parsed;
    throw new InvalidArgumentError(`use a number of ${min} or more`);
  };
}
