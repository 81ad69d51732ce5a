/** A server of files as the origin, sound and lying. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { allOf, startThreeRegions, type ThreeRegions } from "../../test/three-regions.ts";
import { configOfFields } from "../config/config.ts";
import { openDeployment, type Deployment } from "../deployment.ts";

let world: ThreeRegions;
let server: Server;
let url: string;
let store: Deployment;
let files: Map<string, string>;
let fault: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
let fired: number;

// As long as an MD5, and none.
const etagOf = (text: string): string => `"${createHash("sha256").update(text).digest("hex").slice(0, 32)}"`;

function serve(request: IncomingMessage, response: ServerResponse): void {
  if (fault?.(request, response)) {
    fired++;
    return;
  }
  const text = files.get(request.url!);
  if (text === undefined) return void response.writeHead(404).end();
  if ((request.headers["if-match"] ?? etagOf(text)) !== etagOf(text)) return void response.writeHead(412).end();
  const described = { "content-type": "text/plain", "cache-control": "max-age=60", "set-cookie": "secret=1" };
  response.writeHead(200, { ...described, etag: etagOf(text), "content-length": Buffer.byteLength(text) });
  response.end(request.method === "HEAD" ? undefined : text);
}

beforeEach(async () => {
  files = new Map();
  fault = undefined;
  fired = 0;
  world = await startThreeRegions();
  server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/files`;
  store = await openDeployment({ ...world.config, origin: { url } });
});

afterEach(async () => {
  store.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await world.close();
});

const textOf = async (key: string): Promise<string> =>
  Buffer.concat(await allOf((await store.get(key)).body)).toString();

test("a key that the regions do not know is read from the URL once, and is theirs from then on", async () => {
  files.set("/files/a/K%C3%A4se%20%26%20co", "cheese");
  expect(await textOf("a/Käse & co")).toBe("cheese");
  files.clear();
  expect(await textOf("a/Käse & co")).toBe("cheese");
  const { contentType, headers } = await store.stat("a/Käse & co");
  const md5 = createHash("md5").update("cheese").digest("base64");
  expect([contentType, headers]).toEqual(["text/plain", { "cache-control": "max-age=60", "x-amz-checksum-md5": md5 }]);
  await expect(store.get("none")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
});

test("it cannot be listed, so that nothing is adopted, released or missed by a walk", async () => {
  for (const walk of [store.adopt(), store.release()]) {
    await expect(allOf<unknown>(walk)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  }
});

const answer =
  (status: number, headers: Record<string, string>, body = ""): NonNullable<typeof fault> =>
  ({ method }, response) => {
    response.writeHead(status, headers).end(method === "HEAD" ? undefined : body);
    return true;
  };

test.each<[string, NonNullable<typeof fault>]>([
  ["has no ETag", answer(200, { "content-length": "5" }, "plain")],
  ["has a weak ETag", answer(200, { "content-length": "5", etag: 'W/"a"' }, "plain")],
  ["says no length", answer(200, { etag: '"a"', "transfer-encoding": "chunked" }, "plain")],
  ["codes the content", answer(200, { etag: '"a"', "content-length": "5", "content-encoding": "br" }, "plain")],
  ["redirects", answer(302, { location: "/files/other" })],
  ["fails", answer(500, {})],
  ["hangs up", (request) => (request.socket.destroy(), true)],
  [
    "sends another length than it says of the object",
    ({ method }, response) => {
      response.writeHead(200, { etag: '"a"', "content-length": method === "HEAD" ? 5 : 4 });
      response.end(method === "HEAD" ? undefined : "plai");
      return true;
    },
  ],
  [
    "ends short",
    ({ method }, response) => {
      response.writeHead(200, { etag: '"a"', "content-length": 5 });
      if (method === "HEAD") response.end();
      else response.write("pl", () => response.destroy());
      return true;
    },
  ],
  [
    "changes with every request",
    ({ method }, response) => {
      response.writeHead(200, { etag: `"${fired}"`, "content-length": 5 }).end(method === "HEAD" ? undefined : "plain");
      return true;
    },
  ],
])("nothing is stored of an object of a server that %s", async (_what, lie) => {
  files.set("/files/note", "plain");
  files.set("/files/other", "other");
  fault = lie;
  await expect(store.get("note")).rejects.toMatchObject({
    code: expect.stringMatching(/^(SOURCE_FAILED|REPLACED_MEANWHILE)$/),
  });
  expect(fired).toBeGreaterThan(0);
  fault = undefined;
  expect(await allOf(store.list())).toEqual([]);
  expect(await textOf("note"), "later").toBe("plain");
});

test("an origin is a bucket, a URL, or both, and nothing less", () => {
  for (const origin of [{}, { bucket: "plain" }, { url, endpoint: "http://localhost" }]) {
    expect(() => configOfFields({ ...world.config, origin }, "test")).toThrow(/origin/);
  }
});
