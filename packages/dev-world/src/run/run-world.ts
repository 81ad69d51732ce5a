/**
 * Runs a world in this process, as `agarose dev` does: starts it with samples and a page, prints its addresses, and
 * ends it on a signal, or when what has started the process is gone.
 */
import { resolve } from "node:path";
import { AgaroseError } from "@agarose/core";
import { stopSignal } from "@agarose/pop/stop-signal";
import type { World } from "../world/world.ts";
import { WORLDS, type WorldName, type WorldOptions } from "../world/world-options.ts";
import { loadDemo, startPage } from "./page.ts";
import { watchStarter } from "./starter.ts";

/** Changes to the named world. An undefined field is the same as a missing one. */
type Changes<T> = { readonly [Field in keyof T]?: T[Field] | undefined };

/** Options of a run. Missing ones have the defaults of `agarose dev`. */
export interface RunOptions extends Changes<Omit<WorldOptions, "geography" | "progress">> {
  /** Default: `continental`. */
  readonly world?: WorldName | undefined;
  /** The path of a scenario, which sets places, latencies, code and cache. */
  readonly scenario?: string | undefined;
  /** From one Cron Trigger to the next; 0 is only on request. */
  readonly cronMs?: number;
  /** Of the page; 0 for any free one. */
  readonly port?: number;
  /** Folder or URL of an app; true is a blank page. Default: the demo. */
  readonly app?: string | true | undefined;
  /** The path of a module that exports a `Demo`. Default: there is none. */
  readonly demo?: string | undefined;
  /** Whether the samples of the demo are stored, and whether its page is served. Default: true. */
  readonly samples?: boolean;
  readonly page?: boolean;
  /** Whether the world outlives what has started the process. Default: false. */
  readonly background?: boolean;
  /** Whether the addresses are printed as one line of JSON. */
  readonly json?: boolean;
}

const CRON_MS = 60_000;

/** Runs a world. Resolves once it has ended. */
export async function runWorld({
  world: name = "continental",
  scenario,
  cronMs = CRON_MS,
  port = 0,
  app,
  demo: demoPath,
  samples = true,
  page: isShown = true,
  background = false,
  json = false,
  ...changes
}: RunOptions): Promise<void> {
  const closers: (() => Promise<unknown>)[] = [];
  // The process that started the world may be gone, and then nobody reads stderr. The world still removes its files.
  process.stderr.on("error", () => {});
  const stop = stopSignal();
  const unwatch = background ? () => {} : await watchStarter(stop.stop);
  try {
    const started = performance.now();
    if (typeof app === "string") await (await import("../app-host/app-host.ts")).checkApp(app);
    // Loaded here, because Miniflare and esbuild take longer to load than any other verb takes to run.
    const { loadScenario, openUploader, startControl, startWorld, worldOf } = await import("../index.ts").catch(
      sayWhatToInstall,
    );
    const world = await startWorld({
      ...WORLDS[name],
      ...(scenario === undefined ? {} : worldOf(await loadScenario(scenario))),
      ...defined(changes),
      progress,
    });
    closers.push(world.close);
    stop.own();
    const uploader = await openUploader(world);
    closers.push(async () => uploader.close());
    const control = await startControl(world, uploader);
    closers.push(control.close);
    const demo = demoPath === undefined || app !== undefined ? undefined : await loadDemo(resolve(demoPath));
    if (demo && samples) {
      progress("samples");
      await demo.storeSamples(uploader);
    }
    const shown = app ?? (isShown ? demo : undefined);
    const kind = app === undefined ? "demo" : "app";
    if (shown !== undefined) progress(kind);
    const page = shown === undefined ? undefined : await startPage(world, control.url, port, shown, uploader);
    if (page) closers.push(page.close);
    if (page?.problem !== undefined) process.stderr.write(`warning: ${page.problem}\n`);
    if (cronMs > 0) closers.push(everyCron(world, cronMs));
    const addresses = { [kind]: page?.url, control: control.url };
    announce(world, addresses, json, performance.now() - started);
    stop.own();
    await stop.asked;
    progress("stopping");
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

function announce(world: World, addresses: Record<string, string | undefined>, json: boolean, ms: number): void {
  const { config, pops, regions } = world;
  if (json) {
    process.stdout.write(`${JSON.stringify({ ...addresses, config, pops, regions, pid: process.pid })}\n`);
    return;
  }
  const shown = Object.entries(addresses).filter(([, url]) => url !== undefined);
  const lines = [
    "",
    `  Agarose is up (${(ms / 1000).toFixed(1)} s)`,
    "",
    ...shown.map(([name, url]) => `  ${name.padEnd(8)} ${url}`),
    `  config   ${config}`,
    ...pops.map(({ name, url }) => `  PoP ${name}  ${url}/o/<key>`),
    "",
    `  Try      npx agarose --config ${config} ls`,
    `  Stop     Ctrl-C, or kill ${process.pid}`,
    "",
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Returns `options` without the undefined ones, which would replace defaults. */
function defined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}
