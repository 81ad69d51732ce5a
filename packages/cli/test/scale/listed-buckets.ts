/**
 * An S3 server whose buckets list any number of sound objects. It makes manifests when they are read, and stores
 * nothing, so that a million objects cost nothing to make. It refuses everything else.
 */
import { createServer } from "node:http";
import { listenLocally } from "@agarose/dev-world/listen-locally";
import { chunkName, encodeManifest, manifestName, roundRobin, sealManifest } from "@agarose/core/format";
import { nodeSha256 } from "@agarose/storage/objects/sha256";

const PAGE_OBJECTS = 1_000;
const UPLOAD = "a".repeat(32);
const MODIFIED = "2026-01-02T03:04:05.000Z";
const CHUNK_BYTES = 9_000;

export interface Bucket {
  readonly region: string;
  readonly name: string;
}

type Entry = readonly [name: string, bytes: number, etag: string];

/** Starts the server on loopback. Object number i is the key `keyOf(i)`, in a code of k + m chunks. */
export async function startListedBuckets(buckets: readonly Bucket[], objects: number, code: { k: number; m: number }) {
  let listings = 0;
  let manifests = 0;
  let refused = 0;
  const regions = buckets.map(({ region }) => ({ name: region, provider: region }));

  const manifestOf = async (key: string): Promise<Uint8Array> => {
    const placement = roundRobin(code, regions, key);
    const draft = {
      key,
      ...code,
      placement,
      modified: MODIFIED,
      generation: 1,
      upload: UPLOAD,
      bytes: code.k * CHUNK_BYTES,
      stripeBytes: code.k * CHUNK_BYTES,
      blockBytes: 65_536,
      headers: {},
      contentType: "text/plain",
      sha256: "0".repeat(64),
      hashes: [Buffer.alloc(32 * placement.length).toString("base64")],
    };
    return encodeManifest(await sealManifest(draft, nodeSha256));
  };
  const manifestBytes = (await manifestOf(keyOf(0))).length;
  const entriesOf: Record<string, (region: string, key: string) => readonly Entry[]> = {
    "manifests/": (_region, key) => [[manifestName(key), manifestBytes, key]],
    "chunks/": (region, key) =>
      roundRobin(code, regions, key).flatMap((name, chunk): Entry[] =>
        name === region ? [[chunkName(key, UPLOAD, chunk), CHUNK_BYTES, `${key}-${chunk}`]] : [],
      ),
  };

  const pageOf = ({ region, name }: Bucket, query: URLSearchParams): string => {
    const prefix = query.get("prefix") ?? "";
    const entries = entriesOf[prefix];
    // A token is the number of the first object of the page. Each object has one name of each kind in a region at most.
    const first = Number(query.get("continuation-token") ?? 0);
    const end = entries ? Math.min(first + PAGE_OBJECTS, objects) : 0;
    let contents = "";
    for (let index = first; index < end; index++) {
      for (const [key, bytes, etag] of entries!(region, keyOf(index))) {
        contents +=
          `<Contents><Key>${key}</Key><LastModified>${MODIFIED}</LastModified>` +
          `<ETag>&quot;${etag}&quot;</ETag><Size>${bytes}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
      }
    }
    const isTruncated = entries !== undefined && end < objects;
    const next = isTruncated ? `<NextContinuationToken>${end}</NextContinuationToken>` : "";
    return (
      `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
      `<Name>${name}</Name><Prefix>${prefix}</Prefix><MaxKeys>${PAGE_OBJECTS}</MaxKeys>` +
      `<IsTruncated>${isTruncated}</IsTruncated>${next}${contents}</ListBucketResult>`
    );
  };

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const bucket = buckets.find(({ name }) => url.pathname === `/${name}` || url.pathname === `/${name}/`);
    const key = /\/manifests\/(\d+)@\.json$/.exec(decodeURIComponent(url.pathname))?.[1];
    if (request.method === "GET" && key !== undefined && Number(key) < objects) {
      manifests++;
      void manifestOf(key).then((bytes) => {
        response.writeHead(200, { "content-type": "application/json", etag: `"${key}"` }).end(bytes);
      });
    } else if (request.method === "GET" && bucket && url.searchParams.get("list-type") === "2") {
      listings++;
      response.writeHead(200, { "content-type": "application/xml" }).end(pageOf(bucket, url.searchParams));
    } else {
      refused++;
      response.writeHead(404).end();
    }
  });
  const url = await listenLocally(server);
  return {
    url,
    /** How many requests of each kind came since the last call. */
    takeCounts() {
      const counts = { listings, manifests, refused };
      listings = manifests = refused = 0;
      return counts;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Nine digits, so that keys come in the order of their numbers. */
export const keyOf = (index: number): string => String(index).padStart(9, "0");
