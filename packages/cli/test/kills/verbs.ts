/**
 * * The cases of kills: for each verb, the buckets before, the versions that a reader may see after a kill, and the
 * state once the verb has run again.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { chunkName, manifestName, type Manifest } from "@agarose/core/format";
import type { Store } from "@agarose/storage/buckets/store";
import type { Dice } from "@agarose/storage/testing";
import { bytesOf, manifestOf, read, soundOf, type Case, type Prepare } from "./case.ts";
import { EXPIRE_HOURS, KEEP_HOURS, seenAs, type KillWorld, type Seen } from "./kill-world.ts";

const MARK_OLD_HOURS = 48;

/** The verbs and how a case of each begins. */
export const VERBS: Readonly<Record<string, Prepare>> = {
  put: async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    await world.put(key, old);
    const args = ["put", await world.file(own), "--key", key];
    return { args, before: [seenAs(old), seenAs(own)], after: seenAs(own), kills: 1, atEnd: soundOf(world, key) };
  },

  "put again": async (world, key, dice) => {
    const own = bytesOf(key, dice);
    const args = ["put", await world.file(own), "--key", key];
    return { args, before: ["absent", seenAs(own)], after: seenAs(own), kills: 2, atEnd: soundOf(world, key) };
  },

  rm: async (world, key, dice) => {
    const old = bytesOf(key, dice);
    await world.put(key, old);
    return { args: ["rm", key], before: [seenAs(old), "absent"], after: "absent", kills: 1 };
  },

  expire: async (world, key, dice) => {
    const old = bytesOf(key, dice);
    await world.put(key, old);
    await world.age("manifests", key, EXPIRE_HOURS + 1);
    return {
      args: ["expire"],
      before: [seenAs(old), "absent"],
      after: "absent",
      kills: 1,
      beforeRetry: () => world.ageClaims(key),
    };
  },

  gc: async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    const { upload } = await world.put(key, old);
    await world.put(key, own);
    const seen = seenAs(own);
    const args = ["gc", key, "--delete", "--yes"];
    const base = { args, before: [seen], after: seen, kills: 1 };
    if (dice.chance(0.3)) return { ...base, atEnd: soundOf(world, key) };
    await world.run(args);
    const ageMarks = (): Promise<void> => world.age("garbage", key, MARK_OLD_HOURS);
    await ageMarks();
    const atEnd = async (): Promise<void> => {
      const left = (await world.names(`chunks/${key}!`)).filter((name) => name.includes(upload));
      if (left.length > 0) throw new Error(`gc left ${left.join(", ")}`);
      await soundOf(world, key)();
    };
    return { ...base, atEnd };
  },

  "put of a kept key": async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    await world.put(key, old);
    const args = ["put", await world.file(own), "--key", key];
    const atEnd = async (): Promise<void> => {
      await soundOf(world, key)();
      await historyOf(world, key, old)();
    };
    return { args, before: [seenAs(old), seenAs(own)], after: seenAs(own), kills: 2, atEnd };
  },

  "rm of a kept key": async (world, key, dice) => {
    const old = bytesOf(key, dice);
    await world.put(key, old);
    const atEnd = historyOf(world, key, old);
    return { args: ["rm", key], before: [seenAs(old), "absent"], after: "absent", kills: 1, atEnd };
  },

  "restore of a kept key": async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    await world.put(key, old);
    await world.put(key, own);
    return restoreOf(world, key, ["restore", key, "--version", "1"], [old, own]);
  },

  "undelete of a kept key": async (world, key, dice) => {
    const old = bytesOf(key, dice);
    await world.put(key, old);
    await world.run(["rm", key]);
    return restoreOf(world, key, ["rm", "--undelete", key], [old]);
  },

  "gc of a kept key": async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    const { upload } = await world.put(key, old);
    await world.put(key, own);
    const seen = seenAs(own);
    const args = ["gc", key, "--delete", "--yes"];
    const base = { args, before: [seen], after: seen, kills: 1 };
    if (dice.chance(0.4)) {
      const stays = historyOf(world, key, old);
      await world.age("history", key, KEEP_HOURS - 1);
      return { ...base, afterKill: stays, atEnd: stays };
    }
    await world.age("history", key, KEEP_HOURS + 1);
    await world.run(args);
    await world.age("garbage", key, MARK_OLD_HOURS);
    const atEnd = async (): Promise<void> => {
      const left = [...(await world.names(`chunks/${key}!${upload}`)), ...(await world.names(`history/${key}!`))];
      if (left.length > 0) throw new Error(`gc left ${left.join(", ")}`);
      await soundOf(world, key)();
    };
    return { ...base, atEnd };
  },

  "scrub of a hot object": async (world, key, dice) => {
    const own = await sameAfter(["scrub", "--prefix", key], world, key, dice, {
      config: { heats: true },
      afterKill: soundOf(world, key),
      check({ extra }) {
        if (extra?.placement.join() !== "r0") throw new Error(`the extra chunks are in ${extra?.placement.join()}`);
      },
    });
    world.hot.push(key);
    return own;
  },

  repair: async (world, key, dice) => {
    const own = bytesOf(key, dice);
    const isMinority = dice.chance(0.4);
    const old = isMinority ? bytesOf(key, dice) : undefined;
    if (old) await world.put(key, old);
    const name = manifestName(key);
    const oldManifest = old ? await read(world, 0, name) : undefined;
    const { upload } = await world.put(key, own);
    const manifest = await manifestOf(world, key);
    if (oldManifest) {
      // Two of three regions have missed the put.
      for (const store of world.stores.slice(1)) {
        await store.put(name, oldManifest, { bytes: oldManifest.length, contentType: "application/json" });
      }
    } else {
      const lost = dice.below(3);
      const store = world.stores.find(({ region }) => region.name === manifest.placement[lost])!;
      await store.remove([chunkName(key, upload, lost)]);
      await world.stores[dice.below(3)]!.remove([name]);
    }
    const seen = seenAs(own);
    return {
      args: ["repair", key],
      before: old ? [seenAs(old), seen] : [seen],
      after: seen,
      kills: 1,
      beforeRetry: () => world.ageClaims(key),
      atEnd: soundOf(world, key),
    };
  },

  scrub: async (world, key, dice) => {
    const own = bytesOf(key, dice);
    await world.put(key, own);
    const objects = ["a", "b", "c"].map((name) => `${key}/${name}`);
    for (const object of objects) {
      const { upload } = await world.put(object, own);
      const manifest = await manifestOf(world, object);
      const lost = dice.below(3);
      const store = world.stores.find(({ region }) => region.name === manifest.placement[lost])!;
      await store.remove([chunkName(object, upload, lost)]);
      await world.stores[dice.below(3)]!.remove([manifestName(object)]);
    }
    const cursor = await world.file("", ".cursor");
    await rm(cursor);
    return {
      args: ["scrub", "--prefix", `${key}/`, "--cursor", cursor],
      before: [seenAs(own)],
      after: seenAs(own),
      kills: 2,
      atEnd: async () => {
        for (const object of objects) await soundOf(world, object)();
        if ((await readdir(dirname(cursor))).includes(basename(cursor))) throw new Error("scrub left its cursor");
      },
    };
  },

  recode: (world, key, dice) =>
    sameAfter(["recode", key, "--code", "1+2"], world, key, dice, {
      check({ k }) {
        if (k !== 1) throw new Error(`recode left k = ${k}`);
      },
    }),

  "recode for a region that drains": async (world, key, dice) => {
    const drains = dice.pick(world.stores).region.name;
    return sameAfter(["recode", key, "--code", "1+1"], world, key, dice, {
      config: { drains },
      check({ placement }) {
        if (placement.includes(drains)) throw new Error(`recode left a chunk in ${drains}`);
      },
    });
  },

  get: async (world, key, dice) => {
    const own = Buffer.from(`${key} ${dice.next()} `.repeat(60_000));
    await world.put(key, own);
    const target = await world.file("", ".target");
    const old = `before ${key}`;
    await writeFile(target, old);
    const seen = seenAs(own);
    const contentOf = async (): Promise<string> => {
      const content = await readFile(target);
      return content.toString() === old ? "old" : content.equals(own) ? "whole" : `${content.length} other bytes`;
    };
    return {
      args: ["get", key, target],
      before: [seen],
      after: seen,
      kills: 1,
      afterKill: async () => {
        const content = await contentOf();
        if (content !== "old" && content !== "whole") throw new Error(`a killed get left ${content} in its file`);
      },
      atEnd: async () => {
        const content = await contentOf();
        if (content !== "whole") throw new Error(`get ended with ${content} in its file`);
        const files = await readdir(dirname(target));
        const left = files.filter((name) => name.endsWith(".part") && name.includes(basename(target)));
        if (left.length > 0) throw new Error(`get left ${left.join(", ")}`);
      },
    };
  },

  // Its puts and removals are batches: one claim to several keys.
  sync: async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    const [changed, added] = [
      [key, `${key}.1`, `${key}.2`],
      [`${key}.new1`, `${key}.new2`],
    ];
    const gone = [`${key}.gone1`, `${key}.gone2`, `${key}.gone3`];
    for (const one of [...changed, ...gone]) await world.put(one, old);
    const folder = `${await world.file("")}.folder`;
    await mkdir(folder);
    for (const one of [...changed, ...added]) await writeFile(join(folder, one), own);
    const expectSeen = async (keys: readonly string[], allowed: readonly Seen[]): Promise<void> => {
      for (const one of keys) {
        const wrong = (await world.read(one)).find((seen) => !allowed.includes(seen));
        if (wrong !== undefined) throw new Error(`a reader of ${one} sees ${wrong}, not ${allowed.join(" or ")}`);
      }
    };
    return {
      args: ["sync", folder, "/", "--delete", "--yes", "--include", `${key}*`],
      before: [seenAs(old), seenAs(own)],
      after: seenAs(own),
      kills: 2,
      afterKill: async () => {
        await expectSeen(changed, [seenAs(old), seenAs(own)]);
        await expectSeen(added, ["absent", seenAs(own)]);
        await expectSeen(gone, [seenAs(old), "absent"]);
      },
      atEnd: async () => {
        await expectSeen([...changed, ...added], [seenAs(own)]);
        await expectSeen(gone, ["absent"]);
        for (const one of [...changed, ...added]) await soundOf(world, one)();
      },
    };
  },

  mv: async (world, key, dice) => {
    const own = bytesOf(key, dice);
    const to = `moved/${key}`;
    await world.put(key, own);
    const afterKill = async (): Promise<void> => {
      const seen = [...(await world.read(key)), ...(await world.read(to))];
      const wrong = seen.find((one) => one !== seenAs(own) && one !== "absent");
      if (wrong !== undefined) throw new Error(`a killed mv left ${wrong}`);
      if (!seen.includes(seenAs(own))) throw new Error("a killed mv left nothing at both keys");
    };
    return {
      args: ["mv", key, to],
      before: [seenAs(own), "absent"],
      after: "absent",
      kills: 1,
      afterKill,
      // It removes the generation that it has copied, and no other.
      beforeRetry: () => world.ageClaims(key),
      atEnd: soundOf(world, to),
    };
  },

  adopt: async (world, key, dice) => {
    const own = bytesOf(key, dice);
    await world.origin.put(key, own, { bytes: own.length, contentType: "text/plain" });
    return {
      args: ["adopt", key],
      config: { origin: true },
      before: ["absent", seenAs(own)],
      after: seenAs(own),
      kills: 1,
      beforeRetry: () => world.ageClaims(key),
      atEnd: soundOf(world, key),
    };
  },

  release: async (world, key, dice) => {
    const [old, own] = [bytesOf(key, dice), bytesOf(key, dice)];
    const names = [key, `${key}.1`];
    await world.origin.put(key, old, { bytes: old.length, contentType: "text/plain" });
    for (const name of names) await world.put(name, own);
    const plain = (): Promise<Buffer[]> => Promise.all(names.map((name) => bodyOf(world.origin, name)));
    return {
      args: ["release", key],
      config: { origin: true },
      before: [seenAs(own)],
      after: seenAs(own),
      kills: 2,
      afterKill: async () => {
        const [replaced, added] = await plain();
        if (![old, own].some((bytes) => bytes.equals(replaced!))) throw new Error("a killed release left other bytes");
        if (added!.length > 0 && !added!.equals(own)) throw new Error("a killed release left a part of an object");
      },
      atEnd: async () => {
        if (!(await plain()).every((bytes) => bytes.equals(own))) throw new Error("release ended with other bytes");
      },
    };
  },

  "sync --get": async (world, key, dice) => {
    const own = Buffer.from(`${key} ${dice.next()} `.repeat(60_000));
    const names = ["a", "b", "c"];
    for (const name of names) await world.put(`${key}/${name}`, own);
    await world.put(key, own);
    const folder = `${await world.file("")}.folder`;
    await mkdir(folder);
    await writeFile(join(folder, "extra"), "extra");
    const check = async (): Promise<string[]> => {
      const files = await readdir(folder);
      for (const name of files.filter((file) => names.includes(file))) {
        const content = await readFile(join(folder, name));
        if (!content.equals(own)) throw new Error(`a killed sync left ${content.length} other bytes in ${name}`);
      }
      return files;
    };
    return {
      args: ["sync", "--get", key, folder, "--delete", "--yes"],
      before: [seenAs(own)],
      after: seenAs(own),
      kills: 2,
      afterKill: async () => void (await check()),
      atEnd: async () => {
        const files = await check();
        if (files.toSorted().join() !== names.join()) throw new Error(`sync ended with ${files.join(", ")}`);
      },
    };
  },

  "put of an encrypted key": async (world, key, dice) => {
    const own = await VERBS["put"]!(world, key, dice);
    return { ...own, kills: 2, atEnd: soundOf(world, key, checkEncrypted) };
  },

  "get of an encrypted key": (world, key, dice) => VERBS["get"]!(world, key, dice),

  "recode of an encrypted key": (world, key, dice) =>
    sameAfter(["recode", key, "--code", "1+2"], world, key, dice, {
      check(manifest) {
        checkEncrypted(manifest);
        if (manifest.k !== 1) throw new Error(`recode left k = ${manifest.k}`);
      },
    }),

  "keys apply of an encrypted key to another secret": async (world, key, dice) => {
    let before: string | undefined;
    const own = await sameAfter(["keys", "apply", key], world, key, dice, {
      config: { secret: "second" },
      check(manifest) {
        checkEncrypted(manifest);
        if (manifest.encryption?.secret === before) throw new Error(`${key} is still encrypted by ${before}`);
      },
    });
    before = (await manifestOf(world, key)).encryption?.secret;
    return own;
  },
};

