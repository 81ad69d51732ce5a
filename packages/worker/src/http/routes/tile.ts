/** `GET|HEAD /t/<key>/<z>/<x>/<y>`: one tile of a PMTiles archive, of which only the bytes that it takes are read. */
import { openContent } from "@agarose/core/content";
import { etagOf, failedCondition, keyInPath, unshared } from "@agarose/core/http";
import { ByteLru } from "@agarose/core/read";
import { readChecked } from "@agarose/core/sources";
import type { Context } from "hono";
import { readObject } from "../../read/object-read.ts";
import { clientAddress } from "../../runtime/client-address.ts";
import { checkReader, invocationOf, pathOf, type AppEnv } from "../http.ts";
import {
  directoryOf,
  entryFor,
  headerOf,
  inflated,
  notTile,
  PART_BYTES_MAX,
  START_BYTES,
  tileIdOf,
  type ArchiveHeader,
  type Entry,
} from "../pmtiles.ts";
import { settingsOf } from "../../runtime/settings.ts";

const PATH = /^(.+)\/(\d{1,2})\/(\d{1,9})\/(\d{1,9})(?:\.[a-z0-9]+)?$/s;
const DEPTH_MAX = 3;
/** Memory of an entry of a directory. */
const ENTRY_BYTES = 64;
const CACHED_BYTES_MAX = 4 * 1024 * 1024;

/** Directories by version of the archive and offset: the root has none, and the header. */
const directories = new ByteLru<{
  readonly entries: readonly Entry[];
  readonly header: ArchiveHeader;
  readonly bytes: number;
}>(CACHED_BYTES_MAX);

/** Part of an archive, by its place. */
type Read = (start: number, length: number) => Promise<Uint8Array>;

/**
 * Answers 200 with the tile as it is without its compression, 204 where the archive has none, or 304 and 412 as the
 * conditions ask. Rejects with REQUEST_INVALID for a path of another form and for an object that is no archive, and as
 * a read of the object does.
 */
export async function tile(c: Context<AppEnv>): Promise<Response> {
  const [, key = "", ...place] = PATH.exec(keyInPath(pathOf(c), "/t/") ?? "") ?? [];
  if (key === "") throw notTile("a path /t/<key>/<z>/<x>/<y> is expected");
  const [z, x, y] = place.map(Number) as [number, number, number];
  const id = tileIdOf(z, x, y);
  const token = await checkReader(c, key);
  const { headers: asked, signal, method } = c.req.raw;
  const invocation = invocationOf(c);
  const manifest = await invocation.manifest(key);
  const validators = { etag: etagOf(manifest), "last-modified": new Date(manifest.modified).toUTCString() };
  const cacheControl = manifest.headers["cache-control"] ?? "public, max-age=0, must-revalidate";
  const shared = { headers: { ...validators, "cache-control": cacheControl, "x-content-type-options": "nosniff" } };
  const { headers } = token === undefined ? shared : unshared(shared);
  const failed = failedCondition(validators, asked);
  if (failed) return new Response(null, { status: failed, headers });
  const { secrets } = settingsOf(c.env).access;
  const opened = await openContent(manifest, () => secrets.dataKeyOf(manifest));
  const { bytes } = opened?.shown ?? manifest;
  const client = { signal, client: clientAddress(asked), onTaken: invocation.weigh(key, bytes, token) };
  const read: Read = async (start, length) => {
    const end = Math.min(start + length, bytes);
    if (!(start >= 0 && start < end) || end - start > PART_BYTES_MAX) throw notTile(`a part has ${length} bytes`);
    const wanted = { status: 206, headers: {}, range: { start, end } } as const;
    return readChecked(await readObject(invocation, manifest, wanted, client, opened), () => {});
  };
  const found = await tileIn(manifest.version, id, read);
  if (!found) return new Response(null, { status: 204, headers });
  const { content, contentType } = found;
  const described = { ...headers, "content-type": contentType, "content-length": String(content.length) };
  return new Response(method === "HEAD" ? null : (content as Uint8Array<ArrayBuffer>), { headers: described });
}

async function tileIn(
  version: string,
  id: number,
  read: Read,
): Promise<{ readonly content: Uint8Array; readonly contentType: string } | undefined> {
  let name = version;
  let from = (): Promise<Uint8Array> => read(0, START_BYTES);
  for (let depth = 0; depth <= DEPTH_MAX; depth++) {
    let directory = directories.get(name);
    if (!directory) {
      const bytes = await from();
      const header = directories.get(version)?.header ?? headerOf(bytes);
      const { offset, length } = header.root;
      const stored = name === version ? bytes.subarray(offset, offset + length) : bytes;
      const entries = directoryOf(await inflated(stored, header.directoryCompression));
      directories.set(name, (directory = { entries, header, bytes: (1 + entries.length) * ENTRY_BYTES }));
    }
    const { header } = directory;
    const entry = entryFor(id, directory.entries);
    if (!entry) return undefined;
    if (entry.run > 0) {
      const stored = await read(header.tilesOffset + entry.offset, entry.length);
      return { content: await inflated(stored, header.tileCompression), contentType: header.contentType };
    }
    name = `${version} ${entry.offset}`;
    from = () => read(header.leavesOffset + entry.offset, entry.length);
  }
  throw notTile(`its directories are more than ${DEPTH_MAX} deep`);
}
