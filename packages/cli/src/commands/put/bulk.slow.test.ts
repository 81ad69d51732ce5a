import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { S3Store } from "@agarose/storage/buckets/s3-store";
import type { PutResult } from "@agarose/storage/objects/put-object";
import {
  CREDENTIALS,
  manifestName,
  REGIONS,
  spawnAgarose,
  startTestWorld,
  storesOf,
  type Fault,
  type World,
} from "../../../test/world.ts";

const FILES = 40;
const SLOW_DOWN =
  '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>';

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
  await mkdir(join(world.dir, "upload-many"));
  for (let file = 0; file < FILES; file++) {
    await writeFile(join(world.dir, "upload-many", `${file}.bin`), randomBytes(300));
  }
});

afterEach(() => world.close());

/** Takes so many requests at a time, each for 20 ms, and asks for fewer with SlowDown beyond. */
function limited(limit: number): Fault {
  let underWay = 0;
  return async (request, response) => {
    response.once("close", () => underWay--);
    if (++underWay <= limit) {
      await sleep(20);
      return false;
    }
    request.resume();
    response.writeHead(503, { "content-type": "application/xml" }).end(SLOW_DOWN);
    return true;
  };
}

const put = async () => {
  const { code, stdout, stderr } = await world.run(["put", "upload-many", "--json"]);
  const { objects } = JSON.parse(stdout.toString()) as { objects: { outcome: string; missing: number[] }[] };
  return { code, objects, stderr };
};

test("puts many files at once, and stores all of them in a store that asks for fewer requests", async () => {
  world.faults.set("tokyo", limited(4));
  const { code, objects } = await put();
  expect(code).toBe(0);
  expect(objects).toHaveLength(FILES);
  expect(objects.every(({ outcome }) => outcome === "stored")).toBe(true);
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  world.faults.clear();
  expect((await world.run(["repair", "--queued"])).code).toBe(0);
  expect((await world.run(["verify", "--quick"])).code).toBe(0);
});

/** Takes 5 s for the first chunk, which is longer than a put waits. */
function lateOnce(): Fault {
  let isFirst = true;
  return async (request) => {
    if (request.method !== "PUT" || !request.url!.includes("/chunks/") || !isFirst) return false;
    isFirst = false;
    world.fired.set("tokyo", 1);
    await sleep(5_000);
    return false;
  };
}

test("a region that is late once has all of its chunks when the command ends", async () => {
  world.faults.set("tokyo", lateOnce());
  const { code, objects, stderr } = await put();
  expect(world.fired.get("tokyo")).toBe(1);
  expect(code).toBe(0);
  expect(objects.filter(({ missing }) => missing.length > 0)).toEqual([]);
  expect(stderr).not.toContain("warning");
  expect((await world.run(["verify", "--quick"])).code).toBe(0);
});

test("sync completes what a late region was left out of, too", async () => {
  world.faults.set("tokyo", lateOnce());
  const { code, stderr } = await world.run(["sync", "upload-many", "all/"]);
  expect(world.fired.get("tokyo")).toBe(1);
  expect(code).toBe(0);
  expect(stderr).not.toContain("warning");
  expect((await world.run(["verify", "--quick"])).code).toBe(0);
});

