/**
 * What the page compares Agarose with: whole copies behind a CDN, over the links of the same world. Beside each PoP, a
 * CDN caches whole objects, as many bytes as the PoP may, and drops those that were not used for the longest time.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Uploader, World } from "@agarose/dev-world";
import { PHOTOS } from "./samples/index.ts";

/** Running CDNs. */
export interface Cdns {
  /** By PoP: `URL/1/KEY` is read from one copy, `URL/2/KEY` from two with failover. */
  readonly urls: Readonly<Record<string, string>>;
  close(): void;
}

/** How the world is used. */
type Ports = Pick<World, "options" | "popBuckets" | "linkBeside">;

/**
 * Stores copies of the photographs in the two regions nearest to the first PoP, and starts the CDNs. Their caches are
 * warm: each photograph was read once.
 */
export async function startCdns(world: Ports, uploader: Pick<Uploader, "copy">): Promise<Cdns> {
  const { geography, cacheBytes } = world.options;
  const [home] = geography.pops as [string];
  const origins = byDistance(geography.regionLatencyMs[home]!).slice(0, 2);
  const names = new Map<string, string>();
  for (const { key } of PHOTOS) for (const region of origins) names.set(key, await uploader.copy(key, region));
  const urls: Record<string, string> = {};
  const servers = await Promise.all(
    geography.pops.map(async (pop) => {
      const near = byDistance(geography.regionLatencyMs[pop]!).filter((region) => origins.includes(region));
      const bucketsOf = (regions: readonly string[]): string[] => regions.map((name) => world.popBuckets[pop]![name]!);
      const buckets = [bucketsOf(origins.slice(0, 1)), bucketsOf(near)];
      const caches = [new Cache(cacheBytes), new Cache(cacheBytes)];
      const server = createServer((request, response) => {
        const [, copies = "0", key = ""] = /^\/([12])\/(.*)$/.exec(request.url!) ?? [];
        const which = Number(copies) - 1;
        void answer(response, caches[which], buckets[which] ?? [], key, names.get(key));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      for (const copies of [1, 2]) {
        for (const { key } of PHOTOS) await (await fetch(`${target}/${copies}/${key}`)).arrayBuffer();
      }
      urls[pop] = await world.linkBeside(pop, target);
      return server;
    }),
  );
  return {
    urls,
    close() {
      for (const server of servers) server.close().closeAllConnections();
    },
  };
}

/** Answers from the cache, or from the first bucket that has the copy. */
async function answer(
  response: ServerResponse,
  cache: Cache | undefined,
  buckets: readonly string[],
  key: string,
  name: string | undefined,
): Promise<void> {
  const headers = { "access-control-allow-origin": "*", "access-control-expose-headers": "x-cdn" };
  if (!cache || name === undefined) return void response.writeHead(404, headers).end();
  const cached = cache.get(key);
  if (cached) return void response.writeHead(200, { ...headers, "x-cdn": "hit" }).end(cached);
  for (const bucket of buckets) {
    const copy = await fetch(`${bucket}/${name}`).catch(() => undefined);
    if (!copy?.ok) continue;
    const [toClient, toCache] = copy.body!.tee();
    response.writeHead(200, { ...headers, "x-cdn": "miss" });
    const kept = buffer(toCache).then((bytes) => cache.put(key, bytes));
    for await (const part of toClient) response.write(part);
    response.end();
    return kept.catch(() => {});
  }
  response.writeHead(502, { ...headers, "x-cdn": "miss" }).end("no bucket with a copy answers\n");
}

/** Whole objects, least recently used first. */
class Cache {
  readonly #held = new Map<string, Buffer>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: string): Buffer | undefined {
    const bytes = this.#held.get(key);
    if (bytes) {
      this.#held.delete(key);
      this.#held.set(key, bytes);
    }
    return bytes;
  }

  put(key: string, bytes: Buffer): void {
    this.#bytes += bytes.length - (this.#held.get(key)?.length ?? 0);
    this.#held.delete(key);
    this.#held.set(key, bytes);
    for (const [oldest, { length }] of this.#held) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#held.delete(oldest);
      this.#bytes -= length;
    }
  }
}

function byDistance(latencyMs: Readonly<Record<string, number>>): string[] {
  return Object.keys(latencyMs).toSorted((a, b) => latencyMs[a]! - latencyMs[b]!);
}
