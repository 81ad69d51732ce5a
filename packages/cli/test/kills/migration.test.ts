/** The three steps of a migration, each killed by SIGKILL in the middle, against real S3 servers. */
import { findVersitygw } from "@agarose/dev-world/s3-endpoint";
import { expect, test } from "vitest";
import { Dice } from "../interleavings/world/noise.ts";
import { bytesOf, COPY_DEAD_HOURS } from "./case.ts";
import { CONFIG_FILE, ENCRYPTED, KillWorld, seenAs, type Files, type Run, type Seen } from "./kill-world.ts";
import { pointOf } from "./search.ts";

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
const MARK_OLD_HOURS = 48;
/** For each kill. */
const ATTEMPTS = 4;

const versitygw = await findVersitygw();
const reason = versitygw ? "" : " (skipped: versitygw is not installed, `go install` builds it)";

test.skipIf(!versitygw)(
  `a migration that is killed in each step ends its work when it runs again, and no reader notices, from seed ${SEED}${reason}`,
  async () => {
    const world = await KillWorld.start(4, RENAMED);
    try {
      const dice = new Dice(SEED, 0);
      const objects = new Map<string, Seen>([["removed", "absent"]]);
      let files: Files = {
        [CONFIG_FILE]: world.configText({ regions: BEFORE }),
        [NEXT_FILE]: world.configText({ regions: AFTER }),
        [LAST_FILE]: world.configText({ regions: LAST, renamed: RENAMED }),
      };
      for (const key of ["one", "two", "three", `${ENCRYPTED}four`]) {
        const bytes = bytesOf(key, dice);
        await end(["put", await world.file(bytes), "--key", key]);
        objects.set(key, seenAs(bytes));
      }
      await end(["put", await world.file("gone"), "--key", "removed"]);
      await end(["rm", "removed"]);
      const kills = {
        begin: await kill(["migrate", NEXT_FILE], 2, 3),
        // The whole step takes some 100 requests.
        move: await kill(["migrate", NEXT_FILE, "--move"], 8, 80),
        gc: await kill(["gc", "--delete"], 1, 20),
        collect: await kill(["gc", "--delete"], 2, 20, "garbage"),
        finish: await kill(["migrate", NEXT_FILE, "--finish"], 2, 5),
      };
      const renames = {
        begin: await kill(["migrate", LAST_FILE], 2, 3),
        move: await kill(["migrate", LAST_FILE, "--move"], 6, 60),
        finish: await kill(["migrate", LAST_FILE, "--finish"], 2, 5),
      };
      expect(JSON.parse(files[CONFIG_FILE]!), "the configuration at the end").toEqual(JSON.parse(files[LAST_FILE]!));
      const left = (await world.names("chunks/", "r2")).concat(await world.names("claims/", "r2"));
      expect(left, "chunks in the region that goes").toEqual([]);
      const manifests = await world.names("manifests/", "r3");
      expect(manifests.length, "manifests in the region that comes").toBe(objects.size);
      for (const name of manifests) {
        const stored = await world.stores.find(({ region }) => region.name === "r3")!.get(name);
        expect(await new Response(stored.body as ReadableStream<Uint8Array<ArrayBuffer>>).text()).not.toContain('"r1"');
      }
      const { stdout } = await end(["verify", "--json"]);
      const verified = JSON.parse(stdout) as { objects: { key: string; sound: boolean }[] };
      expect(verified.objects.length, "objects that are verified").toBeGreaterThanOrEqual(4);
      expect(verified.objects.filter(({ sound }) => !sound)).toEqual([]);
      await check(LAST);
      console.log(`seed ${SEED}: kills in the middle ${JSON.stringify({ kills, renames })}`);
      for (const [step, count] of Object.entries(kills)) expect(count, step).toBeGreaterThan(0);
      for (const [step, count] of Object.entries(renames)) expect(count, `rename, ${step}`).toBeGreaterThan(0);

      /**
       * Kills a command `times` times in its middle, hours apart, then lets it end. It may end before a kill point, and
       * is killed less often then. Resolves with how often it was killed.
       */
      async function kill(args: string[], times: number, requests: number, aged?: "garbage"): Promise<number> {
        if (aged) for (const key of objects.keys()) await world.age(aged, key, MARK_OLD_HOURS);
        let killed = 0;
        for (let n = 0; n < ATTEMPTS * times && killed < times; n++) {
          await ageClaims();
          const point = pointOf(dice, requests);
          const run = await world.runIn(files, args, point);
          const what = `seed ${SEED}: ${args.join(" ")} killed at ${JSON.stringify(point)}`;
          expect(run.isKilled || run.code === 0, `${what}: ${run.stdout}${run.stderr}`).toBe(true);
          if (run.isKilled) killed++;
          files = run.files;
          await check([...BEFORE, ...LAST], what);
        }
        await end(args);
        return killed;
      }

      /** Runs a command to its end. */
      async function end(args: string[]): Promise<Run> {
        await ageClaims();
        const run = await world.runIn(files, args);
        expect(run.code, `seed ${SEED}: ${args.join(" ")}: ${run.stdout}${run.stderr}`).toBe(0);
        files = run.files;
        return run;
      }

      /** What takes the place of one generation only waits until the claim of a writer that died is two hours old. */
      async function ageClaims(): Promise<void> {
        for (const key of objects.keys()) await world.age("claims", key, COPY_DEAD_HOURS);
      }

      async function check(regions: readonly string[], what = "at the end"): Promise<void> {
        const stores = world.stores.filter(({ region }) => regions.includes(region.name));
        for (const [key, seen] of objects) {
          const all = await world.read(key, stores);
          expect(all, `${what}: what readers see of ${key}`).toEqual(all.map(() => seen));
        }
      }
    } finally {
      await world.close();
    }
  },
  TIMEOUT_MS,
);
