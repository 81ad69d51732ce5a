/** CreateMultipartUpload and CompleteMultipartUpload: which parts an upload has, and whether their checksums hold. */
import {
  algorithmNamed,
  algorithmOfHeader,
  checkChecksumForm,
  checksumHeader,
  checksumTypeOf,
  compositeChecksum,
  startChecksum,
  type ChecksumAlgorithm,
} from "./checksum.ts";
import type { UploadChecksum } from "./list.ts";
import { OPERATIONS } from "./operations.ts";
import type { S3Request } from "./request.ts";
import { S3Error } from "./s3-error.ts";
import { readXml, type XmlElement } from "./xml.ts";

/** The shortest part that S3 accepts, except for the last one. */
const PART_BYTES_MIN = 5 * 1024 * 1024;
/** The most parts of one upload. */
const PARTS_MAX = 10_000;

/** A part that has arrived, as a completion looks at it. */
export interface ArrivedPart {
  readonly bytes: number;
  /** In hex. */
  readonly md5: string;
  /** By header name. */
  readonly checksums: Readonly<Record<string, string>>;
}

/** A part as CompleteMultipartUpload names it. */
export interface NamedPart {
  readonly number: number;
  readonly etag: string | undefined;
  /** By header name. */
  readonly checksums: Readonly<Record<string, string>>;
}

/** Returns the number of the part that a request is about. Throws S3Error InvalidArgument. */
export function partNumberOf({ query }: Pick<S3Request, "query">): number {
  const text = query.get("partNumber") ?? "";
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= PARTS_MAX) return number;
  throw new S3Error("InvalidArgument", `Part number must be an integer between 1 and ${PARTS_MAX}, inclusive.`);
}

/** Returns how CreateMultipartUpload wants parts to be checked; undefined when it says nothing. */
export function uploadChecksumOf({ headers }: Pick<S3Request, "headers">): UploadChecksum | undefined {
  const { "x-amz-checksum-algorithm": named, "x-amz-checksum-type": type } = headers;
  if (named === undefined) {
    if (type === undefined) return undefined;
    throw new S3Error(
      "InvalidRequest",
      "The x-amz-checksum-type header can only be used with x-amz-checksum-algorithm.",
    );
  }
  const algorithm = algorithmNamed(named);
  return { algorithm, type: checksumTypeOf(algorithm, type) };
}

/** Throws S3Error InvalidRequest when a part comes with a checksum of an algorithm other than its upload has. */
export function checkPartAlgorithm({ headers }: Pick<S3Request, "headers">, upload: UploadChecksum | undefined): void {
  if (!upload) return;
  const trailers = (headers["x-amz-trailer"] ?? "").split(",").map((name) => name.trim());
  const sent = [...Object.keys(headers), ...trailers].flatMap((name) => algorithmOfHeader(name) ?? []);
  const other = sent.find((algorithm) => algorithm !== upload.algorithm);
  if (other === undefined) return;
  const message = `Checksum Type mismatch occurred, expected checksum Type: ${upload.algorithm}, actual: ${other}`;
  throw new S3Error("InvalidRequest", message);
}

/** Reads the body of CompleteMultipartUpload. Throws S3Error MalformedXML. */
export function readCompletion(xml: string): NamedPart[] {
  const { root, elements } = OPERATIONS.CompleteMultipartUpload.body;
  const parts = readXml(xml, root, elements).elements.get("Part") ?? [];
  if (parts.length === 0) throw new S3Error("MalformedXML", "The XML you provided names no part.");
  if (parts.length > PARTS_MAX) throw new S3Error("MalformedXML", `An upload has at most ${PARTS_MAX} parts.`);
  return parts.map(readPart);
}

function readPart({ texts }: XmlElement): NamedPart {
  const number = texts.get("PartNumber") ?? "";
  if (!/^\d{1,9}$/.test(number)) throw new S3Error("MalformedXML", "A part has no PartNumber.");
  const algorithms = [...texts.keys()].filter((name) => name.startsWith("Checksum"));
  const checksums = algorithms.map((name) => [
    checksumHeader(algorithmNamed(name.slice("Checksum".length))),
    texts.get(name)!,
  ]);
  const etag = texts.get("ETag")?.replaceAll('"', "");
  return { number: Number(number), etag, checksums: Object.fromEntries(checksums) as Record<string, string> };
}

/**
 * Returns the named parts, of those that arrived, by number. Throws S3Error InvalidPart, InvalidPartOrder or
 * EntityTooSmall.
 */
