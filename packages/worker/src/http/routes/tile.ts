/** `GET|HEAD /t/<key>/<z>/<x>/<y>`: one tile of a PMTiles archive, of which only the bytes that it takes are read. */
import { AgaroseError } from "@agarose/core";
import { openContent } from "@agarose/core/content";
import { etagOf, failedCondition, keyInPath, unshared } from "@agarose/core/http";
import { readChecked } from "@agarose/core/sources";
import type { Context } from "hono";
import { Compression, PMTiles, ResolvedValueCache, TileType, zxyToTileId } from "pmtiles";
import { readObject } from "../../read/object-read.ts";
import { clientAddress } from "../../runtime/client-address.ts";
import { checkReader, invocationOf, pathOf, type AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";

const PATH = /^(.+)\/(\d{1,2})\/(\d{1,9})\/(\d{1,9})(?:\.[a-z0-9]+)?$/s;
/** Of a directory or a tile, compressed or not: an archive may say anything. */
const PART_BYTES_MAX = 8 * 1024 * 1024;
/** Headers and directories of archives, of some kilobytes each, by version. */
const CACHED_MAX = 32;
const TYPES: Partial<Record<TileType, string>> = {
  [TileType.Mvt]: "application/vnd.mapbox-vector-tile",
  [TileType.Png]: "image/png",
  [TileType.Jpeg]: "image/jpeg",
  [TileType.Webp]: "image/webp",
  [TileType.Avif]: "image/avif",
};

const directories = new ResolvedValueCache(CACHED_MAX, undefined, inflated);

/**
 * Answers 200 with the tile as it is without its compression, 204 where the archive has none, or 304 and 412 as the
 * conditions ask. Rejects with REQUEST_INVALID for a path of another form and for an object that is no archive, and as
 * a read of the object does.
 */
export async function tile(c: Context<AppEnv>): Promise<Response> {
  const [, key = "", ...place] = PATH.exec(keyInPath(pathOf(c), "/t/") ?? "") ?? [];
  const [z, x, y] = place.map(Number) as [number, number, number];
  if (key === "") throw invalid("a path /t/<key>/<z>/<x>/<y> is expected");
  await orInvalid(async () => zxyToTileId(z, x, y));
  const token = await checkReader(c, key);
  const { headers: asked, signal, method } = c.req.raw;
  const invocation = invocationOf(c);
  const manifest = await invocation.manifest(key);
  const { secrets } = settingsOf(c.env).access;
  const opened = await openContent(manifest, () => secrets.dataKeyOf(manifest));
  const { bytes } = opened?.shown ?? manifest;
  const client = { signal, client: clientAddress(asked), onTaken: invocation.weigh(key, bytes, token) };
  const archive = new PMTiles(
    {
      getKey: () => manifest.version,
      async getBytes(start, length) {
        const end = Math.min(start + length, bytes);
        if (!(start >= 0 && start < end) || end - start > PART_BYTES_MAX)
          throw invalid(`has a part of ${length} bytes`);
        const wanted = { status: 206, headers: {}, range: { start, end } } as const;
        const { body } = await readObject(invocation, manifest, wanted, client, opened);
        return { data: await new Response(body).arrayBuffer() };
      },
    },
    directories,
    inflated,
  );
  const validators = { etag: etagOf(manifest), "last-modified": new Date(manifest.modified).toUTCString() };
  const cacheControl = manifest.headers["cache-control"] ?? "public, max-age=0, must-revalidate";
  const shared = { ...validators, "cache-control": cacheControl, "x-content-type-options": "nosniff" };
  const { headers } = token === undefined ? { headers: shared } : unshared({ headers: shared });
  const failed = failedCondition(validators, asked);
  if (failed) return new Response(null, { status: failed, headers });
  const found = await orInvalid(async () => ({
    type: TYPES[(await archive.getHeader()).tileType],
    data: (await archive.getZxy(z, x, y))?.data,
  }));
  if (!found.data) return new Response(null, { status: 204, headers });
  const described = { ...headers, "content-type": found.type ?? "application/octet-stream" };
  const length = { "content-length": String(found.data.byteLength) };
  return new Response(method === "HEAD" ? null : found.data, { headers: { ...described, ...length } });
}

/** What an archive holds at some place, of which only gzip is known. */
async function inflated(data: ArrayBuffer, compression: Compression): Promise<ArrayBuffer> {
  if (compression === Compression.None || compression === Compression.Unknown) return data;
  if (compression !== Compression.Gzip) throw invalid(`is compressed by method ${compression}, and 2 (gzip) is known`);
  const body = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip")) as ReadableStream<Uint8Array>;
  const whole = await readChecked({ status: 200, headers: new Headers(), body }, (bytes) => {
    if (bytes > PART_BYTES_MAX) throw invalid(`has a part of more than ${PART_BYTES_MAX} bytes`);
  });
  return whole.buffer as ArrayBuffer;
}

/** The library throws plain errors at what is no archive. */
async function orInvalid<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AgaroseError || !(error instanceof Error) || error.name === "AbortError") throw error;
    throw invalid(error.message);
  }
}

function invalid(problem: string): AgaroseError {
  return new AgaroseError("REQUEST_INVALID", `no tile of a PMTiles archive: ${problem}`);
}
