import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { access, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { heapInUse } from "../../heap.ts";
import { chunkName, roundRobin } from "@agarose/core/format";
import { repairObject } from "@agarose/storage/repair/repair-object";
import type { Config, RegionConfig } from "@agarose/storage/config/config";
import type { PutResult } from "@agarose/storage/objects/put-object";
import type { ListedObject, Store } from "@agarose/storage/buckets/store";
import { verdictByListing } from "@agarose/storage/listing/listed-verdict";
import { walkObjects } from "@agarose/storage/listing/walk-objects";
import { chunkPlace, CREDENTIALS, DOWN, manifestName, REGIONS, startTestWorld, type World } from "../../world.ts";

interface Line {
  readonly key?: string;
  readonly state?: string;
  readonly outcome?: string;
  readonly summary?: Record<string, unknown>;
}

let world: World;
/** Requests to the regions: method, then name, or LIST and a prefix. */
let asked: string[];

beforeEach(async () => {
  world = await startTestWorld();
  asked = [];
  for (const region of REGIONS) world.faults.set(region, note);
});

afterEach(() => world.close());

function note(request: { method?: string | undefined; url?: string | undefined }, _response: unknown, name: string) {
  const isList = name === "" && request.url?.includes("list-type");
  asked.push(isList ? "LIST" : `${request.method} ${name}`);
  return false;
}

const linesOf = (stdout: Buffer): Line[] =>
  stdout
    .toString()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
const keysOf = (lines: readonly Line[]): string[] => lines.flatMap(({ key }) => key ?? []);
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

test.each(["ls", "verify --json", "ls --json-lines"])(
  "%s ends in silence when the reader of stdout is gone",
  async (verb) => {
    for (const key of ["a", "b", "c"]) await world.put(key, randomBytes(50));
    const script = fileURLToPath(new URL("../../../bin/agarose.js", import.meta.url));
    const args = [process.execPath, script, ...verb.split(" "), "--config", world.configPath];
    const env = {
      ...process.env,
      AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    };
    const shell = spawn("bash", ["-c", 'set -o pipefail; "$@" | true', "bash", ...args], {
      env,
      stdio: ["ignore", "inherit", "pipe"],
    });
    let stderr = "";
    shell.stderr.on("data", (part: Buffer) => (stderr += part.toString()));
    const code = await new Promise((resolve) => shell.once("close", resolve));
    expect([code, stderr]).toEqual([141, ""]);
  },
);

describe("a walk that is killed", () => {
  test("by SIGKILL continues after its cursor, and still fails for what it had found before", async () => {
    const KEYS = Array.from({ length: 40 }, (_, index) => `walk/${String(index).padStart(3, "0")}`);
    for (const key of KEYS) await world.put(key, randomBytes(50));
    const put = await world.put(KEYS[2]!, randomBytes(60));
    await world.tamper(...chunkPlace(put, 1), () => undefined);
    const cursor = join(world.dir, "upload-cursor");
    const args = ["verify", "--prefix", "walk/", "--json-lines", "--cursor", cursor];
    for (const region of REGIONS) {
      world.faults.set(region, async (request, response, name) => {
        note(request, response, name);
        await sleep(15);
        return false;
      });
    }
    const enough = Promise.withResolvers<void>();
    let printed = "";
    const killed = await world.spawn(args, {
      killWhen: enough.promise,
      killSignal: "SIGKILL",
      onStdout(part) {
        printed += part.toString();
        if (printed.split("\n").length > 20) enough.resolve();
      },
    });
    expect(killed.code).toBe(-1);
    expect(await exists(cursor)).toBe(true);
    const before = keysOf(linesOf(Buffer.from(printed.slice(0, printed.lastIndexOf("\n")))));
    expect(before.length).toBeLessThan(KEYS.length);

    asked = [];
    const again = await world.spawn(args);
    const lines = linesOf(again.stdout);
    const after = keysOf(lines);
    expect(after.length).toBeLessThan(KEYS.length);
    expect([...new Set([...before, ...after])].toSorted()).toEqual(KEYS);
    expect(after).not.toContain(KEYS[2]);
    expect(asked.filter((one) => one.includes(manifestName(KEYS[2]!)))).toEqual([]);
    // The damage is in the part that was done before.
    expect(again.code).toBe(1);
    expect(lines.at(-1)!.summary).toMatchObject({ damaged: 1, unreadable: 0 });
    expect(await exists(cursor)).toBe(false);
  });

  test("a cursor of another walk, and a file that is none, are refused", async () => {
    const path = join(world.dir, "upload-other");
    const saved = { buckets: "http://elsewhere/bucket", after: "a", totals: {} };
    await writeFile(path, JSON.stringify({ ...saved, walk: "verify other/" }));
    const other = await world.run(["verify", "--prefix", "walk/", "--cursor", path]);
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("of another walk (verify other/") });
    await writeFile(path, JSON.stringify({ ...saved, walk: "verify walk/" }));
    const elsewhere = await world.run(["verify", "--prefix", "walk/", "--cursor", path]);
    expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining("of other buckets (http://elsewhere") });
    await writeFile(path, "{");
    expect((await world.run(["repair", "--cursor", path])).code).toBe(2);
  });
});

