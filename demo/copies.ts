/**
 * The contestants of Agarose: whole copies behind a CDN, over the links of the same world. Beside each PoP, a
 * CDN caches whole objects, as many bytes as the PoP may, and drops those that were not used for the longest time.
 */
import { createServer, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { ByteLru } from "@agarose/core/read";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import type { Uploader, World } from "@agarose/dev-world";
import { PHOTOS } from "./samples/index.ts";

/** Running CDNs. */
export interface Cdns {
  /** By PoP: `URL/1/KEY` is read from one copy, `URL/2/KEY` from two with failover. */
  readonly urls: Readonly<Record<string, string>>;
  close(): void;
}

/** Whole objects. */
type Cache = ByteLru<{ readonly content: Buffer; readonly bytes: number }>;

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
      const caches = [1, 2].map((): Cache => new ByteLru(cacheBytes));
      const server = createServer((request, response) => {
        const [, copies = "0", key = ""] = /^\/([12])\/(.*)$/.exec(request.url!) ?? [];
        const which = Number(copies) - 1;
        // A bucket may die in the middle of an object: the client sees that its response ends too early.
        answer(response, caches[which], buckets[which] ?? [], key, names.get(key)).catch(() => response.destroy());
      });
      const target = await listenLocally(server);
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
  if (cached) return void response.writeHead(200, { ...headers, "x-cdn": "hit" }).end(cached.content);
  for (const bucket of buckets) {
    const copy = await fetch(`${bucket}/${name}`).catch(() => undefined);
    if (!copy?.ok) continue;
    const [toClient, toCache] = copy.body!.tee();
    response.writeHead(200, { ...headers, "x-cdn": "miss" });
    const kept = buffer(toCache).then(
      (content) => cache.set(key, { content, bytes: content.length }),
      () => {},
    );
    for await (const part of toClient) response.write(part);
    response.end();
    return kept;
  }
  response.writeHead(502, { ...headers, "x-cdn": "miss" }).end("no bucket with a copy answers\n");
}

function byDistance(latencyMs: Readonly<Record<string, number>>): string[] {
  return Object.keys(latencyMs).toSorted((a, b) => latencyMs[a]! - latencyMs[b]!);
}
