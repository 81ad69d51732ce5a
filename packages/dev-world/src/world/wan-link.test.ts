import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NO_FAULTS, openLink, type Link, type LinkFaults, type LinkRecord } from "./wan-link.ts";

const BODY = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251));

describe("a link", () => {
  let target: Server;
  let link: Link;
  let faults: LinkFaults;
  let records: LinkRecord[];
  let hosts: (string | undefined)[];

  beforeAll(async () => {
    target = createServer((request, response) => {
      hosts.push(request.headers.host);
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const body = request.method === "PUT" ? Buffer.concat(parts) : BODY;
        response.writeHead(200, { "content-length": body.length }).end(body);
      });
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => target.close());

  beforeEach(async () => {
    faults = NO_FAULTS;
    records = [];
    hosts = [];
    link = await openLink({
      from: "client",
      to: "dublin",
      target: `http://127.0.0.1:${(target.address() as AddressInfo).port}`,
      latencyMs: () => 20,
      jitterSigma: 0,
      bytesPerSecond: () => undefined,
      faults: () => faults,
      random: () => 0,
      now: () => performance.now(),
      onRecord: (record) => records.push(record),
    });
  });
  afterEach(() => link.close());

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

  test("passes a request's body on", async () => {
    const response = await fetch(link.url, { method: "PUT", body: "sent" });
    expect(await response.text()).toBe("sent");
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