test.each(["verify", "gc"])(
  "%s refuses a cursor whose totals lack a field, as another version wrote it",
  async (verb) => {
    await world.put("cursor/b", randomBytes(50));
    const path = join(world.dir, "upload-older");
    const places = world.config.regions.map(({ endpoint, bucket }) => `${endpoint.replace(/\/$/, "")}/${bucket}`);
    const saved = { walk: `${verb} cursor/`, buckets: places.toSorted().join(" "), after: "cursor/a" };
    await writeFile(path, JSON.stringify({ ...saved, totals: { damaged: 1, found: 1 } }));
    const args = verb === "gc" ? ["gc", "cursor/"] : ["verify", "--prefix", "cursor/"];
    const { code, stderr } = await world.run([...args, "--cursor", path]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("is of another version of Agarose")]);
  },
);

test("ls --after lists what comes after a key, in the order of the list", async () => {
  for (const key of ["list/a", "list/b", "list/c"]) await world.put(key, randomBytes(10));
  const { stdout } = await world.run(["ls", "list/", "--after", "list/a"]);
  expect(stdout.toString()).toBe("list/b\nlist/c\n");
  expect((await world.run(["ls", "list/", "--after", "list/c"])).stdout.toString()).toBe("");
});

describe("verify --quick", () => {
  const quick = async () => {
    asked = [];
    const { code, stdout } = await world.run(["verify", "--quick", "--json"]);
    return { code, ...(JSON.parse(stdout.toString()) as { objects: Line[]; damaged: number }) };
  };

  test("of sound objects only lists: two requests to each region", async () => {
    for (const key of ["a", "b/c", "ä d"]) await world.put(key, randomBytes(2500));
    expect(await quick()).toMatchObject({
      code: 0,
      objects: ["a", "b/c", "ä d"].map((key) => ({ key, state: "sound" })),
      damaged: 0,
    });
    expect(asked).toEqual(Array.from({ length: 12 }, () => "LIST"));
  });

  test.each([
    ["first", 0],
    ["last", 5],
  ])("finds that the %s chunk is missing, by the manifests of that object alone", async (_name, chunk) => {
    const put = await world.put("lost", randomBytes(2500));
    await world.put("sound", randomBytes(2500));
    await world.tamper(...chunkPlace(put, chunk), () => undefined);
    expect(await quick()).toMatchObject({
      code: 1,
      objects: [
        { key: "lost", damage: [{ chunk, code: "CHUNK_MISSING" }] },
        { key: "sound", state: "sound" },
      ],
    });
    expect(asked.filter((one) => one.startsWith("GET"))).toHaveLength(REGIONS.length);
    expect(asked.some((one) => one.includes(" chunks/"))).toBe(false);
  });

  test("finds a chunk that is short, and a manifest that is missing, old or a tombstone", async () => {
    const short = await world.put("short", randomBytes(2500));
    await world.tamper(...chunkPlace(short, 3), (stored) => stored.subarray(1));
    for (const key of ["absent", "old", "removed"]) await world.put(key, randomBytes(700));
    const old = await world.read("paulo", manifestName("old"));
    await world.put("old", randomBytes(710));
    await world.tamper("paulo", manifestName("old"), () => old);
    await world.tamper("tokyo", manifestName("absent"), () => undefined);
    expect((await world.run(["rm", "removed"])).code).toBe(0);
    expect(await quick()).toMatchObject({
      code: 1,
      damaged: 3,
      objects: [{ key: "absent" }, { key: "old" }, { key: "short", damage: [{ code: "CHUNK_WRONG_LENGTH" }] }],
    });
  });

  test("reads one manifest of each object where codes go by size", async () => {
    await world.close();
    world = await startTestWorld({ auto: true, stripeBytes: 4 * 1024 * 1024, survive: { regions: 1, providers: 1 } });
    const puts = new Map<string, PutResult>();
    for (const [key, bytes] of [
      ["inline", 100],
      ["whole", 40_000],
      ["coded", 2_000_000],
    ] as const) {
      puts.set(key, await world.put(key, randomBytes(bytes)));
    }
    for (const region of REGIONS) world.faults.set(region, note);
    expect(await quick()).toMatchObject({
      code: 0,
      objects: ["coded", "inline", "whole"].map((key) => ({ key, state: "sound", version: puts.get(key)!.version })),
    });
    // A region that takes a second on a busy machine brings spares.
    expect([3, 8, 13, 18]).toContain(asked.filter((one) => one !== "LIST").length);
    const [name] = (await world.names("chunks/whole")).slice(-1);
    const [region, ...path] = name!.split("/");
    await world.store(region!).remove([path.join("/")]);
    expect(await quick()).toMatchObject({ code: 1, damaged: 1 });
  });

  test("asks other regions where the one that has its turn lists but then hangs", async () => {
    await world.close();
    world = await startTestWorld({ auto: true, stripeBytes: 100_000, survive: { regions: 1, providers: 1 } });
    for (let i = 0; i < REGIONS.length; i++) await world.put("k".repeat(i + 1), randomBytes(100));
    let hangs = 0;
    world.faults.set(REGIONS[0], (request, _response, name) => {
      const isHanging = request.method === "GET" && name.startsWith("manifests/");
      if (isHanging) hangs++;
      return isHanging;
    });
    const { code, objects } = await quick();
    expect(code).toBe(0);
    expect(objects.map(({ state }) => state)).toEqual(REGIONS.map(() => "sound"));
    expect(hangs).toBeGreaterThan(0);
  });

  test("is not misled by a whole upload that no manifest names", async () => {
    const put = await world.put("swapped", randomBytes(700));
    for (let chunk = 0; chunk < 6; chunk++) {
      const [region, name] = chunkPlace(put, chunk);
      const bytes = await world.read(region, name);
      await world.store(region).remove([name]);
      const other = chunkName("swapped", "f".repeat(32), chunk);
      await sleep(5);
      await world.store(region).put(other, bytes, { bytes: bytes.length, contentType: "text/plain" });
    }
    expect(await quick()).toMatchObject({ code: 1, objects: [{ key: "swapped", state: "unreadable" }] });
  });
});

