import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { expect, test } from "@playwright/test";
import { World } from "./fixtures/world.ts";

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
