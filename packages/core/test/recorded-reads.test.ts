import { expect, test } from "vitest";
import { digestsOf } from "./recorded-reads.ts";

test("the requests of random worlds, and how each read of them ends, are those that were recorded", async () => {
  await expect(await digestsOf(40)).toMatchFileSnapshot("recorded-reads.txt");
});
