/** A world of two Workers and one PoP on Node: peers of each other, and the last one alone. */
import { openControlledApp, read, sha256 } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const READ_TOKEN = "read-token-of-a-mixed-world";
const authorization = `Bearer ${READ_TOKEN}`;
const admin = { authorization: "Bearer agarose-dev-admin-token" };

test.use({
  worldOptions: {
    world: "agar",
    pops: ["workerd", "workerd", "node"],
    variables: { PRIVATE_PREFIXES: '["members/"]', READ_TOKEN },
  },
});

test("a PoP on Node and Workers are each other's peers", async ({ world, putRandom }) => {
  const content = await putRandom("mixed/shared", 200_000);
  const [fra, , iad] = world.pops;
  for (const { url } of [fra!, iad!]) {
    for (let i = 0; i < 5; i++) {
      const answer = await fetch(`${url}/o/mixed/shared`);
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(new Uint8Array(content));
    }
  }
  interface Peers {
    readonly peers: { readonly peers: { name: string; down: boolean; silent: boolean; objects: number }[] };
  }
  const peersOf = async (url: string): Promise<Peers["peers"]["peers"]> =>
    ((await (await fetch(`${url}/v1/status`, { headers: admin })).json()) as Peers).peers.peers;
  const know = async (): Promise<boolean[]> => {
    await world.cron();
    return [
      (await peersOf(fra!.url)).some(({ name, silent }) => name === "iad" && !silent),
      (await peersOf(iad!.url)).some(({ name, silent, objects }) => name === "fra" && !silent && objects > 0),
    ];
  };
  await expect.poll(know).toEqual([true, true]);
});

test("with every Worker dead, the PoP on Node serves public and private objects", async ({
  context,
  world,
  putRandom,
}) => {
  const open = await putRandom("mixed/public", 1_000_000);
  const closed = await putRandom("members/private", 1_000_000);
  await world.pop("fra").down();
  await world.pop("lhr").down();
  const page = await openControlledApp(context, world);
  expect(await read(page, "mixed/public")).toMatchObject({ status: 200, sha256: sha256(open) });
  const answer = await read(page, "members/private", { authorization });
  expect(answer).toMatchObject({ status: 200, sha256: sha256(closed) });
  // The buckets of this world are public, so that a page whose PoP is late reads there. The PoP itself refuses.
  const { url } = world.pops.find(({ name }) => name === "iad")!;
  expect((await fetch(`${url}/o/members/private`)).status, "and to no one without the token").toBe(403);
  const answered = (await world.log()).filter(({ path, outcome }) => path.startsWith("/v1/") && outcome === "ok");
  const asked = answered.filter(({ from }) => from === "client");
  expect(new Set(asked.map(({ to }) => to))).toEqual(new Set(["iad"]));
  expect((await world.pop("fra").fired()) + (await world.pop("lhr").fired())).toBeGreaterThan(0);
});
