import { createServer } from "node:http";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { expect, test } from "vitest";
import { startCdns } from "./copies.ts";
import { PHOTOS } from "./samples/index.ts";

const CONTENT = Buffer.alloc(100_000, 7);

test("a bucket that dies in the middle of an object cuts the response, and the CDN goes on", async () => {
  let [isCut, cuts] = [false, 0];
  const bucket = createServer((_request, response) => {
    response.writeHead(200, { "content-length": CONTENT.length });
    if (!isCut) return void response.end(CONTENT);
    cuts++;
    response.write(CONTENT.subarray(0, 50_000), () => response.destroy());
  });
  const url = await listenLocally(bucket);
  const world = {
    // A cache of nothing, so that each read is a miss.
    options: { geography: { pops: ["p"], regionLatencyMs: { p: { a: 1, b: 2 } } }, cacheBytes: 0 },
    popBuckets: { p: { a: url, b: url } },
    linkBeside: async (_pop: string, target: string) => target,
  } as unknown as Parameters<typeof startCdns>[0];
  const cdns = await startCdns(world, { copy: async (key) => key });
  try {
    const read = async () => (await fetch(`${cdns.urls["p"]}/1/${PHOTOS[0]!.key}`)).arrayBuffer();
    isCut = true;
    await expect(read()).rejects.toThrow();
    expect(cuts).toBe(1);
    isCut = false;
    expect((await read()).byteLength).toBe(CONTENT.length);
  } finally {
    cdns.close();
    bucket.close();
  }
});
