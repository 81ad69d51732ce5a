/**
 * What the buckets hold of one key at a time, in order of the keys and in constant memory.
 *
 * Listings come in order of the names, and `@` ends every key in them, so a merge of all listings meets each key once.
 */
import { CHUNK_PREFIX, decodeKey, encodeKey, MANIFEST_PREFIX } from "@agarose/core";
import { CLAIM_PREFIX, GARBAGE_PREFIX } from "../../lib/objects/commit/names.ts";
import type { ListedObject, Store } from "../../lib/store/store.ts";

/** An object of a listing, and where it is. */
export interface PlacedObject extends ListedObject {
  readonly store: Store;
  /** What follows the key and its `@` in the name. */
  readonly suffix: string;
}

/** Everything of one key. */
export interface KeyGroup {
  readonly key: string;
  readonly chunks: readonly PlacedObject[];
  readonly manifests: readonly PlacedObject[];
  readonly claims: readonly PlacedObject[];
  readonly marks: readonly PlacedObject[];
}

const KINDS = {
  // Chunks first: a put that ends meanwhile has its manifest among those listed afterwards.
  chunks: CHUNK_PREFIX,
  manifests: MANIFEST_PREFIX,
  claims: CLAIM_PREFIX,
  marks: GARBAGE_PREFIX,
} as const;

type Kind = keyof typeof KINDS;

interface Cursor {
  readonly kind: Kind;
  readonly store: Store;
  readonly objects: AsyncIterator<ListedObject>;
  /** The next object and the key that it belongs to; undefined at the end. */
  next: { readonly group: string; readonly object: PlacedObject } | undefined;
}

/** The keys that begin with `prefix`. Rejects when a region cannot be listed. Names of other programs are left out. */
export async function* keyGroups(
  stores: readonly Store[],
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<KeyGroup> {
  const cursors = (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
    stores.map((store): Cursor => {
      const objects = store.list(`${KINDS[kind]}${encodeKey(prefix)}`, signal)[Symbol.asyncIterator]();
      return { kind, store, objects, next: undefined };
    }),
  );
  await Promise.all(cursors.map(advance));
  for (;;) {
    const groups = cursors.flatMap(({ next }) => next?.group ?? []);
    const group = groups.reduce<string | undefined>((a, b) => (a === undefined || b < a ? b : a), undefined);
    if (group === undefined) return;
    const found = await Promise.all(cursors.map((cursor) => take(cursor, group)));
    const key = keyOf(group);
    if (key === undefined) continue;
    const of = (kind: Kind): PlacedObject[] =>
      found.flatMap((objects, index) => (cursors[index]!.kind === kind ? objects : []));
    yield { key, chunks: of("chunks"), manifests: of("manifests"), claims: of("claims"), marks: of("marks") };
  }
}

async function take(cursor: Cursor, group: string): Promise<PlacedObject[]> {
  const objects: PlacedObject[] = [];
  while (cursor.next?.group === group) {
    objects.push(cursor.next.object);
    await advance(cursor);
  }
  return objects;
}

async function advance(cursor: Cursor): Promise<void> {
  for (;;) {
    const { done, value } = await cursor.objects.next();
    cursor.next = undefined;
    if (done) return;
    const rest = value.name.slice(KINDS[cursor.kind].length);
    const at = rest.indexOf("@");
    if (at < 0) continue;
    const object = { ...value, store: cursor.store, suffix: rest.slice(at + 1) };
    cursor.next = { group: rest.slice(0, at + 1), object };
    return;
  }
}

function keyOf(group: string): string | undefined {
  try {
    return decodeKey(group.slice(0, -1));
  } catch {
    return undefined;
  }
}
