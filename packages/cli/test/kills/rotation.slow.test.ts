/** The steps of a rotation of the signing key, each killed by SIGKILL in the middle, against real S3 servers. */
import { join } from "node:path";
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import { expect, test } from "vitest";
import { Dice } from "@agarose/storage/testing";
import { bytesOf } from "./case.ts";
import { CONFIG_FILE, ENCRYPTED, KEPT, KillWorld, seenAs, type Seen } from "./kill-world.ts";
import { Steps } from "./steps.ts";

/** Only ends what hangs: a loaded machine is slow, not wrong. */
const TIMEOUT_MS = 900_000;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

test.skipIf(!versitygw)(
  `a rotation that is killed in each step ends its work when it runs again, and every object stays readable, from seed ${SEED}${reason}`,
  async () => {
    const world = await KillWorld.start();
    try {
      const dice = new Dice(SEED, 0);
      const objects = new Map<string, Seen>([["removed", "absent"]]);
      const files = { [CONFIG_FILE]: world.configText() };
      const regions = world.stores.map(({ region }) => region.name);
      const steps = new Steps(world, { files, dice, what: `seed ${SEED}`, objects, regions });
      // The commands run in folders beside these files.
      const [first, next] = [join(world.dir, "first.pem"), join(world.dir, "next.pem")];
      await steps.end(["keys", "new", first]);
      await steps.end(["put", await world.file("before"), "--key", `${KEPT}one`]);
      for (const key of ["one", "two", `${KEPT}one`, `${ENCRYPTED}one`]) {
        const bytes = bytesOf(key, dice);
        await steps.end(["put", await world.file(bytes), "--key", key]);
        objects.set(key, seenAs(bytes));
      }
      await steps.end(["put", await world.file("gone"), "--key", "removed"]);
      await steps.end(["rm", "removed"]);
      await steps.end(["keys", "rotate", next]);
      const kills = {
        sign: await steps.kill(["keys", "rotate", next, "--sign"], 3, 6),
        apply: await steps.kill(["keys", "apply"], 6, 60),
        finish: await steps.kill(["keys", "rotate", next, "--finish"], 3, 30),
      };
      const { publicKeys, signing } = JSON.parse(steps.files[CONFIG_FILE]!) as {
        publicKeys: string[];
        signing: object;
      };
      expect([publicKeys.length, signing]).toEqual([1, { keyFile: expect.stringContaining("next.pem") }]);
      const { stdout } = await steps.end(["verify", "--json"]);
      const verified = JSON.parse(stdout) as { objects: { key: string; sound: boolean; kept?: unknown[] }[] };
      expect(verified.objects.filter(({ sound }) => !sound)).toEqual([]);
      expect(verified.objects.find(({ key }) => key === `${KEPT}one`)?.kept).toHaveLength(1);
      // The new key alone is trusted now, and writes.
      for (const key of ["one", "two", `${KEPT}one`, `${ENCRYPTED}one`]) await steps.end(["get", key, "-"]);
      await steps.end(["put", await world.file("after"), "--key", "after"]);
      await steps.check(regions);
      console.log(`seed ${SEED}: kills in the middle ${JSON.stringify(kills)}`);
      for (const [step, count] of Object.entries(kills)) expect(count, step).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  },
  TIMEOUT_MS,
);
