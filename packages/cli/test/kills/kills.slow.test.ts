/** Processes of the command line are killed by SIGKILL in the middle of what they do, against a real S3 server. */
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import { expect, test } from "vitest";
import { KillWorld } from "./kill-world.ts";
import { killInTurn } from "./search.ts";
import { VERBS } from "./verbs.ts";

/** Only ends what hangs: a loaded machine is slow, not wrong. */
const TIMEOUT_MS = 900_000;
const CASES = 3 * Object.keys(VERBS).length;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

test.skipIf(!versitygw)(
  `a killed command leaves old or new content, and ends its work when it runs again, from seed ${SEED}${reason}`,
  async () => {
    const world = await KillWorld.start();
    try {
      const { failures, kills, text } = await killInTurn(world, CASES, SEED);
      console.log(text);
      expect(failures, text).toEqual([]);
      for (const [verb, count] of Object.entries(kills)) expect(count, verb).toBeGreaterThan(0);
    } finally {
      await world.close();
    }
  },
  TIMEOUT_MS,
);
