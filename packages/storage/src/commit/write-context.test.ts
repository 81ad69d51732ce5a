import { expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import { sleep } from "./write-context.ts";

test.each(["before it begins", "while it waits"])("a sleep that is aborted %s rejects at once", async (when) => {
  const clock = new SimulatedClock();
  const controller = new AbortController();
  if (when === "before it begins") controller.abort(new Error("stop"));
  const slept = sleep(1_000, { clock, signal: controller.signal });
  if (when === "while it waits") controller.abort(new Error("stop"));
  await expect(slept).rejects.toThrow("stop");
});