/** Nothing where there is no object. */
async function bodyOf(store: Store, name: string): Promise<Buffer> {
  const { status, body } = await store.get(name);
  const bytes = Buffer.from(await new Response(body as BodyInit).arrayBuffer());
  return status === 200 ? bytes : Buffer.alloc(0);
}

function checkEncrypted({ encryption }: Manifest): void {
  if (!encryption) throw new Error("it is not encrypted at the end");
}

/** A verb that stores an object again, which every reader sees as it was. */
async function sameAfter(
  args: readonly string[],
  world: KillWorld,
  key: string,
  dice: Dice,
  { check, ...more }: Pick<Case, "config" | "afterKill"> & { readonly check: (manifest: Manifest) => void },
): Promise<Case> {
  const own = bytesOf(key, dice);
  await world.put(key, own);
  const seen = seenAs(own);
  const beforeRetry = (): Promise<void> => world.ageClaims(key);
  return { args, before: [seen], after: seen, kills: 1, beforeRetry, atEnd: soundOf(world, key, check), ...more };
}

/** Brings `old` back. `own` is what the key holds, if anything. */
function restoreOf(world: KillWorld, key: string, args: readonly string[], [old, own]: readonly Buffer[]): Case {
  const seen = seenAs(old!);
  return {
    args,
    before: [own ? seenAs(own) : "absent", seen],
    after: seen,
    kills: 1,
    beforeRetry: () => world.ageClaims(key),
    atEnd: async () => {
      await soundOf(world, key)();
      if (own) await historyOf(world, key, own)();
    },
  };
}

/** Throws unless the history of a key has these bytes, and all of it can be read. */
function historyOf(world: KillWorld, key: string, bytes: Uint8Array): () => Promise<void> {
  return async () => {
    const kept = await world.readHistory(key);
    if (!kept.includes(seenAs(bytes))) throw new Error(`the history of ${key} is ${kept.join(", ") || "empty"}`);
  };
}
