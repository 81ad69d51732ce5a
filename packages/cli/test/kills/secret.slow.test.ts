/** The steps that replace a secret, each killed by SIGKILL in the middle, against real S3 servers. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import { expect, test } from "vitest";
import { Dice } from "@agarose/storage/testing";
import { bytesOf } from "./case.ts";
import { CONFIG_FILE, ENCRYPTED, KillWorld, seenAs, type Seen } from "./kill-world.ts";
import { Steps } from "./steps.ts";

/** Only ends what hangs: a loaded machine is slow, not wrong. */
const TIMEOUT_MS = 900_000;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

test.skipIf(!versitygw)(
  `the replacement of a secret that is killed in each step ends its work when it runs again, from seed ${SEED}${reason}`,
  async () => {
    const world = await KillWorld.start();
    try {
      const dice = new Dice(SEED, 0);
      const [old, next] = [join(world.dir, "first"), join(world.dir, "second")];
      // Readers know both. The configuration begins with the old one, and the first step makes the other.
      await rm(next);
      const config = JSON.parse(world.configText()) as object;
      const encryption = [{ prefix: ENCRYPTED, secrets: [{ file: old }] }];
      const files = { [CONFIG_FILE]: JSON.stringify({ ...config, encryption }) };
      const objects = new Map<string, Seen>();
      const regions = world.stores.map(({ region }) => region.name);
      const steps = new Steps(world, { files, dice, what: `seed ${SEED}`, objects, regions });
      const command = ["keys", "secret", next, "--prefix", ENCRYPTED];
      await steps.end(command);
      const keys = ["one", "two", "three"].map((name) => `${ENCRYPTED}${name}`);
      for (const key of keys) {
        const bytes = bytesOf(key, dice);
        await steps.end(["put", await world.file(bytes), "--key", key]);
        objects.set(key, seenAs(bytes));
      }
      const kills = {
        encrypt: await steps.kill([...command, "--encrypt"], 1, 2),
        sign: await steps.kill(["keys", "apply"], 6, 40),
        finish: await steps.kill([...command, "--finish", "--yes"], 3, 30),
      };
      const ended = JSON.parse(steps.files[CONFIG_FILE]!) as { encryption: object };
      expect(ended.encryption).toEqual([{ prefix: ENCRYPTED, secrets: [{ file: next }] }]);
      // The new secret alone opens everything, so the old one can be destroyed.
      await rm(old);
      for (const key of keys) await steps.end(["get", key, "-"]);
      console.log(`seed ${SEED}: kills in the middle ${JSON.stringify(kills)}`);
      for (const step of ["sign", "finish"] as const) expect(kills[step], step).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  },
  TIMEOUT_MS,
);
