import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "@playwright/test";
import { LocalWorld } from "@agarose/dev-world/client";
import { childrenOf, isRunning } from "./processes.ts";

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`a world serves a blank page, its PoPs answer, and ${signal} leaves no process and no file of it behind`, async () => {
    const world = await LocalWorld.start();
    expect(await (await fetch(world.app)).text()).toContain("<main></main>");
    for (const { url } of world.pops) expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const processes = [world.pid, ...childrenOf(world.pid)];
    expect(processes.length, "the world and workerd").toBeGreaterThan(1);
    expect(existsSync(world.config)).toBe(true);
    expect(await world.stop(signal)).toBe(0);
    await expect.poll(() => processes.filter(isRunning)).toEqual([]);
    expect(existsSync(world.config)).toBe(false);
  });
}

test("a world with the geography of a scenario has its PoPs, regions, latencies, stragglers and code", async () => {
  const scenario = fileURLToPath(import.meta.resolve("@agarose/solver/scenarios/continental.json"));
  const world = await LocalWorld.start({ geography: scenario, variables: { DELTA: "0" } });
  const state = await world.state();
  expect(state).toMatchObject({ code: { k: 4, m: 2 }, scale: 1 });
  expect(world.pops.map(({ name }) => name)).toEqual(["fra", "ams", "mad"]);
  expect(state.regions).toContainEqual(
    expect.objectContaining({ name: "r2-eu", latencyMs: 12, stragglers: { probability: 0.02, factor: 10 } }),
  );
  expect(state.pops).toContainEqual(expect.objectContaining({ name: "mad", latencyMs: 30 }));
  await world.put("scenario", scenario);
  for (const { url } of world.pops) {
    expect(await (await fetch(`${url}/o/scenario`)).text()).toBe(readFileSync(scenario, "utf8"));
  }
  await world.stop();
});