test("a sync that is interrupted while it completes a late region removes nothing", async () => {
  expect((await world.run(["sync", "upload-many", "all/"])).code).toBe(0);
  for (let file = 1; file < FILES; file++) {
    await writeFile(join(world.dir, "upload-many", `${file}.bin`), randomBytes(301));
  }
  await rm(join(world.dir, "upload-many/0.bin"));
  const completing = Promise.withResolvers<void>();
  let lateChunk: string | undefined;
  let chunks = 0;
  let silence: Promise<unknown> | undefined;
  world.faults.set("tokyo", async (request, _response, name) => {
    if (name === lateChunk) {
      // It hangs, so that the signal comes in the middle.
      completing.resolve();
      return true;
    }
    const isChunk = request.method === "PUT" && name.startsWith("chunks/");
    // Some objects have all of their chunks, so the region is worth another try.
    if (lateChunk === undefined && isChunk && ++chunks === FILES / 2) {
      lateChunk = name;
      return true;
    }
    // From then on it answers nothing for a while, so a put omits it.
    if (lateChunk) await (silence ??= sleep(5_000));
    return false;
  });
  const args = ["--config", world.configPath, "sync", "upload-many", "all/", "--delete"];
  const { code, stderr } = await spawnAgarose(args, {
    cwd: world.dir,
    killWhen: completing.promise,
    killSignal: "SIGINT",
  });
  expect(lateChunk).toBeDefined();
  expect(code).not.toBe(0);
  // Objects beside the late one leave the region out, too. Only those that come before it are whole.
  expect(stderr).toMatch(/\d objects? not whole in every region/u);
  world.faults.clear();
  const { stdout } = await world.run(["ls", "--json"]);
  expect(stdout.toString()).toContain('"all/0.bin"');
});

test("a region that takes nothing is left for a repair, and sync says so", async () => {
  world.faults.set("tokyo", (request, response) => {
    if (request.method !== "PUT") return false;
    request.resume();
    response.writeHead(500).end();
    return true;
  });
  const { code, stderr } = await world.run(["sync", "upload-many", "all/"]);
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(code).toBe(0);
  expect(stderr).toContain(
    `warning: ${FILES} objects not whole in every region: run \`agarose repair --queued\` later`,
  );
  world.faults.clear();
  expect((await world.run(["repair", "--queued"])).code).toBe(0);
  expect((await world.run(["verify", "--quick"])).code).toBe(0);
});

test("an object of two copies in six regions takes 10 requests when its key is new, 11 when it is not, and 7 when it goes", async () => {
  await world.close();
  world = await startTestWorld({ auto: true, stripeBytes: 1_000_000, survive: { regions: 1, providers: 1 } });
  const folder = join(world.dir, "upload-copies");
  const write = async (): Promise<void> => {
    await mkdir(folder, { recursive: true });
    for (let file = 0; file < FILES; file++) await writeFile(join(folder, `${file}.bin`), randomBytes(18_000));
  };
  const requests = new Map<string, number>();
  /** Requests for many objects at once: batches, listings, and removals. */
  let shared = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (_request, _response, name) => {
      const key = /^(?:manifests|chunks|claims)\/([^!]+)!/.exec(name)?.[1];
      if (key !== undefined) requests.set(key, (requests.get(key) ?? 0) + 1);
      // The others are keys in force, looked up once in some seconds, and notes for a repair, on a busy machine.
      else if (name === "" || name.startsWith("claims/")) shared++;
      return false;
    });
  }
  for (const expected of [10, 11]) {
    await write();
    const { code, stdout } = await world.run(["put", "upload-copies", "--json"]);
    expect(code).toBe(0);
    expect(requests.size).toBe(FILES);
    // A busy machine makes regions late: an object that a region was left out of takes fewer requests.
    const { objects } = JSON.parse(stdout.toString()) as { objects: PutResult[] };
    const everywhere = objects.filter(({ regionsWithoutManifest }) => regionsWithoutManifest.length === 0);
    const counts = everywhere.map(({ key }) => requests.get(key)!);
    // A request that takes a second brings spares, so the least counts.
    expect(Math.min(...counts)).toBe(expected);
    expect(shared).toBeGreaterThan(0);
    expect(shared).toBeLessThanOrEqual(FILES);
    expect(await world.names("claims/")).toEqual([]);
    requests.clear();
    shared = 0;
  }
  expect((await world.run(["rm", "--recursive", "upload-copies", "--yes"])).code).toBe(0);
  // Requests that remove chunks have their names in the body.
  expect(Math.min(...requests.values())).toBe(7);
  expect(requests.size).toBe(FILES);
  expect(await world.names("claims/")).toEqual([]);
});

