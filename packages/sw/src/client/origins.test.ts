/**
 * Whom a client asks, over real connections: hosts of its configuration, whatever plans, manifests and redirects say.
 * The foreign host listens, counts, and has all that a read could want.
 */
import type { Manifest, Plan, PlanRegion } from "@agarose/core/format";
import { javascriptCodec } from "@agarose/ec-wasm";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clientTrust, parseConfig, type ClientConfigInput } from "../common/config.ts";
import { fetchConfig } from "../common/config-file.ts";
import { browserPorts } from "../ports/browser-ports.ts";
import { ObjectClient } from "./object-client.ts";
import { OfflineStore } from "../offline/offline-store.ts";
import { popId } from "./latency-tracker.ts";
import { FakeCache } from "../../test/fake-cache.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";
import { Host } from "../../test/host.ts";

const KEY = "photos/cat.jpg";
const BYTES = sampleBytes(3_000);

let world: FakeWorld;
let own: Host;
let foreign: Host;
let manifest: Manifest;

beforeEach(async () => {
  world = new FakeWorld();
  manifest = world.put(KEY, BYTES);
  [own, foreign] = await Promise.all([Host.start(world.regions), Host.start(world.regions)]);
  own.plan = foreign.plan = planWith(() => own);
});

afterEach(async () => {
  await Promise.all([own.close(), foreign.close()]);
});

function planWith(hostOf: (region: string) => Host, more: Partial<Plan> = {}): Plan {
  const regions = manifest.placement.map((name): PlanRegion => ({
    name,
    url: `${hostOf(name).url}/${name}`,
    meanMs: 20,
    sdMs: 5,
  }));
  return { pop: "p", epoch: 1, version: manifest.version, manifest, cached: [], regions, delta: 1, ...more };
}

function configWith(regions: readonly string[]): ClientConfigInput {
  return {
    pops: [{ name: "p", url: `${own.url}/pop` }],
    regions: regions.map((name) => ({ name, url: `${own.url}/${name}` })),
    unsigned: true,
  };
}

function clientOf(config: ClientConfigInput): ObjectClient {
  return new ObjectClient(
    parseConfig(config, own.url),
    browserPorts(async () => javascriptCodec()),
  );
}

