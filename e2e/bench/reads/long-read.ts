/**
 * One object over a slow line for longer than browsers let a service worker continue one task: does it finish, or
 * continue where it broke off, with all its bytes?
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import config from "../../playwright.config.ts";
import { LocalWorld } from "@agarose/dev-world/client";
import type { Bench } from "../bench.ts";
import { freePort } from "@agarose/dev-world/free-port";
import { startLongReadHost, type PageReport } from "./long-read-host.ts";
import { describeMachine } from "@agarose/dev-world/machine";
import { table } from "@agarose/dev-world/statistics";

const KEY = "bench/long";
/** Nine chunks come at a time, so the object takes `chunk bytes / rate`: 444 s. */
const LONG = { bytes: 40_000_000, mbit: 0.08, killAtMs: [120_000, 240_000], atLeastMs: 360_000 };
const QUICK = { bytes: 9_000_000, mbit: 0.8, killAtMs: [4_000], atLeastMs: 8_000 };
const FIREFOX = ["/usr/bin/firefox-esr", "/usr/bin/firefox"];

interface Way {
  readonly name: string;
  readonly browser: "Chromium" | "Firefox";
  readonly what: string;
  readonly killed?: boolean;
}

const WAYS: readonly Way[] = [
  { name: "fetch", browser: "Chromium", what: "plain `fetch`" },
  { name: "handle", browser: "Chromium", what: "`fetch` of the handle" },
  { name: "killed-handle", browser: "Chromium", what: "`fetch` of the handle, worker killed", killed: true },
  { name: "firefox-fetch", browser: "Firefox", what: "plain `fetch`" },
  { name: "firefox-handle", browser: "Firefox", what: "`fetch` of the handle" },
];