test("an object of two copies in six regions takes 34 requests when it comes back, and 19 when it expires", async () => {
  await world.close();
  let aheadMs = -2 * 3_600_000;
  const nowMs = () => Date.now() + aheadMs;
  world = await startTestWorld({ nowMs, auto: true, stripeBytes: 1_000_000, survive: { regions: 1, providers: 1 } });
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  const configure = (more: object) => writeFile(world.configPath, JSON.stringify({ ...json, ...more }));
  await configure({ keep: [{ prefix: "", time: "30d" }] });
  const keys = Array.from({ length: FILES }, (_, file) => `upload-copies/${file}.bin`);
  await mkdir(join(world.dir, "upload-copies"), { recursive: true });
  for (const key of keys) await writeFile(join(world.dir, key), randomBytes(18_000));
  expect((await world.run(["put", "upload-copies"])).code).toBe(0);
  expect((await world.run(["rm", ...keys])).code).toBe(0);
  const requests = new Map<string, number>();
  for (const region of REGIONS) {
    world.faults.set(region, ({ url = "" }, _response, name) => {
      const listed = new URL(url, "http://store").searchParams.get("prefix") ?? "";
      const key = /^(?:manifests|chunks|claims|history)\/([^!]+)!/.exec(name || listed)?.[1];
      if (key !== undefined) requests.set(key, (requests.get(key) ?? 0) + 1);
      return false;
    });
  }
  const counted = async (args: readonly string[]): Promise<number> => {
    requests.clear();
    expect((await world.run(args)).code).toBe(0);
    expect(requests.size).toBe(FILES);
    expect(await world.names("claims/")).toEqual([]);
    return Math.min(...requests.values());
  };
  expect(await counted(["rm", "--undelete", ...keys])).toBe(34);
  for (const key of keys.slice(0, 3)) expect(await world.get(key)).toEqual(await readFile(join(world.dir, key)));
  aheadMs = 0;
  await configure({ expire: [{ prefix: "upload-", time: "1h" }] });
  expect(await counted(["expire", "--yes"])).toBe(19);
});

test("rm of many objects removes all claims at once, and sync --delete does", async () => {
  for (const removal of [
    ["rm", "--recursive", "upload-many", "--yes"],
    ["sync", "upload-one", "upload-many/", "--delete", "--yes"],
  ]) {
    expect((await put()).code).toBe(0);
    await mkdir(join(world.dir, "upload-one"), { recursive: true });
    await writeFile(join(world.dir, "upload-one/0.bin"), "one");
    let removals = 0;
    for (const region of REGIONS) {
      world.faults.set(region, ({ method, url }) => {
        if (method === "POST" && url!.includes("delete=")) removals++;
        return false;
      });
    }
    expect((await world.run(removal)).code).toBe(0);
    world.faults.clear();
    // One for the chunk of each object in each region, and some for all claims.
    expect(removals).toBeGreaterThan(0);
    expect(removals).toBeLessThan(REGIONS.length * (FILES + FILES / 4));
    expect(await world.names("claims/")).toEqual([]);
  }
});

test("keys that another writer takes after the listing are put above it", async () => {
  const keys = Array.from({ length: FILES }, (_, file) => `upload-many/${file}.bin`);
  const manifests = await Promise.all(
    keys.map(async (key) => {
      await world.put(key, Buffer.from(`another ${key}`));
      return { name: manifestName(key), bytes: await world.read(REGIONS[0], manifestName(key)) };
    }),
  );
  const names = manifests.map(({ name }) => name);
  for (const store of world.stores) await store.remove(names);
  // Claims come after the listing, and wait until the other writer has ended.
  let restored: Promise<unknown> | undefined;
  const restore = (): Promise<unknown> => {
    const store = (region: string, { name, bytes }: (typeof manifests)[number]) =>
      world.store(region).put(name, bytes, { bytes: bytes.length, contentType: "application/json" });
    return Promise.all(REGIONS.flatMap((region) => manifests.map((manifest) => store(region, manifest))));
  };
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method === "PUT" && name.startsWith("claims/")) await (restored ??= restore());
      return false;
    });
  }
  const { code, objects } = await put();
  expect(restored).toBeDefined();
  expect(objects).toMatchObject(keys.map(() => ({ outcome: "stored", generation: 2 })));
  expect(code).toBe(0);
  for (const key of keys.slice(0, 3)) expect((await world.get(key)).toString()).not.toBe(`another ${key}`);
});

