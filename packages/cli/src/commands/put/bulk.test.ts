import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { S3Store } from "../../lib/store/s3-store.ts";
import { CREDENTIALS, REGIONS, startTestWorld, type Fault, type World } from "../../../test/world.ts";

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
  const { code, stdout } = await world.run(["put", "upload-many", "--json"]);
  const { objects } = JSON.parse(stdout.toString()) as { objects: { outcome: string; missing: number[] }[] };
  return { code, objects };
};

test("many files are put at once, and a store that asks for fewer requests gets all of them", async () => {
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

test("what is there already is not sent again", async () => {
  expect((await put()).code).toBe(0);
  let sent = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (request) => {
      if (request.method === "PUT") sent++;
      return false;
    });
  }
  const again = await put();
  expect(again.objects.every(({ outcome }) => outcome === "unchanged")).toBe(true);
  expect(sent).toBe(0);
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
