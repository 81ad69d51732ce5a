import { createServer, type Server } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { listenLocally } from "../listen-locally.ts";
import { AccessLine } from "./access-line.ts";
import { Places } from "./places.ts";
import { NO_FAULTS, openLink, type Link, type LinkFaults, type LinkOptions, type LinkRecord } from "./wan-link.ts";

const BODY = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));

describe("a link", () => {
  let target: Server;
  let link: Link;
  let faults: LinkFaults;
  let places: Places;
  let records: LinkRecord[];
  let hosts: (string | undefined)[];
  let ranges: (string | undefined)[];

  beforeAll(async () => {
    target = createServer((request, response) => {
      hosts.push(request.headers.host);
      ranges.push(request.headers.range);
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const body = request.method === "PUT" ? Buffer.concat(parts) : BODY;
        response.writeHead(200, { "content-length": body.length }).end(body);
      });
    });
    await listenLocally(target);
  });
  afterAll(() => target.close());

  beforeEach(async () => {
    faults = NO_FAULTS;
    places = new Places();
    records = [];
    hosts = [];
    ranges = [];
    link = await linkTo(target);
  });
  afterEach(() => link.close());

  const linkTo = (server: TcpServer, access?: LinkOptions["access"]): Promise<Link> =>
    openLink({
      ...(access && { access }),
      from: "client",
      to: "dublin",
      target: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      latencyMs: () => 20,
      jitterSigma: 0,
      bytesPerSecond: () => undefined,
      faults: () => faults,
      places,
      random: () => 0,
      now: () => performance.now(),
      onRecord: (record) => records.push(record),
    });

  test("delays a request, passes it on unchanged with its Host, and records it", async () => {
    const response = await fetch(`${link.url}/a?b=c`, { headers: { range: "bytes=0-9" } });
    expect(Buffer.from(await response.arrayBuffer())).toEqual(BODY);
    expect(hosts).toEqual([new URL(link.url).host]);
    expect(records).toMatchObject([
      {
        from: "client",
        to: "dublin",
        path: "/a?b=c",
        range: "bytes=0-9",
        delayMs: 20,
        status: 200,
        outcome: "ok",
        bytes: 1000,
      },
    ]);
    expect(records[0]!.endMs! - records[0]!.atMs).toBeGreaterThanOrEqual(19);
  });

  test("shares the line of its client with the other links of that, at a rate that can change", async () => {
    let bytesPerSecond = 10_000;
    const access = { line: new AccessLine(), bytesPerSecond: () => bytesPerSecond };
    const links = [await linkTo(target, access), await linkTo(target, access)];
    onTestFinished(async () => void (await Promise.all(links.map((one) => one.close()))));
    const readBoth = async (): Promise<number> => {
      const startMs = performance.now();
      await Promise.all(links.map(async ({ url }) => (await fetch(url)).arrayBuffer()));
      return performance.now() - startMs;
    };
    // Two bodies of 1,000 bytes.
    expect(await readBoth()).toBeGreaterThanOrEqual(199);
    bytesPerSecond = 0;
    await (await fetch(links[0]!.url)).arrayBuffer();
    expect(records.map(({ bytes }) => bytes)).toEqual([1000, 1000, 1000]);
  });

  test("passes a request's body on", async () => {
    const response = await fetch(link.url, { method: "PUT", body: "sent" });
    expect(await response.text()).toBe("sent");
  });

  test("does not use a connection again, which its target may close just then", async () => {
    const closing = createTcpServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        socket.once("data", () => socket.destroy());
      });
    });
    await listenLocally(closing);
    onTestFinished(() => void closing.close());
    const linkToClosing = await linkTo(closing);
    onTestFinished(() => linkToClosing.close());
    for (let i = 0; i < 3; i++) expect(await (await fetch(linkToClosing.url)).text()).toBe("ok");
    expect(records).toMatchObject(Array.from({ length: 3 }, () => ({ outcome: "ok" })));
  });

  test("that is down cuts the connection", async () => {
    faults = { ...NO_FAULTS, down: true };
    await expect(fetch(link.url)).rejects.toThrow();
    expect(records).toMatchObject([{ outcome: "down" }]);
    expect(hosts).toEqual([]);
  });

  test("answers 503 at its error rate", async () => {
    faults = { ...NO_FAULTS, errorRate: 1 };
    const response = await fetch(link.url);
    expect(response.status).toBe(503);
    expect(records).toMatchObject([{ outcome: "error", status: 503 }]);
  });

  test("that corrupts flips exactly one byte", async () => {
    faults = { ...NO_FAULTS, corrupt: 1 };
    const received = Buffer.from(await (await fetch(link.url)).arrayBuffer());
    expect(received.filter((byte, i) => byte !== BODY[i])).toHaveLength(1);
    expect(records).toMatchObject([{ outcome: "corrupted" }]);
  });

  test("that truncates sends half the bytes with a Content-Length that agrees", async () => {
    faults = { ...NO_FAULTS, truncate: 1 };
    const response = await fetch(link.url);
    expect(response.headers.get("content-length")).toBe("500");
    expect(Buffer.from(await response.arrayBuffer())).toEqual(BODY.subarray(0, 500));
    expect(records).toMatchObject([{ outcome: "truncated" }]);
  });

  test("serves only so many requests at once, over all links to its target, in their order", async () => {
    faults = { ...NO_FAULTS, concurrency: 1 };
    const other = await linkTo(target);
    onTestFinished(() => other.close());
    await Promise.all([fetch(link.url), fetch(other.url), fetch(link.url)].map(async (one) => (await one).text()));
    expect(records).toMatchObject(Array.from({ length: 3 }, () => ({ outcome: "ok" })));
    const byEnd = records.toSorted((a, b) => a.endMs! - b.endMs!);
    expect(byEnd).toEqual(records.toSorted((a, b) => a.atMs - b.atMs));
    // Each waits for those before it to leave: no latency of 20 ms begins while another request has the place.
    for (const [i, { endMs, delayMs }] of byEnd.slice(1).entries()) {
      expect(byEnd[i + 1]!.waitMs).toBeGreaterThan(0);
      expect(endMs! - byEnd[i]!.endMs!).toBeGreaterThanOrEqual(delayMs - 1);
    }
  });

  test("gives the place of a client that leaves its queue to the next, and lets all go when the limit ends", async () => {
    faults = { ...NO_FAULTS, concurrency: 1 };
    const leave = await places.enter(() => 1, new AbortController().signal);
    const gone = new AbortController();
    const leaving = fetch(link.url, { signal: gone.signal });
    await expect.poll(() => records.length).toBe(1);
    const staying = [fetch(link.url), fetch(link.url)];
    await expect.poll(() => records.length).toBe(3);
    gone.abort();
    await expect(leaving).rejects.toThrow();
    await expect.poll(() => records[0]!.outcome).toBe("aborted");
    faults = NO_FAULTS;
    places.look();
    for (const answer of staying) expect((await answer).status).toBe(200);
    leave();
  });

  test("that ignores Range passes on everything, and says so", async () => {
    faults = { ...NO_FAULTS, ignoreRange: true };
    const response = await fetch(link.url, { headers: { range: "bytes=0-9" } });
    expect([response.status, Buffer.from(await response.arrayBuffer())]).toEqual([200, BODY]);
    await fetch(link.url);
    expect(ranges).toEqual([undefined, undefined]);
    expect(records).toMatchObject([{ outcome: "unranged" }, { outcome: "ok" }]);
  });

  test("multiplies its latency by its factor and by that of a straggler", async () => {
    faults = { ...NO_FAULTS, latencyFactor: 2, stragglers: { probability: 1, factor: 3 } };
    await (await fetch(link.url)).arrayBuffer();
    expect(records[0]!.delayMs).toBe(120);
  });

  test("notices that its client has gone while it was waiting", async () => {
    faults = { ...NO_FAULTS, latencyFactor: 1000 };
    const abort = new AbortController();
    const pending = fetch(link.url, { signal: abort.signal });
    await expect.poll(() => records.length).toBe(1);
    abort.abort();
    await expect(pending).rejects.toThrow();
    await expect.poll(() => records[0]!.outcome).toBe("aborted");
    expect(hosts).toEqual([]);
  });
});