/** Answers 403 to what `matches` says. */
function denied(matches: (url: string) => boolean): Fault {
  return (request, response) => {
    if (!matches(request.url ?? "")) return false;
    request.resume();
    response.writeHead(403, { "content-type": "application/xml" }).end("<Error><Code>AccessDenied</Code></Error>");
    return true;
  };
}

test("keys that may not list store many files, and keys that may do nothing are an error of each", async () => {
  world.faults.set(
    "tokyo",
    denied((url) => url.includes("list-type=2")),
  );
  const stored = await put();
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(stored.code).toBe(0);
  expect(stored.objects.every(({ outcome }) => outcome === "stored")).toBe(true);
  world.faults.set(
    "tokyo",
    denied(() => true),
  );
  const { code, objects } = await put();
  expect(code).toBe(1);
  expect(objects).toMatchObject(objects.map(() => ({ outcome: "failed", error: { code: "CREDENTIALS_REFUSED" } })));
});

test("what is there already is not sent again", async () => {
  expect((await put()).code).toBe(0);
  let sent = 0;
  let read = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      if (request.method === "PUT") sent++;
      if (request.method === "GET" && name.startsWith("manifests/")) read++;
      return false;
    });
  }
  const again = await put();
  expect(again.objects.every(({ outcome }) => outcome === "unchanged")).toBe(true);
  expect(sent).toBe(0);
  // One region shows what all of them list. A late one brings the others.
  expect(read).toBeGreaterThanOrEqual(FILES);
  expect(read).toBeLessThan(3 * FILES);
});

test("a version that comes after the listing is seen, and so is one that a region has missed", async () => {
  expect((await put()).code).toBe(0);
  const [late, missed] = ["upload-many/0.bin", "upload-many/1.bin"];
  const before = await world.read("tokyo", manifestName(missed));
  await world.put(missed, Buffer.from("newer in all regions but tokyo"));
  await world
    .store("tokyo")
    .put(manifestName(missed), before, { bytes: before.length, contentType: "application/json" });
  let replaced: Promise<unknown> | undefined;
  // It calls the server by another name, so that only the command's requests wait until it is done.
  const regions = world.config.regions.map((region) => ({
    ...region,
    endpoint: region.endpoint!.replace("127.0.0.1", "localhost"),
  }));
  const stores = storesOf({ ...world.config, regions }, CREDENTIALS);
  for (const region of REGIONS) {
    world.faults.set(region, async (request, _response, name) => {
      if (request.method !== "GET" || name !== manifestName(late)) return false;
      if (request.headers.host?.startsWith("localhost")) return false;
      await (replaced ??= world.put(late, Buffer.from("replaced meanwhile"), { stores }));
      return false;
    });
  }
  const { code, stdout } = await world.run(["put", "upload-many", "--json"]);
  expect([code, replaced !== undefined]).toEqual([0, true]);
  world.faults.clear();
  const { objects } = JSON.parse(stdout.toString()) as { objects: PutResult[] };
  const stored = objects.filter(({ outcome }) => outcome === "stored").map(({ key }) => key);
  expect(stored.toSorted()).toEqual([late, missed]);
  for (const key of stored) expect((await world.get(key)).equals(await readFile(join(world.dir, key)))).toBe(true);
});

test("a store reports each try that was refused for its rate, also those that succeed later", async () => {
  let refusals = 1;
  world.faults.set("paulo", (request, response) => {
    if (refusals-- <= 0) return false;
    request.resume();
    response.writeHead(503, { "content-type": "application/xml" }).end(SLOW_DOWN);
    return true;
  });
  let throttled = 0;
  const region = world.config.regions.find(({ name }) => name === "paulo")!;
  const store = new S3Store(region, { credentials: CREDENTIALS, attempts: 3, onThrottle: () => throttled++ });
  await store.put("a", Buffer.from("1"), { bytes: 1, contentType: "text/plain" });
  store.close();
  expect(throttled).toBe(1);
  expect((await world.read("paulo", "a")).toString()).toBe("1");
});
