import { sampleObject, SimulatedClock } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { PlanStore } from "./plan-store.ts";

test("a plan without regions has those of the latest plan that named some", async () => {
  const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 100, stripeBytes: 100 });
  const configured = [{ name: "r0", url: "https://r0.test" }];
  const plans = new PlanStore({ config: { regions: configured }, clock: new SimulatedClock() });
  const plan = { pop: "fra", epoch: 1, version: manifest.version, manifest, cached: [], delta: 1 };
  const named = [{ ...configured[0]!, meanMs: 7, sdMs: 1 }];
  expect(plans.learn("a", { ...plan, regions: named }, 0).regions).toEqual(named);
  expect(plans.learn("b", { ...plan, regions: [] }, 0).regions).toEqual(named);
  expect(plans.regions).toEqual(named);
});
