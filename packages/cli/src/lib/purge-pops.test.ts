/** Replaced and removed objects are purged from the PoPs, and a user who may not purge is told so. */
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { startTestWorld, type RunResult, type World } from "../../test/world.ts";

let world: World;
let pop: Server;
/** The body of the PoP's last purge request. */
let purged: unknown[];
let status = 200;

beforeEach(async () => {
  purged = [];
  status = 200;
  world = await startTestWorld();
  pop = createServer((request, response) => {
    void text(request).then((body) => {
      purged.push([request.url, request.headers.authorization, JSON.parse(body)]);
      response.writeHead(status).end("{}");
    });
  });
  const url = await listenLocally(pop);
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...config, pops: [{ name: "fra", url }] }));
});

afterEach(async () => {
  pop.close();
  await world.close();
});

async function put(body: string, env: Record<string, string> = { AGAROSE_ADMIN_TOKEN: "secret" }): Promise<RunResult> {
  await writeFile(join(world.dir, "page"), body);
  return world.run(["put", "page", "--key", "docs/page", "--json"], env);
}

const popsOf = ({ stdout }: RunResult): unknown => (JSON.parse(stdout.toString()) as { pops?: unknown }).pops;

test("a put purges the key that it replaces, and none that is new or unchanged", async () => {
  expect(popsOf(await put("one"))).toBeUndefined();
  expect(popsOf(await put("one"))).toBeUndefined();
  expect(purged).toEqual([]);
  expect(popsOf(await put("two"))).toEqual([{ pop: "fra", purged: true }]);
  expect(purged).toEqual([["/v1/purge", "Bearer secret", { keys: ["docs/page"] }]]);
});

test("rm purges what it has removed", async () => {
  await put("one");
  const { code } = await world.run(["rm", "--recursive", "docs/"], { AGAROSE_ADMIN_TOKEN: "secret" });
  expect([code, purged]).toEqual([0, [["/v1/purge", "Bearer secret", { keys: ["docs/page"] }]]]);
});

test.each([
  ["without a token", {}, 200, "no admin token: set AGAROSE_ADMIN_TOKEN"],
  ["of a PoP that fails", { AGAROSE_ADMIN_TOKEN: "secret" }, 503, "answered 503 ({})"],
])("a put %s is stored, and says that the PoP was not purged", async (_case, env, answer, problem) => {
  await put("one");
  status = answer;
  const replaced = await put("two", env);
  expect([replaced.code, popsOf(replaced)]).toEqual([
    0,
    [{ pop: "fra", purged: false, problem: expect.stringContaining(problem) }],
  ]);
  expect(replaced.stderr).toMatch(/^warning: 1 PoP \(fra\) not purged, so readers there may get the version before/m);
});

test("--no-purge leaves PoPs alone, and says nothing of them", async () => {
  await put("one");
  const { code, stderr } = await world.run(["rm", "docs/page", "--no-purge"], { AGAROSE_ADMIN_TOKEN: "secret" });
  expect([code, stderr, purged]).toEqual([0, "", []]);
});
