import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "@playwright/test";
import { World } from "../fixtures/world.ts";

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`a world that is told to stop by ${signal} leaves no process and no file behind`, async () => {
    const world = await World.start("--no-demo");
    const processes = [world.pid, ...childrenOf(world.pid)];
    expect(processes.length, "the world and workerd").toBeGreaterThan(1);
    expect(existsSync(world.config)).toBe(true);
    expect(await world.stop(signal)).toBe(0);
    await expect.poll(() => processes.filter(isRunning)).toEqual([]);
    expect(existsSync(world.config)).toBe(false);
  });
}

test("a world without a demo page answers by its PoPs", async () => {
  const world = await World.start("--no-demo");
  expect(world.demo).toBeUndefined();
  for (const { url } of world.pops) expect((await fetch(`${url}/healthz`)).status).toBe(200);
  await world.stop();
});

test("a world like a scenario has its PoPs, regions, latencies, stragglers and code, and reads what is put there", async () => {
  const scenario = fileURLToPath(new URL("../../packages/solver/scenarios/continental.json", import.meta.url));
  const world = await World.start("--no-demo", "--scenario", scenario, "--var", "DELTA=0");
  const state = (await (await fetch(`${world.control}/state`)).json()) as Record<string, unknown>;
  expect(state).toMatchObject({ code: { k: 4, m: 2 }, scale: 1 });
  expect(world.pops.map(({ name }) => name)).toEqual(["fra", "ams", "mad"]);
  expect(state["regions"]).toContainEqual(
    expect.objectContaining({ name: "r2-eu", latencyMs: 12, stragglers: { probability: 0.02, factor: 10 } }),
  );
  expect(state["pops"]).toContainEqual(expect.objectContaining({ name: "mad", latencyMs: 30 }));
  await world.agarose("put", scenario, "--key", "scenario");
  for (const { url } of world.pops) {
    expect(await (await fetch(`${url}/o/scenario`)).text()).toBe(readFileSync(scenario, "utf8"));
  }
  await world.stop();
});

function childrenOf(pid: number): number[] {
  const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return children.trim().split(/\s+/).map(Number);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