export const longRead: Bench = {
  name: "long-read",
  title: "A read that outlives its service worker",
  async run({ quick, progress }) {
    const setting = quick ? QUICK : LONG;
    const content = randomBytes(setting.bytes);
    const folder = await mkdtemp(join(tmpdir(), "agarose-long-read-"));
    const world = await LocalWorld.start({ world: "agar", scale: 0.25, mbit: setting.mbit });
    try {
      const host = await startLongReadHost(await appFiles(world, folder), KEY);
      await world.put(KEY, content);
      const firefox = FIREFOX.find((path) => existsSync(path));
      const ways = WAYS.filter(({ browser }) => browser === "Chromium" || firefox);
      const expected = createHash("sha256").update(content).digest("hex");
      const rows = await Promise.all(
        ways.map(async (way) => {
          const report = await measure(way, host, join(folder, way.name), { firefox, killAtMs: setting.killAtMs });
          progress(`${way.browser}, ${way.what}: ${JSON.stringify(report)}`);
          if (report.sha256 === expected && report.ms < setting.atLeastMs)
            throw new Error(`${way.name} took ${report.ms} ms, at least ${setting.atLeastMs} are wanted`);
          return rowOf(way, report, report.sha256 === expected, setting.bytes);
        }),
      );
      await host.close();
      return describe(rows, setting, await versionOf(chromiumPath()), firefox && (await versionOf(firefox)));
    } finally {
      await world.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  },
};

/** The scripts of `agarose init`, with the world's own client configuration. */
async function appFiles(world: LocalWorld, folder: string): Promise<Map<string, Buffer>> {
  const app = join(folder, "app");
  await world.agarose("init", app);
  const names = (await readdir(app)).filter((name) => name.endsWith(".js"));
  const scripts = await Promise.all(names.map(async (name) => [`/${name}`, await readFile(join(app, name))] as const));
  const client = Buffer.from(await (await fetch(`${world.app}agarose.json`)).arrayBuffer());
  return new Map([...scripts, ["/agarose.json", client]]);
}

async function measure(
  { name, browser, killed }: Way,
  host: { readonly url: string; report(way: string): Promise<PageReport> },
  profile: string,
  { firefox, killAtMs }: { readonly firefox: string | undefined; readonly killAtMs: readonly number[] },
): Promise<PageReport> {
  const url = `${host.url}?way=${name}`;
  const port = await freePort();
  await mkdir(profile);
  const child = browser === "Firefox" ? startFirefox(firefox!, profile, url) : startChromium(profile, url, port);
  const ended = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${browser} ended with ${code} before its page had read`)));
  });
  try {
    const work = killed ? killWorkers(port, killAtMs) : undefined;
    const report = await Promise.race([host.report(name), ended]);
    await work;
    return report;
  } finally {
    child.kill();
    await ended.catch(() => {});
  }
}

function chromiumPath(): string {
  return process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium";
}

function startChromium(profile: string, url: string, port: number): ChildProcess {
  const { args = [] } = config.use?.launchOptions ?? {};
  const own = ["--headless=new", `--user-data-dir=${profile}`, `--remote-debugging-port=${port}`];
  return spawn(chromiumPath(), [...args, ...own, url], { stdio: "ignore" });
}

function startFirefox(path: string, profile: string, url: string): ChildProcess {
  return spawn(path, ["--headless", "--no-remote", "--profile", profile, url], { stdio: "ignore" });
}

/** Ends the worker at these moments, as the browser does when it wants its memory back; looks at nothing in between. */
async function killWorkers(port: number, atMs: readonly number[]): Promise<void> {
  const startMs = performance.now();
  for (const ms of atMs) {
    await sleep(startMs + ms - performance.now());
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
      readonly type: string;
      readonly webSocketDebuggerUrl: string;
    }[];
    const page = new WebSocket(targets.find(({ type }) => type === "page")!.webSocketDebuggerUrl);
    await new Promise((resolve) => page.addEventListener("open", resolve, { once: true }));
    const answered = new Promise<void>((resolve) => {
      page.addEventListener("message", ({ data }) => {
        if ((JSON.parse(String(data)) as { id?: number }).id === 2) resolve();
      });
    });
    page.send(JSON.stringify({ id: 1, method: "ServiceWorker.enable" }));
    page.send(JSON.stringify({ id: 2, method: "ServiceWorker.stopAllWorkers" }));
    await answered;
    page.close();
  }
}

async function versionOf(path: string): Promise<string> {
  const child = spawn(path, ["--version"], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  for await (const part of child.stdout) text += String(part);
  return /[\d.]+/.exec(text)?.[0] ?? "unknown";
}

function rowOf({ browser, what }: Way, report: PageReport, isRight: boolean, bytes: number): string[] {
  const { brokeOff, error, ms, reads } = report;
  const outcome = isRight ? "all bytes, right" : `${report.bytes} of ${bytes} bytes: ${error ?? "wrong"}`;
  const broke = brokeOff ? `after ${seconds(brokeOff.ms)} s, the page asked for the rest` : "no";
  return [browser, what, seconds(ms), outcome, broke, String(reads)];
}

function describe(
  rows: string[][],
  { bytes, mbit, killAtMs }: typeof LONG,
  chromium: string,
  firefox?: string,
): string {
  const kills = killAtMs.map(seconds).join(" and ");
  return [
    `${bytes / 1e6} MB (9+3), nothing cached, ${mbit} Mbit/s per transfer, nine transfers and the hedged ones at a time; one run each, ` +
      "all at the same time, in browsers of their own that no developer tools watch, because those keep workers alive. " +
      `*Killed* is by the DevTools protocol, ${kills} s after the start. A page whose plain \`fetch\` breaks off asks once more, with ` +
      "`range` and `if-range`. *Reads* are those that workers began: each after the first went on where the one before ended. " +
      "Bytes are compared by SHA-256.",
    table(["browser", "way", "took, s", "outcome", "body broke off", "reads"], rows),
    `${describeMachine(chromium)}${firefox ? ` Firefox ${firefox}.` : " Firefox is not installed."}`,
  ].join("\n\n");
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(0);
}