async function read(client: ObjectClient): Promise<Uint8Array> {
  const { body } = await client.answer({ key: KEY, method: "GET", headers: new Headers() });
  return new Uint8Array(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
}

const ofRegion = (name: string) => (path: string) => path.startsWith(`/${name}/`);

describe("a plan that names", () => {
  test("another address for a configured region has the configured one asked", async () => {
    own.plan = planWith(() => foreign);
    expect(await read(clientOf(configWith(manifest.placement)))).toEqual(BYTES);
    expect(foreign.asked).toEqual([]);
  });

  test("regions that are not configured has the others read, for manifests too", async () => {
    const [strange, ...configured] = manifest.placement as [string, ...string[]];
    own.plan = planWith((name) => (name === strange ? foreign : own));
    const client = clientOf(configWith(configured));
    expect(await read(client)).toEqual(BYTES);
    own.interfere = (request, response) => request.url!.startsWith("/pop/") && Boolean(response.writeHead(503).end());
    client.plans.purge(() => true);
    expect(await read(client)).toEqual(BYTES);
    expect(own.asked.some((path) => path.includes("/manifests/"))).toBe(true);
    expect(foreign.asked).toEqual([]);
    expect(own.asked.some(ofRegion(strange))).toBe(false);
  });

  test("too few configured regions fails with a code, and sends no request elsewhere", async () => {
    const configured = manifest.placement.slice(0, 3);
    own.plan = planWith((name) => (configured.includes(name) ? own : foreign));
    await expect(read(clientOf(configWith(configured)))).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
    expect(foreign.asked).toEqual([]);
  });

  test("a peer that is not configured, with or without an address, has that one left out", async () => {
    const peer = { chunks: [0, 1, 2, 3, 4, 5], meanMs: 0, sdMs: 0, url: `${foreign.url}/pop` };
    own.plan = planWith(() => own, {
      peers: ["q", foreign.url, `${foreign.url}/pop`].map((name) => ({ ...peer, name })),
    });
    expect(await read(clientOf(configWith(manifest.placement)))).toEqual(BYTES);
    expect(foreign.asked).toEqual([]);
  });

  test("regions is believed where the configuration leaves them to its PoPs", async () => {
    own.plan = planWith(() => foreign);
    expect(await read(clientOf(configWith([])))).toEqual(BYTES);
    expect(foreign.asked.length, "the foreign host can be reached and counts").toBeGreaterThan(0);
  });
});

describe("a manifest in the buckets that names regions which are not configured", () => {
  const withoutPop = (host: Host): void => {
    host.interfere = ({ url }, response) => url!.startsWith("/pop/") && Boolean(response.writeHead(503).end());
  };

  beforeEach(() => withoutPop(own));

  const strangersAsked = (configured: readonly string[]): string[] =>
    own.asked.filter((path) => !path.startsWith("/pop/") && !configured.some((name) => ofRegion(name)(path)));

  test("is read by any k regions that are, and by fewer not at all: the error names the others (property)", async () => {
    const seen = { read: 0, refused: 0 };
    const { placement } = manifest;
    // Every length is as likely: of subsets, few are small.
    const subsets = fc
      .integer({ min: 1, max: placement.length })
      .chain((length) => fc.subarray([...placement], { minLength: length, maxLength: length }));
    await fc.assert(
      fc.asyncProperty(subsets, async (configured) => {
        // Requests that the previous client cancelled may still arrive at its host.
        await own.close();
        own = await Host.start(world.regions);
        withoutPop(own);
        const client = clientOf(configWith(configured));
        if (configured.length >= manifest.k) {
          seen.read++;
          expect(await read(client)).toEqual(BYTES);
        } else {
          seen.refused++;
          const regions = manifest.placement.filter((name) => !configured.includes(name));
          await expect(read(client)).rejects.toMatchObject({ code: "REGION_UNKNOWN", details: { regions } });
        }
        expect(own.asked.some((path) => path.includes("/manifests/"))).toBe(true);
        expect(strangersAsked(configured)).toEqual([]);
      }),
      { numRuns: 40 },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
    expect(foreign.asked).toEqual([]);
  });

  test("fails when a bucket that it needs is down, and sends no request elsewhere", async () => {
    const configured = manifest.placement.slice(0, 4);
    const refuses = ofRegion(configured[3]!);
    let refused = 0;
    own.interfere = ({ url }, response) =>
      (url!.startsWith("/pop/") || (refuses(url!) && ++refused > 0)) && Boolean(response.writeHead(503).end());
    await expect(read(clientOf(configWith(configured)))).rejects.toMatchObject({
      code: "NOT_ENOUGH_CHUNKS",
      details: { needed: 4, available: 3 },
    });
    expect(refused).toBeGreaterThan(0);
    expect(strangersAsked(configured)).toEqual([]);
  });
});

test("a plan kept under an older configuration brings back none of its regions", async () => {
  const cache = new FakeCache() as unknown as Cache;
  const ports = browserPorts(async () => javascriptCodec());
  const stores: OfflineStore[] = [];
  const clientWith = (input: ClientConfigInput): ObjectClient => {
    const config = parseConfig(input, own.url);
    const store = new OfflineStore({
      ...config,
      ...ports,
      trust: clientTrust(config),
      bytes: 1_000_000,
      cache: async () => cache,
    });
    stores.push(store);
    return new ObjectClient(config, { ...ports, store });
  };
  own.plan = planWith(() => foreign);
  const before = clientWith(configWith([]));
  await before.answer({ key: KEY, method: "HEAD", headers: new Headers() });
  await expect.poll(() => stores[0]!.plan(KEY)).toMatchObject({ regions: own.plan.regions });
  foreign.asked.length = 0;

  own.interfere = (request, response) => request.url!.startsWith("/pop/") && Boolean(response.writeHead(503).end());
  const [first, ...others] = manifest.placement as [string, ...string[]];
  expect(await read(clientWith(configWith(others)))).toEqual(BYTES);
  expect(own.asked.some(ofRegion(others[0]!))).toBe(true);
  expect(own.asked.some(ofRegion(first))).toBe(false);
  expect(foreign.asked).toEqual([]);
});

describe("a redirect to a foreign host is not followed", () => {
  let redirected: string[];

  /** Answers paths with `part` in them by the same path on the foreign host. */
  function redirect(part: string): void {
    redirected = [];
    own.interfere = ({ url }, response) => {
      if (!url!.includes(part)) return false;
      redirected.push(url!);
      response.writeHead(307, { location: `${foreign.url}${url}` }).end();
      return true;
    };
  }

  afterEach(() => {
    expect(redirected.length, "the redirect was sent").toBeGreaterThan(0);
    expect(foreign.asked).toEqual([]);
  });

  test("when a PoP answers with one: the buckets are asked instead", async () => {
    redirect("/pop/v1/read/");
    expect(await read(clientOf(configWith(manifest.placement)))).toEqual(BYTES);
  });

  test("when a bucket answers a chunk with one: other chunks are asked for", async () => {
    const [first] = manifest.placement as [string];
    redirect(`/${first}/chunks/`);
    expect(await read(clientOf(configWith(manifest.placement)))).toEqual(BYTES);
  });

  test("when buckets answer manifests with one: the read fails with a code", async () => {
    own.plan = undefined;
    redirect("/manifests/");
    await expect(read(clientOf(configWith(manifest.placement)))).rejects.toMatchObject({ code: "NO_SOURCE" });
  });

  test("when a peer answers with one", async () => {
    redirect("/peer/v1/chunk/");
    const peers = [{ name: "q", chunks: [0, 1, 2, 3, 4, 5], meanMs: 0, sdMs: 0 }];
    own.plan = planWith(() => own, { peers });
    const { pops, ...rest } = configWith(manifest.placement);
    const client = clientOf({ ...rest, pops: [...pops!, { name: "q", url: `${own.url}/peer` }] });
    expect(await read(client)).toEqual(BYTES);
  });

  test("when a PoP answers a probe with one: it counts as failed", async () => {
    redirect("/healthz");
    const client = clientOf({
      ...configWith([]),
      pops: ["p", "q"].map((name) => ({ name, url: `${own.url}/${name}` })),
    });
    await client.probe();
    expect(["p", "q"].map((name) => client.latencies.isAvoided(popId(name)))).toEqual([true, true]);
  });

  test("when the configuration file is answered with one", async () => {
    redirect("/agarose.json");
    foreign.interfere = (_request, response) => Boolean(response.end(JSON.stringify(configWith([]))));
    const source = { url: `${own.url}/agarose.json`, prefix: "/ec/" };
    await expect(fetchConfig(source, { fetch, caches: undefined })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});
