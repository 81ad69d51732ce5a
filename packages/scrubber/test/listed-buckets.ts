/** Buckets that list any number of sound objects and hold none of them. For tests of a walk over many. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { roundRobin } from "@agarose/core/format";

const PAGE = 1_000;
const UPLOAD = "0".repeat(32);
const [MANIFEST_BYTES, CHUNK_BYTES] = [2_000, 10_000];

/** Serves `objects` objects in `regions`, coded by `code`. */
export async function startListedBuckets(
  objects: number,
  regions: readonly string[],
  code: { readonly k: number; readonly m: number },
) {
  const named = regions.map((name) => ({ name, provider: name }));
  const keyOf = (index: number): string => `o/${String(index).padStart(9, "0")}`;
  const places = Array.from({ length: objects }, (_, index) => roundRobin(code, named, keyOf(index)));
  const kinds: Record<string, (index: number, region: string) => string> = {
    "manifests/": (index) => `manifests/${keyOf(index)}!.json`,
    "chunks/": (index, region) => `chunks/${keyOf(index)}!${UPLOAD}/${places[index]!.indexOf(region)}`,
  };
  let [requests, lists] = [0, 0];
  const server = createServer(({ url = "" }, response) => {
    requests++;
    const { pathname, searchParams } = new URL(url, "http://buckets");
    const prefix = searchParams.get("prefix");
    if (prefix === null) return void response.writeHead(404).end("<Error><Code>NoSuchKey</Code></Error>");
    lists++;
    const nameOf = kinds[Object.keys(kinds).find((kind) => prefix.startsWith(kind)) ?? ""];
    const after = searchParams.get("continuation-token") ?? searchParams.get("start-after") ?? "";
    const region = pathname.slice(1).replace(/\/$/, "");
    let [low, high] = [0, nameOf ? objects : 0];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (nameOf!(middle, region) <= after) low = middle + 1;
      else high = middle;
    }
    const end = nameOf ? Math.min(objects, low + PAGE) : low;
    const bytes = prefix.startsWith("manifests/") ? MANIFEST_BYTES : CHUNK_BYTES;
    let contents = "";
    for (let index = low; index < end; index++) {
      const time = "<LastModified>2026-11-01T00:00:00.000Z</LastModified>";
      const etag = "<ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag>";
      contents += `<Contents><Key>${nameOf!(index, region)}</Key>${time}${etag}<Size>${bytes}</Size></Contents>`;
    }
    const isTruncated = nameOf !== undefined && end < objects;
    const next = isTruncated ? `<NextContinuationToken>${nameOf(end - 1, region)}</NextContinuationToken>` : "";
    response.end(`<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${next}${contents}</ListBucketResult>`);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => ({ requests, lists }),
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
