/** The verbs that meet encrypted objects, where a half of the work could leave bytes that no secret opens. */
import { readFile, writeFile } from "node:fs/promises";
import { manifestName } from "@agarose/core/format";
import { bytesOf, COPY_DEAD_HOURS, read, soundOf, type Prepare } from "./case.ts";
import { seenAs, type KillWorld } from "./kill-world.ts";

interface Stored {
  readonly k: number;
  readonly encryption?: { readonly secret: string };
}

/** The verbs, as in `VERBS`. */
export const ENCRYPTED_VERBS: Readonly<Record<string, Prepare>> = {
  "put of an encrypted key": async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    await world.put(key, old);
    return {
      args: ["put", await world.file(own), "--key", key],
      before: [seenAs(old), seenAs(own)],
      after: seenAs(own),
      kills: 2,
      atEnd: async () => {
        await soundOf(world, key)();
        await checkStored(world, key, () => true);
      },
    };
  },

  "get of an encrypted key": async (world, key, dice) => {
    const own = bytesOf(key, dice);
    await world.put(key, own);
    const target = await world.file("before", ".target");
    await writeFile(target, "before");
    const seen = seenAs(own);
    const checkFile = async (allowed: readonly string[]): Promise<void> => {
      const content = await readFile(target);
      if (!allowed.includes(seenAs(content))) throw new Error(`get left ${content.length} other bytes in its file`);
    };
    return {
      args: ["get", key, target],
      before: [seen],
      after: seen,
      kills: 1,
      afterKill: () => checkFile([seen, seenAs(Buffer.from("before"))]),
      atEnd: () => checkFile([seen]),
    };
  },

  "recode of an encrypted key": async (world, key, dice) => {
    const own = bytesOf(key, dice);
    await world.put(key, own);
    const seen = seenAs(own);
    return {
      args: ["recode", key, "--code", "1+2"],
      before: [seen],
      after: seen,
      kills: 1,
      beforeRetry: () => world.age("claims", key, COPY_DEAD_HOURS),
      atEnd: async () => {
        await soundOf(world, key)();
        await checkStored(world, key, ({ k }) => k === 1);
      },
    };
  },

  "keys apply of an encrypted key to another secret": async (world, key, dice) => {
    const own = bytesOf(key, dice);
    await world.put(key, own);
    const { encryption: before } = await storedOf(world, key);
    const seen = seenAs(own);
    return {
      args: ["keys", "apply", key],
      config: { secret: "second" },
      before: [seen],
      after: seen,
      kills: 1,
      beforeRetry: () => world.age("claims", key, COPY_DEAD_HOURS),
      atEnd: () => checkStored(world, key, ({ encryption }) => encryption!.secret !== before!.secret),
    };
  },
};

async function checkStored(world: KillWorld, key: string, isRight: (stored: Stored) => boolean): Promise<void> {
  const stored = await storedOf(world, key);
  if (stored.encryption && isRight(stored)) return;
  throw new Error(`${key} ended as ${JSON.stringify(stored).slice(0, 400)}`);
}

async function storedOf(world: KillWorld, key: string): Promise<Stored> {
  return JSON.parse((await read(world, 0, manifestName(key))).toString()) as Stored;
}
