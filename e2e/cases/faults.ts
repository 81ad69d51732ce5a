/** Reads while buckets or PoPs are broken. */
import { expect } from "@playwright/test";
import { listenToKinds, read, sha256 } from "../fixtures/app.ts";
import type { BrowserCase } from "./case.ts";

/** 9+3 over six regions has two chunks in each, so one region may be lost and a second one is one chunk too many. */
export const NEAR = "frankfurt";
export const NEXT = "dublin";

export const faultCases: readonly BrowserCase[] = [
  {
    name: "with as many regions down as the layout survives, reads are right and say that they were degraded",
    async run({ folder, openControlledApp, putRandom, world }) {
      const content = await putRandom(`${folder}faults/survived`, 5_000_000);
      const page = await openControlledApp();
      await world.region(NEAR).down();
      const kinds = await listenToKinds(page);
      const answer = await read(page, `${folder}faults/survived`);
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      await expect.poll(kinds).toEqual(["degraded"]);
      expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
    },
  },
  {
    name: "with one region more down, a read fails with a typed error as soon as every chunk has been tried",
    async run({ folder, openControlledApp, putRandom, world }) {
      await putRandom(`${folder}faults/lost`, 1_000_000);
      await world.region(NEAR).down();
      await world.region(NEXT).down();
      const answer = await read(await openControlledApp(), `${folder}faults/lost`);
      expect(answer.status).toBe(502);
      expect(answer.text).toContain("NOT_ENOUGH_CHUNKS");
      const chunkRequests = async () => (await world.log()).filter(({ path }) => path.includes("/chunks/"));
      // The world notes later than the page that a request was aborted.
      await expect
        .poll(async () => (await chunkRequests()).filter(({ outcome }) => outcome === "pending"), "nothing is left")
        .toEqual([]);
      const chunks = await chunkRequests();
      // Browsers themselves repeat requests whose connection was cut, so only those that got an answer count.
      const answered = chunks.filter(({ outcome }) => outcome === "ok").length;
      expect(answered, "no chunk is tried again and again").toBeLessThanOrEqual(2 * 8);
      expect(await world.region(NEXT).fired()).toBeGreaterThan(0);
    },
  },
  ...(["corrupt", "truncate"] as const).map((fault): BrowserCase => ({
    name: `a bucket that answers 200 with ${fault === "corrupt" ? "wrong bytes" : "too few bytes"} is not believed`,
    isFurther: fault === "truncate",
    async run({ folder, openControlledApp, putRandom, world }) {
      const content = await putRandom(`${folder}faults/${fault}`, 5_000_000);
      const page = await openControlledApp();
      await world.region(NEAR)[fault]();
      // The others answer later, so that the read needs this one.
      for (const { name } of world.regions) if (name !== NEAR) await world.region(name).slow(10);
      const kinds = await listenToKinds(page);
      const answer = await read(page, `${folder}faults/${fault}`);
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      await expect.poll(kinds).toEqual(["degraded"]);
      expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
    },
  })),
  {
    name: "a bucket that ignores Range, and answers with 200 and everything, is replaced, for small ranges and long ones",
    async run({ folder, openControlledApp, putRandom, world }) {
      const content = await putRandom(`${folder}faults/ignores-range`, 10_000_000);
      const page = await openControlledApp();
      await world.region(NEAR).ignoreRange();
      // The first range brings the plan. The next ones lie in all data chunks of two stripes, so in those of this
      // bucket.
      for (let start = 100; start < 8_000_000; start += 460_000) {
        const answer = await read(page, `${folder}faults/ignores-range`, { range: `bytes=${start}-${start + 16_383}` });
        expect(answer).toMatchObject({ status: 206, sha256: sha256(content.subarray(start, start + 16_384)) });
      }
      const [from, to] = [1_000_000, 9_500_000];
      const answer = await read(page, `${folder}faults/ignores-range`, { range: `bytes=${from}-${to - 1}` });
      expect(answer).toMatchObject({ status: 206, sha256: sha256(content.subarray(from, to)) });
      const unranged = (await world.region(NEAR).requests()).filter(({ outcome }) => outcome === "unranged");
      expect(unranged.length, "the fault fired").toBeGreaterThan(0);
    },
  },
  {
    name: "a PoP that is down is replaced by another",
    async run({ folder, openControlledApp, putRandom, world }) {
      const keys = [0, 1].map((n) => `${folder}faults/pop/${n}`);
      const contents = await Promise.all(keys.map((key) => putRandom(key, 1_000_000)));
      await world.pop("fra").down();
      const page = await openControlledApp();
      // The buckets may have delivered the whole first object before the client has found a PoP that answers.
      for (const [n, key] of keys.entries()) {
        expect(await read(page, key)).toMatchObject({ status: 200, sha256: sha256(contents[n]!) });
      }
      expect(await world.pop("fra").fired()).toBeGreaterThan(0);
      const others = world.pops.map(({ name }) => name).filter((name) => name !== "fra");
      const answered = (await world.log()).filter(
        ({ path, outcome }) => path.startsWith("/v1/read/") && outcome === "ok",
      );
      expect(others).toContain(answered[0]?.to);
    },
  },
  {
    name: "with every PoP down, the buckets alone serve",
    async run({ folder, openControlledApp, putRandom, world }) {
      const content = await putRandom(`${folder}faults/pops`, 1_000_000);
      for (const { name } of world.pops) await world.pop(name).down();
      const answer = await read(await openControlledApp(), `${folder}faults/pops`);
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      for (const { name } of world.pops) expect(await world.pop(name).fired()).toBeGreaterThan(0);
    },
  },
];
