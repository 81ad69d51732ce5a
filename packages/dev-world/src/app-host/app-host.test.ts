import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type AddressInfo } from "node:net";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createServer as createViteServer, type ViteDevServer } from "vite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { listenLocally } from "../listen-locally.ts";
import { DEVELOPMENT_KEY } from "@agarose/core/format";
import { startAppHost, type AppHost } from "./app-host.ts";

const FILES = new Map([["agarose-sw.js", new TextEncoder().encode("/* worker */")]]);

let edge: Server;
let edgeUrl: string;
let folder: string;
let host: AppHost | undefined;
const seen: { url: string | undefined; headers: IncomingMessage["headers"]; closed: Promise<void> }[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

async function start(app?: string): Promise<AppHost> {
  const world = { pops: [{ name: "fra", url: edgeUrl }], regions: [], state: { near: "fra" } } as never;
  host = await startAppHost({ world, app, dropInFiles: async () => FILES });
  return host;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-app-"));
  await writeFile(join(folder, "index.html"), "<title>Own</title>");
  await writeFile(
    join(folder, "agarose.json"),
    JSON.stringify({ prefix: "/media/", pops: [{ name: "own", url: "https://own.test" }] }),
  );
  edge = createServer((request, response) => {
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    seen.push({ url: request.url, headers: request.headers, closed });
    answer(request, response);
  });
  edgeUrl = await listenLocally(edge);
});

afterEach(async () => {
  await host?.close();
  host = undefined;
});

afterAll(async () => {
  edge.closeAllConnections();
  edge.close();
  await rm(folder, { recursive: true, force: true });
});

const publicKeys = [DEVELOPMENT_KEY.publicKey];

describe("without an app", () => {
  test("serves a blank page, the client configuration and the drop-in files, and nothing else", async () => {
    const { url } = await start();
    expect(await (await fetch(url)).text()).toContain("<main></main>");
    const config = (await (await fetch(`${url}agarose.json`)).json()) as object;
    expect(config).toEqual({ pops: [{ name: "fra", url: edgeUrl }], regions: [], publicKeys });
    const worker = await fetch(`${url}agarose-sw.js?config=/agarose.json`);
    expect(worker.headers.get("service-worker-allowed")).toBe("/");
    expect(await worker.text()).toBe("/* worker */");
    expect((await fetch(`${url}agarose-other.js`)).status).toBe(404);
    expect((await fetch(`${url}nothing`)).status).toBe(404);
  });

  test("selects PoPs and regions of the client configuration by name", async () => {
    const { url } = await start();
    expect(await (await fetch(`${url}agarose.json?pops=`)).json()).toMatchObject({ pops: [] });
    expect(await (await fetch(`${url}agarose.json?pops=fra`)).json()).toMatchObject({ pops: [{ name: "fra" }] });
  });
});

describe("an app's folder", () => {
  test("is served, and its configuration keeps all fields but PoPs, regions and public keys", async () => {
    const { url } = await start(folder);
    expect(await (await fetch(url)).text()).toContain("Own");
    const config = (await (await fetch(`${url}agarose.json`)).json()) as object;
    expect(config).toEqual({ prefix: "/media/", pops: [{ name: "fra", url: edgeUrl }], regions: [], publicKeys });
  });

  test("without a page says at once, and for each path, what to name instead", async () => {
    await writeFile(join(folder, "package.json"), "{}");
    await mkdir(join(folder, "public"));
    await writeFile(join(folder, "public/logo.svg"), "<svg/>");
    const { url, problem } = await start(join(folder, "public"));
    expect(problem).toMatch(/public has no index\.html, so a bundler copies .* next to/);
    const answered = await fetch(url);
    expect([answered.status, await answered.text()]).toEqual([404, `${problem}\n`]);
    expect(problem).toContain("agarose dev --app http://localhost:5173");
    expect((await fetch(`${url}logo.svg`)).status).toBe(200);
  });

  test("that does not exist is refused, and so is a server with TLS", async () => {
    await expect(start(join(folder, "nothing"))).rejects.toMatchObject({ code: "USAGE" });
    await expect(start("https://127.0.0.1:1")).rejects.toMatchObject({ code: "USAGE" });
  });
});

describe("an app's server", () => {
  test("answers all other paths", async () => {
    answer = (request, response) => void response.end(`own ${request.url}`);
    const { url, problem } = await start(edgeUrl);
    expect(problem).toBeUndefined();
    expect(await (await fetch(`${url}page?x=1`)).text()).toBe("own /page?x=1");
    expect(await (await fetch(`${url}agarose.json`)).json()).toMatchObject({ publicKeys });
  });

  test.each(["//other.test/x", "/a/../b?%2e"])("gets the path %s as the page has asked for it", async (path) => {
    answer = (request, response) => void response.end(request.url);
    const { hostname, port } = new URL((await start(edgeUrl)).url);
    const asked = httpRequest({ hostname, port, path }).end();
    const [answered] = (await once(asked, "response")) as [IncomingMessage];
    expect(await text(answered)).toBe(path);
  });

  test("that does not answer is a problem, and a 502 that names it", async () => {
    const { url, problem } = await start("http://127.0.0.1:1");
    expect(problem).toMatch(/http:\/\/127\.0\.0\.1:1\) does not answer \(ECONNREFUSED\): start it/);
    const response = await fetch(`${url}page`);
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("http://127.0.0.1:1");
  });
});

