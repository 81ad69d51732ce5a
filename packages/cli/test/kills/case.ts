/** A case of a verb, and the parts that cases share. */
import { manifestName, type Manifest } from "@agarose/core/format";
import type { Dice } from "@agarose/storage/testing";
import type { ConfigChange, KillWorld, Seen } from "./kill-world.ts";

/** A case of a verb, on its own key. */
export interface Case {
  readonly args: readonly string[];
  /** In what the configuration of its processes differs from that of the world. Default: in nothing. */
  readonly config?: ConfigChange;
  /** Versions that readers may see from the start until the verb has succeeded. */
  readonly before: readonly Seen[];
  /** The version that all readers see after it. */
  readonly after: Seen;
  /** How often it is killed before it may end. */
  readonly kills: number;
  /** Throws when a kill left what it must not. */
  readonly afterKill?: () => Promise<void>;
  /** Before it runs again. */
  readonly beforeRetry?: () => Promise<void>;
  /** Throws when it did not do all of its work. */
  readonly atEnd?: () => Promise<void>;
}

/** Makes what the buckets hold before. */
export type Prepare = (world: KillWorld, key: string, dice: Dice) => Promise<Case>;

/** One to three stripes. */
export function bytesOf(key: string, dice: Dice): Buffer {
  return Buffer.from(`${key} ${dice.next()} `.repeat(dice.pick([1_000, 5_000, 8_000])));
}

/** Throws unless an object has all of its chunks and manifests, or what `check` throws for the latter. */
export function soundOf(world: KillWorld, key: string, check?: (manifest: Manifest) => void): () => Promise<void> {
  return async () => {
    const verdict = await world.verify(key);
    if (!verdict.sound) throw new Error(`${key} is damaged: ${JSON.stringify(verdict)}`);
    check?.(await manifestOf(world, key));
  };
}

/** The manifest of a key in the first region. */
export async function manifestOf(world: KillWorld, key: string): Promise<Manifest> {
  return JSON.parse((await read(world, 0, manifestName(key))).toString()) as Manifest;
}

/** The object of a region under a name. */
export async function read(world: KillWorld, region: number, name: string): Promise<Buffer> {
  const response = await world.stores[region]!.get(name);
  return Buffer.from(await new Response(response.body).arrayBuffer());
}
