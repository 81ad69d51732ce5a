/** Our codec inside a service worker of Chromium. */
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

import type { RemoteRequest } from "./remote-calls.ts";
import { Unavailable, type Contestant, type Subject, type Work } from "./subject.ts";

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"];
/** A page that is isolated from other origins gets a clock of 5 us instead of 100. */
const HEADERS = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

interface Answer {
  readonly implementations: string[];
  readonly milliseconds: number;
}

interface Chromium {
  readonly runtime: string;
  ask(request: RemoteRequest): Promise<Answer>;
  close(): Promise<void>;
}

/** `executablePath` as Playwright takes it; by default CHROMIUM_PATH, Playwright's own, or Debian's. */
export function oursInChromium(executablePath?: string): Contestant {
  let chromium: Chromium | undefined;
  return {
    name: "agarose in chromium",
    async prepare(work) {
      chromium ??= await startChromium(executablePath);
      const { implementations } = await chromium.ask({ work });
      return implementations.map((implementation) => subject(chromium!, work, implementation));
    },
    async close() {
      await chromium?.close();
    },
  };
}

function subject(chromium: Chromium, work: Work, implementation: string): Subject {
  return {
    implementation,
    runtime: chromium.runtime,
    async measure(iterations) {
      const { milliseconds } = await chromium.ask({ work, implementation, iterations });
      return (milliseconds * 1000) / iterations;
    },
  };
}

async function startChromium(executablePath?: string): Promise<Chromium> {
  const { chromium } = await import("@playwright/test").catch((error) => {
    throw new Unavailable("needs @playwright/test", { cause: error });
  });
  const path = [executablePath, process.env["CHROMIUM_PATH"], chromium.executablePath(), "/usr/bin/chromium"].find(
    (candidate) => candidate && existsSync(candidate),
  );
  if (!path) throw new Unavailable("needs Chromium: set CHROMIUM_PATH");
  const site = await startSite();
  const browser = await chromium.launch({ executablePath: path, args: ARGUMENTS }).catch((error) => {
    site.close();
    throw new Unavailable(`does not start: ${String(error).split("\n")[0]}`, { cause: error });
  });
  const page = await browser.newPage();
  await page.goto(site.url);
  await page.evaluate(async () => {
    await navigator.serviceWorker.register("/sw.js");
    await navigator.serviceWorker.ready;
  });
  return {
    runtime: `chromium ${browser.version()} service worker`,
    ask: (request) => page.evaluate(askServiceWorker, request),
    async close() {
      await browser.close();
      site.close();
    },
  };
}

/** Runs in the page. */
async function askServiceWorker(request: RemoteRequest): Promise<Answer> {
  const { active } = await navigator.serviceWorker.ready;
  const channel = new MessageChannel();
  return new Promise((resolve) => {
    channel.port1.addEventListener("message", (event) => resolve(event.data as Answer));
    channel.port1.start();
    active!.postMessage(request, [channel.port2]);
  });
}

async function startSite(): Promise<{ url: string; close(): void }> {
  const { build } = await import("esbuild");
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL(`service-worker.entry${extname(import.meta.url)}`, import.meta.url))],
    bundle: true,
    format: "iife",
    write: false,
    loader: { ".wasm": "binary" },
  });
  const script = bundle.outputFiles[0]!.text;
  const server = createServer((request, response) => {
    const isScript = request.url === "/sw.js";
    response.writeHead(200, { ...HEADERS, "content-type": isScript ? "text/javascript" : "text/html" });
    response.end(isScript ? script : "<!doctype html><title>bench</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}