describe("a development server", () => {
  let project: string;
  let vite: ViteDevServer;

  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), "agarose-vite-"));
    await writeFile(join(project, "index.html"), '<script type="module" src="/main.js"></script>');
    await writeFile(join(project, "main.js"), "console.log(1);");
    vite = await createViteServer({
      root: project,
      configFile: false,
      logLevel: "silent",
      server: { host: "127.0.0.1", port: 0, watch: { usePolling: true, interval: 50 } },
    });
    await vite.listen();
  });

  afterAll(async () => {
    await vite.close();
    await rm(project, { recursive: true, force: true });
  });

  const viteUrl = (): string => `http://127.0.0.1:${(vite.httpServer!.address() as AddressInfo).port}`;

  /** Opens the socket as Vite's client does, which takes its token from its own source. */
  async function openSocket(url: string): Promise<{ socket: WebSocket; next: () => Promise<unknown> }> {
    const client = await (await fetch(`${url}@vite/client`)).text();
    const [, token] = /wsToken = "([^"]+)"/.exec(client)!;
    const socket = new WebSocket(`${url.replace("http", "ws")}?token=${token}`, "vite-hmr");
    const messages: unknown[] = [];
    let wake = (): void => {};
    socket.addEventListener("message", ({ data }) => {
      messages.push(JSON.parse(String(data)));
      wake();
    });
    const next = async (): Promise<unknown> => {
      while (messages.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return messages.shift();
    };
    return { socket, next };
  }

  test("reaches its page over the socket by which it reloads modules", async () => {
    const { url } = await start(viteUrl());
    const { socket, next } = await openSocket(url);
    expect(await next()).toEqual({ type: "connected" });
    expect((await fetch(`${url}main.js`)).status).toBe(200);
    await writeFile(join(project, "main.js"), "console.log(2);");
    expect(await next()).toMatchObject({ type: "full-reload" });
    const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    await host!.close();
    host = undefined;
    await closed;
  });

  test("and what it refuses is refused", async () => {
    const { url } = await start(viteUrl());
    expect(await refusalOf(url, "vite-hmr")).toBe("HTTP/1.1 400 Bad Request");
  });

  test("that is gone, or a folder without one, ends the socket with an error", async () => {
    expect(await refusalOf((await start("http://127.0.0.1:1")).url, "any")).toBe("HTTP/1.1 502 Bad Gateway");
    await host!.close();
    expect(await refusalOf((await start(folder)).url, "any")).toBe("HTTP/1.1 404 Not Found");
  });
});

/** The first line of the answer to a request for a socket with a token that nobody knows. */
async function refusalOf(url: string, protocol: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `GET /?token=wrong HTTP/1.1\r\nhost: ${hostname}:${port}\r\norigin: http://other.test\r\nconnection: upgrade\r\n` +
      `upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${"x".repeat(22)}==\r\n` +
      `sec-websocket-protocol: ${protocol}\r\n\r\n`,
  );
  return (await text(socket)).split("\r\n")[0]!;
}

describe("an object read without a service worker", () => {
  test("comes from the nearest PoP, with its range and its headers", async () => {
    answer = (_, response) => {
      response.writeHead(206, { "content-range": "bytes 1-2/9", "x-agarose-read": "mixed", "content-length": "2" });
      response.end("bc");
    };
    const { url } = await start();
    const response = await fetch(`${url}ec/photos/a%20b.jpg?x=1`, { headers: { range: "bytes=1-2" } });
    expect(response.status).toBe(206);
    expect(response.headers.get("content-range")).toBe("bytes 1-2/9");
    expect(response.headers.get("x-agarose-read")).toBe("mixed");
    expect(await response.text()).toBe("bc");
    expect(seen.at(-1)).toMatchObject({ url: "/o/photos/a%20b.jpg?x=1", headers: { range: "bytes=1-2" } });
  });

  test("streams: the first bytes arrive before the last ones exist", async () => {
    const rest = Promise.withResolvers<void>();
    answer = (_, response) => {
      response.writeHead(200);
      response.write("first");
      void rest.promise.then(() => response.end("last"));
    };
    const { url } = await start();
    const reader = (await fetch(`${url}ec/slow`)).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("first");
    rest.resolve();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("last");
  });

  test("ends at the PoP when the page aborts it", async () => {
    answer = (_, response) => void response.writeHead(200).write("first");
    const { url } = await start();
    const abort = new AbortController();
    const response = await fetch(`${url}ec/long`, { signal: abort.signal });
    await response.body!.getReader().read();
    abort.abort();
    await seen.at(-1)!.closed;
  });

  test("is a 502 with a code while the nearest PoP is down", async () => {
    const up = edgeUrl;
    edgeUrl = "http://127.0.0.1:1";
    const { url } = await start();
    edgeUrl = up;
    const response = await fetch(`${url}ec/photos/a.jpg`);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({
      error: { code: "SOURCE_FAILED", details: { edge: "http://127.0.0.1:1" } },
    });
  });
});
