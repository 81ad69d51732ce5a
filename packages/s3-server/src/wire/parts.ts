/**
 * The parts that an object came in. It keeps their lengths and checksums as headers of its own, so that a client can
 * read and check one part. Neither is kept where it would be longer than a header may be.
 */
import { headerCharactersMax } from "@agarose/core/format";
import type { ByteRange } from "@agarose/core/http";
import { algorithmOfHeader, checksumHeader, type ChecksumAlgorithm } from "./checksum.ts";
import { partNumberOf, type ArrivedPart } from "./completion.ts";
import type { S3Request } from "./request.ts";
import { S3Error } from "./s3-error.ts";

/** Begins the names of both headers, which no answer has. */
export const PARTS = "x-amz-checksum-parts";
/** The one that has their lengths. */
export const PART_LENGTHS = `${PARTS}-bytes`;

type Headers = Readonly<Record<string, string>>;

/** A part of an object. */
export interface StoredPart extends ByteRange {
  /** In base64, if it was kept. */
  readonly checksum: string | undefined;
}

/** Returns the headers by which an object keeps its parts. */
export function keptParts(parts: readonly ArrivedPart[], algorithm: ChecksumAlgorithm | undefined): Headers {
  const runs: { readonly bytes: number; count: number }[] = [];
  for (const { bytes } of parts) {
    const last = runs.at(-1);
    if (last?.bytes === bytes) last.count++;
    else runs.push({ bytes, count: 1 });
  }
  const lengths = runs.map(({ bytes, count }) => `${count}*${bytes}`).join(",");
  const sums = algorithm ? parts.map(({ checksums }) => checksums[checksumHeader(algorithm)]) : [];
  const kept = {
    [PART_LENGTHS]: lengths,
    ...(sums.length > 0 && !sums.includes(undefined) && { [PARTS]: sums.join(",") }),
  };
  return Object.fromEntries(Object.entries(kept).filter(([name, value]) => value.length <= headerCharactersMax(name)));
}

/** Returns the parts of an object of `bytes` bytes; undefined where their lengths are not kept. */
export function partsOf({ etag, bytes, headers }: Parted): readonly StoredPart[] | undefined {
  const count = countOf(etag) ?? 1;
  const lengths = (headers[PART_LENGTHS] ?? "").split(",").flatMap((run) => {
    const [, times, each] = /^(\d{1,5})\*(\d{1,16})$/.exec(run) ?? [];
    return Array.from({ length: Number(times ?? 0) }, () => Number(each));
  });
  const known = count === 1 ? [bytes] : lengths;
  if (known.length !== count || known.reduce((sum, length) => sum + length, 0) !== bytes) return undefined;
  const sums = headers[PARTS]?.split(",") ?? [];
  let end = 0;
  return known.map((length, at) => {
    const start = end;
    end += length;
    return { start, end, checksum: sums.length === count ? sums[at] : undefined };
  });
}

/** The record of the parts in which an object was uploaded. */
interface Parted {
  readonly etag: string;
  readonly bytes: number;
  readonly headers: Headers;
}

/** Returns how many parts an object came in, by its ETag; undefined for one that came as a whole. */
export function countOf(etag: string): number | undefined {
  const count = /-(\d+)"?$/.exec(etag)?.[1];
  return count === undefined ? undefined : Number(count);
}

/**
 * Returns the part of the object that a read asks for, and the further headers of its answer; undefined for a read that
 * names none.
 *
 * @throws S3Error InvalidArgument, InvalidRequest beside a range, InvalidPartNumber for one that the object does not
 *   have, NotImplemented where the lengths of the parts are not kept.
 */
export function partAsked(
  request: Pick<S3Request, "query" | "headers">,
  object: Parted,
): { readonly range: ByteRange; readonly headers: Headers } | undefined {
  if (!request.query.has("partNumber")) return undefined;
  const number = partNumberOf(request);
  if (request.headers["range"] !== undefined) {
    throw new S3Error("InvalidRequest", "Cannot specify both Range header and partNumber query parameter.");
  }
  const count = countOf(object.etag);
  if (number > (count ?? 1)) throw new S3Error("InvalidPartNumber", "The requested partnumber is not satisfiable.");
  const parts = partsOf(object);
  if (!parts) {
    const message = `The object came in ${count} parts, whose lengths are not kept. Read it without partNumber, or by Range.`;
    throw new S3Error("NotImplemented", message);
  }
  const { checksum, ...range } = parts[number - 1]!;
  const names = Object.keys(object.headers).filter((name) => algorithmOfHeader(name) !== undefined);
  const hasChecksum = checksum !== undefined && names.length === 1 && "x-amz-checksum-mode" in request.headers;
  return {
    range,
    headers: {
      ...(count !== undefined && { "x-amz-mp-parts-count": String(count) }),
      ...(hasChecksum && { [names[0]!]: checksum, ...typeOf(object.headers) }),
    },
  };
}

function typeOf({ "x-amz-checksum-type": type }: Headers): Headers {
  return type === undefined ? {} : { "x-amz-checksum-type": type };
}
