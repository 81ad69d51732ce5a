/**
 * The app of the long reads: a page that reads one object as its query says, and posts the result. No driver controls
 * the browser, because a browser with attached developer tools does not end its service workers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { listenLocally } from "@agarose/dev-world/listen-locally";

/** The result of a page's read. */
export interface PageReport {
  readonly bytes: number;
  readonly sha256: string;
  readonly ms: number;
  /** How many reads the service worker began: one more than how often it was ended. */
  readonly reads: number;
  /** When the body ended with an error, and which. A page that requests the rest itself continues there. */
  readonly brokeOff?: { readonly ms: number; readonly error: string };
  readonly error?: string;
}

export interface LongReadHost {
  readonly url: string;
  /** Resolves with the report of the page that was opened with `?way=<way>`. */
  report(way: string): Promise<PageReport>;
  close(): Promise<void>;
}

/** @param files by path, with the leading slash; all are scripts but those that end in `.json`. */
export async function startLongReadHost(files: ReadonlyMap<string, Buffer>, key: string): Promise<LongReadHost> {
  const reports = new Map<string, PromiseWithResolvers<PageReport>>();
  const reportOf = (way: string): PromiseWithResolvers<PageReport> => {
    if (!reports.has(way)) reports.set(way, Promise.withResolvers());
    return reports.get(way)!;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url!, "http://host");
    const file = files.get(pathname);
    if (request.method === "POST") {
      reportOf(searchParams.get("way")!).resolve((await json(request)) as PageReport);
      response.writeHead(204).end();
    } else if (pathname === "/") {
      response.writeHead(200, { "content-type": "text/html" }).end(pageOf(key));
    } else if (file) {
      const type = pathname.endsWith(".json") ? "application/json" : "text/javascript";
      response.writeHead(200, { "content-type": type, "cache-control": "no-store" }).end(file);
    } else {
      response.writeHead(404).end();
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  const url = await listenLocally(server);
  return {
    url: `${url}/`,
    report: (way) => reportOf(way).promise,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pageOf(key: string): string {
  return `<!doctype html><title>A long read</title><script type="module">
    import { register } from "/agarose.js";
    (${readInPage.toString()})(register, ${JSON.stringify(key)});
  </script>`;
}

type Register = () => Promise<{
  fetch(key: string): Promise<Response>;
  addEventListener(type: "read", listener: (event: { readonly data: { readonly type: string } }) => void): void;
}>;

/** Runs in the page, as text. */
async function readInPage(register: Register, key: string): Promise<void> {
  const way = new URLSearchParams(location.search).get("way")!;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const seen: { reads: number; brokeOff?: object; error?: string } = { reads: 0 };
  const startMs = performance.now();
  const drain = async (response: Response): Promise<Response> => {
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const reader = response.body!.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parts.push(part.value as Uint8Array<ArrayBuffer>);
    }
    return response;
  };
  try {
    const agarose = await register();
    agarose.addEventListener("read", ({ data }) => void (seen.reads += Number(data.type === "read-start")));
    if (way.includes("handle")) {
      await drain(await agarose.fetch(key));
    } else {
      const response = await fetch(`/ec/${key}`);
      await drain(response).catch(async (cause: unknown) => {
        seen.brokeOff = { ms: performance.now() - startMs, error: String(cause) };
        const at = parts.reduce((sum, { length }) => sum + length, 0);
        await drain(
          await fetch(`/ec/${key}`, { headers: { range: `bytes=${at}-`, "if-range": response.headers.get("etag")! } }),
        );
      });
    }
  } catch (cause) {
    seen.error = String(cause);
  }
  const whole = await new Blob(parts).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const report = { ...seen, bytes: whole.byteLength, sha256, ms: performance.now() - startMs };
  await fetch(`/report?way=${way}`, { method: "POST", body: JSON.stringify(report) });
}
