/**
 * `agarose dev`: starts the local world with samples and the demo page, prints its addresses, and runs until a signal
 * arrives or its starter is gone.
 */
import { AgaroseError } from "@agarose/core";
import type { World } from "@agarose/dev-world";
import { WORLD_DEFAULTS } from "@agarose/dev-world/options";
import { loadScenario } from "../../lib/scenario-file.ts";
import { logLine } from "../../ui/output.ts";
import { hasDemo, startPage } from "./page.ts";
import { uploadSamples } from "./samples.ts";
import { watchStarter } from "./starter.ts";
import { stopSignal } from "./stop-signal.ts";
import { openUploader } from "./upload.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The options of `agarose dev`. */
export type DevOptions = Values<typeof args>;

/** Runs `agarose dev`. The command ends with exit code 0 on SIGINT, SIGTERM, or when its starter is gone. */
export async function run(options: DevOptions): Promise<void> {
  const closers: (() => Promise<unknown>)[] = [];
  const stop = stopSignal();
  const unwatch = options.background ? () => {} : await watchStarter(stop.stop);
  try {
    const started = performance.now();
    // Loaded here, because Miniflare and esbuild take longer to load than any other verb takes to run.
    const { startControl, startWorld, worldOf } = await import("@agarose/dev-world").catch(sayWhatToInstall);
    const world = await startWorld({
      ...WORLD_DEFAULTS,
      ...(options.scenario === undefined ? {} : worldOf(await loadScenario(options.scenario))),
      ...defined({
        code: options.code,
        scale: options.scale,
        jitterSigma: options.jitter,
        mbitPerSecond: options.mbit,
        cacheBytes: options.cacheBytes,
        popVars: Object.fromEntries(options.var),
        runtimes: options.runtimes,
        startNode: options.runtimes?.includes("node") ? (await import("./node-pop.ts")).startNodePop : undefined,
      }),
      s3: options.s3,
      peers: options.peers,
      seed: options.seed,
      progress,
    });
    closers.push(world.close);
    stop.own();
    const uploader = await openUploader(world);
    closers.push(async () => uploader.close());
    const control = await startControl(world, uploader);
    closers.push(control.close);
    const isClone = hasDemo();
    if (options.samples && isClone && options.app === undefined) {
      progress("samples");
      await uploadSamples(uploader);
    }
    const kind = options.app !== undefined ? "app" : options.demo && isClone ? "demo" : undefined;
    if (kind) progress(kind);
    const page = kind && (await startPage(world, control.url, options));
    if (page) closers.push(page.close);
    if (page?.problem !== undefined) logLine(`warning: ${page.problem}`);
    if (options.cron > 0) closers.push(everyCron(world, options.cron));
    announce(options, world, control.url, page?.url, performance.now() - started);
    stop.own();
    await stop.asked;
  } finally {
    unwatch();
    for (const close of closers.toReversed()) await close();
  }
}

/** The tools of a world are large, so the published packages do not depend on them. */
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

/** Fires the Cron Trigger, which Miniflare does not do by itself. Skips a turn while a run is under way. */
function everyCron(world: World, everyMs: number): () => Promise<void> {
  let running = Promise.resolve();
  let busy = false;
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    running = world
      .cron()
      .catch((error: unknown) => void process.stderr.write(`  cron: ${String(error)}\n`))
      .finally(() => (busy = false));
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await running;
  };
}

function announce(options: DevOptions, world: World, control: string, page: string | undefined, ms: number): void {
  const kind = options.app === undefined ? "demo" : "app";
  if (options.json) {
    const { config, pops, regions } = world;
    process.stdout.write(`${JSON.stringify({ [kind]: page, control, config, pops, regions, pid: process.pid })}\n`);
    return;
  }
  const lines = [
    "",
    `  Agarose is up (${(ms / 1000).toFixed(1)} s)`,
    "",
    ...(page ? [`  ${kind.padEnd(8)} ${page}`] : []),
    `  control  ${control}`,
    `  config   ${world.config}`,
    ...world.pops.map(({ name, url }) => `  PoP ${name}  ${url}/o/<key>`),
    "",
    `  Try      npx agarose --config ${world.config} ls`,
    `  Stop     Ctrl-C, or kill ${process.pid}`,
    "",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Returns `options` without the undefined ones, which would replace defaults. */
function defined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}