export function namedParts<T extends ArrivedPart>(arrived: ReadonlyMap<number, T>, named: readonly NamedPart[]): T[] {
  return named.map(({ number, etag, checksums }, index) => {
    const part = arrived.get(number);
    const isOther = Object.entries(checksums).some(
      ([header, value]) => part?.checksums[header] !== undefined && part.checksums[header] !== value,
    );
    if (!part || part.md5 !== etag || isOther) {
      throw new S3Error("InvalidPart", `Part ${number} could not be found, or its tag or checksum does not match.`);
    }
    if (index > 0 && number <= named[index - 1]!.number) {
      throw new S3Error("InvalidPartOrder", "The list of parts was not in ascending order.");
    }
    if (index < named.length - 1 && part.bytes < PART_BYTES_MIN) {
      throw new S3Error(
        "EntityTooSmall",
        `Part ${number} has ${part.bytes} bytes, at least ${PART_BYTES_MIN} are needed.`,
      );
    }
    return part;
  });
}

/**
 * Checks what CompleteMultipartUpload says of the whole object, and returns the checksum headers that the object keeps.
 *
 * @param named the parts as the client names them, and `parts` those that arrived, in the same order.
 * @param read the bytes of a part.
 * @throws S3Error InvalidRequest when length or algorithm are others; BadDigest when a checksum does not hold.
 */
export async function checkCompletion<T extends ArrivedPart>(
  { headers }: Pick<S3Request, "headers">,
  upload: UploadChecksum | undefined,
  { named, parts }: { readonly named: readonly NamedPart[]; readonly parts: readonly T[] },
  read: (part: T) => AsyncIterable<Uint8Array>,
): Promise<Record<string, string>> {
  const size = headers["x-amz-mp-object-size"];
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  if (size !== undefined && size !== String(bytes)) {
    throw new S3Error("InvalidRequest", `The parts have ${bytes} bytes, but x-amz-mp-object-size is ${size}.`);
  }
  const expected = Object.keys(headers).flatMap((name) => algorithmOfHeader(name) ?? []);
  if (expected.length > 1) throw new S3Error("InvalidRequest", "Multiple checksum Types are not allowed.");
  const asked = headers["x-amz-checksum-type"];
  const algorithm = upload?.algorithm ?? expected[0];
  if (algorithm === undefined) {
    if (asked !== undefined) throw new S3Error("InvalidRequest", "x-amz-checksum-type comes without a checksum.");
    await checkNamed(named, parts, read);
    return {};
  }
  const isOtherType = upload && asked !== undefined && asked.toUpperCase() !== upload.type;
  if (isOtherType || expected.some((one) => one !== algorithm)) {
    const message = `The upload was created with ${algorithm} and ${upload?.type}: complete it with the same.`;
    throw new S3Error("InvalidRequest", message);
  }
  await checkNamed(named, parts, read);
  const type = upload?.type ?? checksumTypeOf(algorithm, asked);
  const header = checksumHeader(algorithm);
  const checksum =
    type === "FULL_OBJECT" ? await wholeOf(algorithm, parts, read) : await compositeOf(algorithm, parts, read);
  const value = headers[header];
  // A composite checksum may come without the number of its parts.
  if (value !== undefined) checkChecksumForm(algorithm, value.replace(/-\d+$/, ""));
  if (
    value !== undefined &&
    value !== checksum &&
    (type === "FULL_OBJECT" || value !== checksum.replace(/-\d+$/, ""))
  ) {
    throw new S3Error("BadDigest", `The ${header} you specified is not that of the object.`);
  }
  return { [header]: checksum, "x-amz-checksum-type": type };
}

/** Checks the checksums of parts that arrived without them. */
async function checkNamed<T extends ArrivedPart>(
  named: readonly NamedPart[],
  parts: readonly T[],
  read: (part: T) => AsyncIterable<Uint8Array>,
): Promise<void> {
  for (const [at, { number, checksums }] of named.entries()) {
    for (const [header, value] of Object.entries(checksums)) {
      const algorithm = algorithmOfHeader(header)!;
      if (parts[at]!.checksums[header] !== undefined || (await wholeOf(algorithm, [parts[at]!], read)) === value)
        continue;
      throw new S3Error("InvalidPart", `Part ${number} does not have the checksum that the request names.`);
    }
  }
}

async function compositeOf<T extends ArrivedPart>(
  algorithm: ChecksumAlgorithm,
  parts: readonly T[],
  read: (part: T) => AsyncIterable<Uint8Array>,
): Promise<string> {
  const checksums: string[] = [];
  for (const part of parts) {
    checksums.push(part.checksums[checksumHeader(algorithm)] ?? (await wholeOf(algorithm, [part], read)));
  }
  return compositeChecksum(algorithm, checksums);
}

async function wholeOf<T extends ArrivedPart>(
  algorithm: ChecksumAlgorithm,
  parts: readonly T[],
  read: (part: T) => AsyncIterable<Uint8Array>,
): Promise<string> {
  const running = await startChecksum(algorithm);
  for (const part of parts) for await (const bytes of read(part)) running.update(bytes);
  return running.digest();
}
