import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startDemo } from "./server.ts";

const CONFIG = { prefix: "/ec/", pops: [{ name: "fra", url: "http://fra.test" }], regions: [] };

let folder: string;
let edge: Server;
let edgeUrl: string;
let demo: { url: string; close(): Promise<void> };
const seen: { url: string | undefined; headers: IncomingMessage["headers"]; closed: Promise<void> }[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-demo-"));
  await writeFile(join(folder, "agarose-sw.js"), "/* worker */");
  await writeFile(join(folder, "secret.js"), "/* not for the page */");
  edge = createServer((request, response) => {
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    seen.push({ url: request.url, headers: request.headers, closed });
    answer(request, response);
  });
  await new Promise<void>((resolve) => edge.listen(0, "127.0.0.1", resolve));
  edgeUrl = `http://127.0.0.1:${(edge.address() as AddressInfo).port}`;
  const world = { control: "http://control.test", config: CONFIG };
  demo = await startDemo({ world, edge: () => edgeUrl, serviceWorkerDir: folder });
});

afterAll(async () => {
  await demo.close();
  edge.closeAllConnections();
  edge.close();
  await rm(folder, { recursive: true, force: true });
});

describe("the page's host", () => {
  test("tells the page the control address and everybody the client configuration", async () => {
    const world = await (await fetch(`${demo.url}world.json`)).json();
    expect(world).toEqual({ control: "http://control.test", config: CONFIG });
    expect(await (await fetch(`${demo.url}agarose.json`)).json()).toEqual(CONFIG);
  });

  test("serves the page and its modules", async () => {
    expect(await (await fetch(demo.url)).text()).toContain("<title>Agarose");
    const module = await fetch(`${demo.url}src/main.ts`);
    expect(module.headers.get("content-type")).toContain("javascript");
  });

  test("serves the service worker for the whole origin, and nothing else of its folder", async () => {
    const worker = await fetch(`${demo.url}agarose-sw.js?config=/agarose.json`);
    expect(worker.headers.get("service-worker-allowed")).toBe("/");
    expect(await worker.text()).toBe("/* worker */");
    expect((await fetch(`${demo.url}secret.js`)).status).toBe(404);
  });
});

describe("an object read without a service worker", () => {
  test("is passed to the nearest PoP with its range, and its answer comes back as it is", async () => {
    answer = (_, response) => {
      response.writeHead(206, { "content-range": "bytes 1-2/9", "x-agarose-read": "mixed", "content-length": "2" });
      response.end("bc");
    };
    const response = await fetch(`${demo.url}ec/photos/a%20b.jpg?x=1`, { headers: { range: "bytes=1-2" } });
    expect(response.status).toBe(206);
    expect(response.headers.get("content-range")).toBe("bytes 1-2/9");
    expect(response.headers.get("x-agarose-read")).toBe("mixed");
    expect(await response.text()).toBe("bc");
    expect(seen.at(-1)).toMatchObject({ url: "/o/photos/a%20b.jpg?x=1", headers: { range: "bytes=1-2" } });
  });

  test("streams: the first bytes come before the last are there", async () => {
    const rest = Promise.withResolvers<void>();
    answer = (_, response) => {
      response.writeHead(200);
      response.write("first");
      void rest.promise.then(() => response.end("last"));
    };
    const reader = (await fetch(`${demo.url}ec/slow`)).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("first");
    rest.resolve();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("last");
  });

  test("ends at the PoP when the page gives it up", async () => {
    answer = (_, response) => void response.writeHead(200).write("first");
    const abort = new AbortController();
    const response = await fetch(`${demo.url}ec/long`, { signal: abort.signal });
    await response.body!.getReader().read();
    abort.abort();
    await seen.at(-1)!.closed;
  });

  test("is a 502 with a code while the nearest PoP is down", async () => {
    const up = edgeUrl;
    edgeUrl = "http://127.0.0.1:1";
    const response = await fetch(`${demo.url}ec/photos/a.jpg`);
    edgeUrl = up;
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({
      error: { code: "SOURCE_FAILED", details: { edge: "http://127.0.0.1:1" } },
    });
  });
});
