import { expect, test } from "vitest";
import { parseInventoryPlace } from "@agarose/storage/maintenance/amounts";
import { refuseIdleInventory } from "./args.ts";

const inventory = [parseInventoryPlace("eu=s3://lists/chunks")];

test.each([
  ["keys", { inventory, keys: ["a"] }],
  ["--queued", { inventory, keys: [], queued: true }],
])("an inventory is refused beside %s, where nothing is listed", (_, options) => {
  expect(() => refuseIdleInventory(options)).toThrow(expect.objectContaining({ code: "USAGE" }));
});

test("an inventory is taken where all keys are listed, and keys without one", () => {
  refuseIdleInventory({ inventory, keys: [] });
  refuseIdleInventory({ inventory: [], keys: ["a"], queued: true });
});
