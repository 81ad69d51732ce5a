/** Reads in a real browser, from two blank pages of this machine: one with the service worker, one without. */
import { createServer } from "node:http";
import { AgaroseError } from "@agarose/core";
import type { Page } from "@playwright/test";
import { closeServer, listenLocally } from "../listen-locally.ts";

/** Options of the pages' server. */
export interface PageReadsOptions {
  /** The content of `agarose.json`. */
  readonly config: object;
  /** The drop-in files by name. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Path of a Chromium. Default: that of Playwright. */
  readonly executablePath?: string | undefined;
}

/** The result of a read in a page. */
export interface PageRead {
  /** From the call of `fetch` to the last byte. */
  readonly ms: number;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  readonly status: number;
  /** SHA-256 of the body in hex. */
  readonly sha256: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Two pages. Each read rejects with SOURCE_FAILED when its `fetch` does. */
export interface PageReads {
  readonly browser: string;
  /** Reads a path of the page's own origin through the service worker. */
  controlled(path: string): Promise<PageRead>;
  /** Reads a URL in the page that has no service worker. */
  plain(url: string): Promise<PageRead>;
  close(): Promise<void>;
}

/** Starts a server, Chromium and the pages. Rejects with USAGE where there is no browser. */
export async function startPageReads({ config, files, executablePath }: PageReadsOptions): Promise<PageReads> {
  const { chromium } = await import("@playwright/test").catch(sayWhatToInstall);
  const browser = await chromium
    .launch({ ...(executablePath !== undefined && { executablePath }), args: ["--no-sandbox"] })
    .catch(sayWhatToInstall);
  const server = createServer(({ url = "/" }, response) => {
    const name = new URL(url, "http://page").pathname.slice(1);
    const file = name === "agarose.json" ? JSON.stringify(config) : files.get(name);
    const type = name.endsWith(".js") ? "text/javascript" : name.endsWith(".json") ? "application/json" : "text/html";
    response.writeHead(name === "" || file !== undefined ? 200 : 404, { "content-type": type });
    response.end(file ?? "<!doctype html><title>reads</title>");
  });
  const close = async (): Promise<void> => {
    await browser.close();
    await closeServer(server);
  };
  try {
    const origin = await listenLocally(server);
    const [plain, controlled] = [await openPage(), await openPage()];
    await controlled.evaluate(takeWorker);
    return {
      browser: browser.version(),
      plain: (url) => readIn(plain, url),
      controlled: (path) => readIn(controlled, path),
      close,
    };

    async function openPage(): Promise<Page> {
      const page = await (await browser.newContext()).newPage();
      await page.goto(origin);
      return page;
    }
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs in the page. */
async function takeWorker(): Promise<void> {
  await navigator.serviceWorker.register("/agarose-sw.js?config=/agarose.json", { scope: "/" });
  if (navigator.serviceWorker.controller) return;
  await new Promise((resolve, reject) => {
    navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true });
    setTimeout(() => reject(new Error("the service worker took no control of its page within 60 s")), 60_000);
  });
}

/** Reads a URL in an open page. Rejects with SOURCE_FAILED when its `fetch` does, or takes longer than `timeoutMs`. */
export async function readIn(page: Page, url: string, timeoutMs?: number): Promise<PageRead> {
  const read = await page.evaluate(
    async ([address, limitMs]) => {
      const at = Date.now();
      const start = performance.now();
      try {
        const signal = limitMs === undefined ? null : AbortSignal.timeout(limitMs);
        const response = await fetch(address, { cache: "no-store", credentials: "omit", signal });
        const body = await response.arrayBuffer();
        const ms = performance.now() - start;
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
        return {
          ms,
          at,
          status: response.status,
          sha256: [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
          headers: Object.fromEntries(response.headers),
          text: body.byteLength <= 4096 ? new TextDecoder().decode(body) : "",
        };
      } catch (error) {
        return { error: String(error) };
      }
    },
    [url, timeoutMs] as const,
  );
  if (!("error" in read)) return read as PageRead;
  throw new AgaroseError("SOURCE_FAILED", `${url}: ${read.error}; check that it answers, and its CORS rules`, { url });
}

function sayWhatToInstall(cause: unknown): never {
  const how = "`npm install -D @playwright/test` and `npx playwright install chromium`, or name one with --chromium";
  throw new AgaroseError(
    "USAGE",
    `there is no browser to measure with: ${how} (${(cause as Error).message})`,
    {},
    cause,
  );
}