test("50,000 objects are judged by listings alone, in constant memory", async () => {
  const OBJECTS = 50_000;
  const stores = world.config.regions.map((region) => listedStore(region, OBJECTS, world.config));
  const walking = world.parts({ stores });
  const before = heapInUse();
  let most = 0;
  const total = await walkObjects<boolean, number>(
    {
      name: "judge",
      options: { onWarning: (line) => expect.unreachable(line) },
      kinds: ["chunks"],
      objectsAtATime: 16,
      act: async (_key, group) => verdictByListing(group!, world.config)?.sound ?? false,
      add(count, isSound) {
        if (count % 5_000 === 0) most = Math.max(most, heapInUse() - before);
        return count + (isSound ? 1 : 0);
      },
    },
    0,
    walking,
  );
  expect(total).toBe(OBJECTS);
  expect(most).toBeLessThan(100_000_000);
});

/** That of the test world. */
const CODE = { k: 4, m: 2 };

/** A store of many sound objects that exist in its listings only: anything but a listing throws. */
function listedStore(region: RegionConfig, objects: number, config: Config): Store {
  async function* list(prefix: string): AsyncGenerator<ListedObject> {
    for (let index = 0; index < objects; index++) {
      const key = String(index).padStart(7, "0");
      const common = { modifiedMs: 0, etag: `"${key}"` };
      if (prefix === "manifests/") yield { name: manifestName(key), bytes: 5_000, ...common };
      else
        for (const [chunk, name] of roundRobin(CODE, config.regions, key).entries()) {
          if (name === region.name) yield { name: chunkName(key, "a".repeat(32), chunk), bytes: 9, ...common };
        }
    }
  }
  return { region, list } as unknown as Store;
}

