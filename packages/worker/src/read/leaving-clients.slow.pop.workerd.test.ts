/** Clients that leave, stall or send HEAD, over real TCP: the memory of the isolate must come back. */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRequest } from "../../test/tcp-client.ts";
import { putCached, randomBytes, readBundle, startWorld, type TestWorld } from "../../test/world.ts";

const STRIPE_BYTES = 4 * 1024 * 1024;
/** More leases of one object than the memory of an isolate has room for. */
const CLIENTS = 75;

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ MANIFEST_TTL_SECONDS: "600" });
  await putCached(world, "video", randomBytes(2 * STRIPE_BYTES), { stripeBytes: STRIPE_BYTES });
  await world.put("other", randomBytes(6_000_000), { stripeBytes: STRIPE_BYTES });
});
afterAll(() => world.close());

const request = (method: string, path: string): Promise<Socket> => openRequest(world.url, { method, path });

const promised = async (): Promise<number> =>
  (await readBundle(`${world.url}/v1/read/video`, "video")).plan.cached.length;

/** Waits until the PoP promises cached chunks again; returns how many leases had to expire for that. */
async function expiredUntilPromised(): Promise<number> {
  const before = await expired();
  while ((await promised()) === 0) await new Promise((resolve) => setTimeout(resolve, 200));
  return (await expired()) - before;
}

const expired = async (): Promise<number> => (await world.status()).isolate.expiredReads;

describe("memory comes back", () => {
  test("at once from clients that leave a bundle", async () => {
    expect(await promised()).toBe(4);
    const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => request("GET", "/v1/read/video")));
    expect(await promised(), "the memory is taken: the fault fired").toBe(0);
    for (const socket of sockets) socket.destroy();
    expect(await expiredUntilPromised(), "the clients' leaving ended the leases").toBe(0);
    const response = await fetch(`${world.url}/o/other`);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  });

  test("at once from clients that leave `/o/`", async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => request("GET", "/o/other")));
    for (const socket of sockets) socket.destroy();
    expect(await expiredUntilPromised(), "the clients' leaving ended the leases").toBe(0);
  });

  test("HEAD of a bundle takes none", async () => {
    for (let i = 0; i < CLIENTS; i++) (await request("HEAD", "/v1/read/video")).destroy();
    expect(await promised()).toBe(4);
    const head = await fetch(`${world.url}/v1/read/video`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), head.headers.get("x-agarose-oic")]).toEqual([
      200,
      "application/vnd.agarose.bundle",
      "1.00",
    ]);
  });

  test("from clients that stall, as soon as another read needs it", async () => {
    const stalled = await Promise.all(Array.from({ length: CLIENTS }, () => request("GET", "/v1/read/video")));
    expect(await promised(), "the memory is taken: the fault fired").toBe(0);
    const before = await expired();
    const response = await fetch(`${world.url}/o/other`);
    expect(response.status).toBe(200);
    expect((await response.arrayBuffer()).byteLength).toBe(6_000_000);
    expect(await expired()).toBeGreaterThan(before);
    expect(await promised()).toBe(4);
    for (const socket of stalled) socket.destroy();
  });

  test("a client that takes its time, but takes bytes, gets the whole object", async () => {
    const { host, hostname, port } = new URL(world.url);
    let bytes = 0;
    const ended = new Promise<void>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(`GET /o/other HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      });
      socket.on("data", (data) => {
        bytes += data.length;
        socket.pause();
        setTimeout(() => socket.resume(), 40);
      });
      socket.on("error", reject).on("close", () => resolve());
    });
    await ended;
    expect(bytes).toBeGreaterThan(6_000_000);
  });

  test("at once from clients that close their side and read nothing", async () => {
    const sockets = await Promise.all(
      Array.from({ length: CLIENTS }, () => openRequest(world.url, { path: "/v1/read/video", isEnding: true })),
    );
    for (const socket of sockets) socket.destroy();
    expect(await expiredUntilPromised(), "the clients' leaving ended the leases").toBe(0);
  });

  test("a client that closes its side after the request is answered in whole, or not at all", async () => {
    const { host, hostname, port } = new URL(world.url);
    const answer = await new Promise<string>((resolve, reject) => {
      let text = "";
      const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () => {
        socket.end(`GET /o/other HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      });
      socket.setEncoding("latin1");
      socket.on("data", (data) => (text += data));
      socket.on("error", reject).on("close", () => resolve(text));
    });
    // workerd answers, and Node takes the client for gone.
    const end = answer.indexOf("\r\n\r\n") + 4;
    expect(answer === "" || answer.length - end === 6_000_000, `${answer.length} bytes`).toBe(true);
  });
});
