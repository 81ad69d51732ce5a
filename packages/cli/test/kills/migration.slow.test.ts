/** The three steps of a migration, each killed by SIGKILL in the middle, against real S3 servers. */
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import { expect, test } from "vitest";
import { Dice } from "@agarose/storage/testing";
import { bytesOf } from "./case.ts";
import { CONFIG_FILE, ENCRYPTED, KillWorld, seenAs, type Seen } from "./kill-world.ts";
import { Steps } from "./steps.ts";

/** Only ends what hangs: a loaded machine is slow, not wrong. */
const TIMEOUT_MS = 900_000;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);
const BEFORE = ["r0", "r1", "r2"];
/** One region goes, another one comes. */
const AFTER = ["r0", "r1", "r3"];
/** Then one gets another name. */
const LAST = ["r0", "west", "r3"];
const RENAMED = { from: "r1", to: "west" };
const NEXT_FILE = "next.json";
const LAST_FILE = "last.json";

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

test.skipIf(!versitygw)(
  `a migration that is killed in each step ends its work when it runs again, and no reader notices, from seed ${SEED}${reason}`,
  async () => {
    const world = await KillWorld.start(4, RENAMED);
    try {
      const dice = new Dice(SEED, 0);
      const objects = new Map<string, Seen>([["removed", "absent"]]);
      const files = {
        [CONFIG_FILE]: world.configText({ regions: BEFORE }),
        [NEXT_FILE]: world.configText({ regions: AFTER }),
        [LAST_FILE]: world.configText({ regions: LAST, renamed: RENAMED }),
      };
      const what = `seed ${SEED}`;
      const steps = new Steps(world, { files, dice, what, objects, regions: [...BEFORE, ...LAST] });
      for (const key of ["one", "two", "three", `${ENCRYPTED}four`]) {
        const bytes = bytesOf(key, dice);
        await steps.end(["put", await world.file(bytes), "--key", key]);
        objects.set(key, seenAs(bytes));
      }
      await steps.end(["put", await world.file("gone"), "--key", "removed"]);
      await steps.end(["rm", "removed"]);
      const kills = {
        begin: await steps.kill(["migrate", NEXT_FILE], 2, 3),
        // The whole step takes some 100 requests.
        move: await steps.kill(["migrate", NEXT_FILE, "--move"], 8, 80),
        gc: await steps.kill(["gc", "--delete"], 1, 20),
        collect: await steps.kill(["gc", "--delete"], 2, 20, "garbage"),
        finish: await steps.kill(["migrate", NEXT_FILE, "--finish"], 2, 5),
      };
      const renames = {
        begin: await steps.kill(["migrate", LAST_FILE], 2, 3),
        move: await steps.kill(["migrate", LAST_FILE, "--move"], 6, 60),
        finish: await steps.kill(["migrate", LAST_FILE, "--finish"], 2, 5),
      };
      expect(JSON.parse(steps.files[CONFIG_FILE]!), "the configuration at the end").toEqual(
        JSON.parse(steps.files[LAST_FILE]!),
      );
      const left = (await world.names("chunks/", "r2")).concat(await world.names("claims/", "r2"));
      expect(left, "chunks in the region that goes").toEqual([]);
      const manifests = await world.names("manifests/", "r3");
      expect(manifests.length, "manifests in the region that comes").toBe(objects.size);
      for (const name of manifests) {
        const stored = await world.stores.find(({ region }) => region.name === "r3")!.get(name);
        expect(await new Response(stored.body as ReadableStream<Uint8Array<ArrayBuffer>>).text()).not.toContain('"r1"');
      }
      const { stdout } = await steps.end(["verify", "--json"]);
      const verified = JSON.parse(stdout) as { objects: { key: string; sound: boolean }[] };
      expect(verified.objects.length, "objects that are verified").toBeGreaterThanOrEqual(4);
      expect(verified.objects.filter(({ sound }) => !sound)).toEqual([]);
      await steps.check(LAST);
      console.log(`seed ${SEED}: kills in the middle ${JSON.stringify({ kills, renames })}`);
      for (const [step, count] of Object.entries(kills)) expect(count, step).toBeGreaterThan(0);
      for (const [step, count] of Object.entries(renames)) expect(count, `rename, ${step}`).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  },
  TIMEOUT_MS,
);