describe("the repair queue", () => {
  test("is emptied first, and alone with --queued", async () => {
    await world.put("a", randomBytes(700));
    world.faults.set("tokyo", DOWN);
    const put = await world.put("z", randomBytes(700));
    expect(put.missing).not.toEqual([]);
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
    world.faults.clear();
    expect(await world.names("repairs/")).not.toEqual([]);

    const queued = await world.run(["repair", "--queued", "--json-lines"]);
    expect(linesOf(queued.stdout)).toMatchObject([
      { key: "z", outcome: "repaired" },
      { summary: { sound: 0, repaired: 1, damaged: 0, failed: 0 } },
    ]);
    expect(await world.names("repairs/")).toEqual([]);
    expect(await world.verify("z")).toMatchObject({ sound: true });

    world.faults.set("dublin", DOWN);
    await world.put("y", randomBytes(700));
    world.faults.clear();
    const all = linesOf((await world.run(["repair", "--json-lines"])).stdout);
    expect(keysOf(all)).toEqual(["y", "a", "z"]);
    expect(all.at(-1)!.summary).toEqual({ sound: 2, repaired: 1, damaged: 0, failed: 0 });
  });

  test("the entry of a put that ends while the version before is repaired stays", async () => {
    await world.put("page", randomBytes(700));
    let put: Promise<PutResult> | undefined;
    const putMeanwhile = async (): Promise<void> => {
      world.faults.set("tokyo", DOWN);
      await (put ??= world.put("page", randomBytes(700)));
      world.faults.clear();
    };
    const stores = world.stores.map((store): Store => {
      const list: Store["list"] = async function* (...args) {
        await putMeanwhile();
        yield* store.list(...args);
      };
      return new Proxy(store, {
        get(target, property) {
          const value: unknown = property === "list" ? list : Reflect.get(target, property, target);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    });
    await repairObject("page", world.parts({ stores }), { quick: true });
    expect((await put)!.missing).not.toEqual([]);
    expect(await world.names("repairs/")).not.toEqual([]);
    const queued = await world.run(["repair", "--queued", "--json-lines"]);
    expect(linesOf(queued.stdout)[0]).toMatchObject({ key: "page", outcome: "repaired" });
    expect(await world.names("repairs/")).toEqual([]);
  });

  test.each([
    [[], 1],
    [["--jobs", "3"], 3],
  ])("is emptied with %j by as many objects at a time as the option says", async (options, wanted) => {
    world.faults.set("tokyo", DOWN);
    for (const key of ["a", "b", "c"]) expect((await world.put(key, randomBytes(700))).missing).not.toEqual([]);
    const begun = new Set<string>();
    const together = Promise.withResolvers<void>();
    // The first repair that gets so far waits for the others to begin.
    world.faults.set("dublin", ({ method }, _response, name) => {
      const key = /^manifests\/(.)/.exec(name)?.[1];
      if (method === "GET" && key) begun.add(key);
      if (begun.size === wanted) together.resolve();
      return false;
    });
    let most = 0;
    world.faults.set("tokyo", async ({ method }) => {
      if (method !== "PUT") return false;
      await together.promise;
      most ||= begun.size;
      return false;
    });
    expect((await world.run(["repair", "--queued", ...options])).code).toBe(0);
    expect(most).toBe(wanted);
    expect(await world.names("repairs/")).toEqual([]);
  });

  test("an entry of a key that is gone from all regions is removed", async () => {
    await world.store("paulo").put("repairs/gone!", Buffer.from("{}"), { bytes: 2, contentType: "text/plain" });
    expect((await world.run(["repair", "--queued"])).code).toBe(1);
    expect(await world.names("repairs/")).toEqual([]);
    expect((await world.run(["repair", "--queued"])).code).toBe(0);
  });
});

test("with --json a walk that fails in its middle is still one document, and names the error", async () => {
  await world.put("a", randomBytes(50));
  const { code, stdout } = await world.run(["verify", "a", "missing", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout.toString())).toMatchObject({
    objects: [{ key: "a", state: "sound" }],
    error: { code: "OBJECT_NOT_FOUND" },
  });
});

test("a region that cannot be listed ends neither verify nor ls", async () => {
  await world.put("a", randomBytes(50));
  world.faults.set("sydney", DOWN);
  expect(JSON.parse((await world.run(["ls", "--json"])).stdout.toString())).toMatchObject({
    objects: [{ key: "a" }],
    regionsFailed: [{ region: "sydney" }],
    complete: true,
  });
  expect((await world.run(["verify", "--quick"])).code).toBe(1);
  expect(world.fired.get("sydney")).toBeGreaterThan(0);
});
