/**
 * A second implementation of docs/reference/format.md, written from that page and without a line of ours.
 */
import { createDecipheriv, createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { crc32, inflateRawSync } from "node:zlib";

/** Of the page's private key: what PKCS #8 puts before a seed of Ed25519 (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
export const PRIVATE_KEY = createPrivateKey({
  key: Buffer.concat([PKCS8, Buffer.from(indices(32))]),
  format: "der",
  type: "pkcs8",
});
export const RAW_PUBLIC_KEY = createPublicKey(PRIVATE_KEY).export({ format: "der", type: "spki" }).subarray(-32);
export const KEY_ID = sha256(RAW_PUBLIC_KEY).toString("hex").slice(0, 16);

export function crcOf(manifest: string): string {
  const before = manifest.slice(0, manifest.lastIndexOf(',"crc32":"'));
  return crc32(Buffer.from(before)).toString(16).padStart(8, "0");
}

/** An object to write. */
export interface Content {
  readonly key: string;
  readonly body: Buffer;
  readonly k: number;
  readonly m: number;
  readonly stripeBytes: number;
  readonly upload: string;
  /** False if it is inline. Default: true. */
  readonly hasChunks?: boolean;
  /** Set if `body` is segments of gzip. */
  readonly gzip?: CompressedFields | undefined;
  /** Default: that of a new object. */
  readonly blockBytes?: number;
}

/** The bytes of a block of a new object. */
export function blockBytesOf(bytes: number, k: number, stripeBytes: number): number {
  return Math.ceil(Math.min(bytes, stripeBytes) / k) > 262_144 ? 32_768 : 65_536;
}

/** Chunks, leaf list and hashes of an object. */
export function encode({ key, body, k, m, stripeBytes, upload, ...more }: Content) {
  const { blockBytes = blockBytesOf(body.length, k, stripeBytes) } = more;
  const { hasChunks = true, gzip } = more;
  const rows = rowsOver(indices(k), indices(k + m));
  const chunks: Buffer[][] = indices(k + m).map(() => []);
  const hashes: Buffer[] = [];
  const blocks = blocksOfShard(Buffer.alloc(Math.ceil(Math.min(stripeBytes, body.length) / k)), blockBytes).length;
  const leaves: Buffer[] = [];
  const codedBytes = hasChunks ? body.length : 0;
  for (let start = 0; start < codedBytes; start += stripeBytes) {
    const shards = dataShards(body.subarray(start, start + stripeBytes), k);
    const coded = rows.map((row) => combine(row, shards));
    coded.forEach((shard, i) => chunks[i]!.push(shard));
    hashes.push(Buffer.concat(coded.map((shard) => shardHash(shard, blockBytes))));
    leaves.push(Buffer.concat(coded.flatMap((shard) => blocksOfShard(shard, blockBytes).map(sha256))));
  }
  const pages = pagesOf(hashes);
  const root = merkleRoot(hashes).toString("hex");
  const hashesSha256 = pages ? undefined : sha256(Buffer.concat(hashes)).toString("hex");
  const content = [encodedKey(key), sha256(body).toString("hex"), String(body.length)];
  const code = [`${k}+${m}`, `${stripeBytes}/${blockBytes}`];
  const versionLines = ["agarose/2", ...content, ...code, hashesSha256 ?? root, ...(gzip ? ["gzip"] : [])];
  const version = sha256(Buffer.from(versionLines.map((line) => `${line}\n`).join("")))
    .toString("hex")
    .slice(0, 32);
  return {
    chunks: chunks.map((shards) => Buffer.concat(shards)),
    hashes: (pages ? pages.roots : hashes).map((part) => part.toString("base64")),
    ...(hashesSha256 && { hashesSha256 }),
    hashesRoot: root,
    ...(pages && { pageStripes: pages.each }),
    versionLines,
    version,
    leaves: pages || blocks > 1 ? leafList(blocks > 1 ? leaves : [], hashes, pages?.each) : undefined,
    leafName: `chunks/${keyName(key)}${upload}/256`,
    names: indices(k + m).map((i) => `chunks/${keyName(key)}${upload}/${i}`),
  };
}

/** The k data shards of a stripe. */
function dataShards(data: Buffer, k: number): Buffer[] {
  const shardBytes = Math.ceil(data.length / k);
  const padded = Buffer.concat([data, Buffer.alloc(k * shardBytes - data.length)]);
  return indices(k).map((i) => padded.subarray(i * shardBytes, (i + 1) * shardBytes));
}

/** Extra chunks of an object, one for each region, and what a manifest says of them. */
export function encodeExtra({ key, body, k, m, stripeBytes }: Content, upload: string, placement: readonly string[]) {
  const first = k + m;
  const rows = rowsOver(
    indices(k),
    placement.map((_, i) => first + i),
  );
  const stripes = indices(Math.ceil(body.length / stripeBytes)).map((s) =>
    dataShards(body.subarray(s * stripeBytes, (s + 1) * stripeBytes), k),
  );
  const chunks = rows.map((row) => Buffer.concat(stripes.map((shards) => combine(row, shards))));
  return {
    chunks,
    names: chunks.map((_, i) => `chunks/${keyName(key)}${upload}/${first + i}`),
    extra: { upload, placement, sha256: chunks.map((chunk) => sha256(chunk).toString("hex")) },
  };
}

/** How many stripes a page has, and the roots of the pages. Undefined where the manifest has all hashes. */
function pagesOf(hashes: Buffer[]) {
  const characters = hashes.reduce((sum, stripe) => sum + stripe.toString("base64").length + 3, 0);
  if (characters <= 14_600) return undefined;
  let each = 1;
  while (each * hashes[0]!.length < 16 * 1024 || hashes.length / each > 256) each *= 2;
  return { each, roots: groupsOf(hashes, each).map(merkleRoot) };
}

/** The leaves of the stripes of each page, and behind them the page. */
function leafList(leaves: Buffer[], hashes: Buffer[], each = 1): Buffer {
  const isPaged = pagesOf(hashes) !== undefined;
  const pages = groupsOf(hashes, each).map((page, p) => [
    ...leaves.slice(p * each, (p + 1) * each),
    ...(isPaged ? page : []),
  ]);
  return Buffer.concat(pages.flat());
}

function groupsOf<T>(list: T[], each: number): T[][] {
  return indices(Math.ceil(list.length / each)).map((i) => list.slice(i * each, (i + 1) * each));
}

export function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

export function shardHash(shard: Buffer, blockBytes: number): Buffer {
  const blocks = blocksOfShard(shard, blockBytes);
  return blocks.length === 1 ? sha256(shard) : sha256(Buffer.concat(blocks.map(sha256)));
}

export function blocksOfShard(shard: Buffer, blockBytes: number): Buffer[] {
  return indices(Math.ceil(shard.length / blockBytes)).map((i) => shard.subarray(i * blockBytes, (i + 1) * blockBytes));
}

/** RFC 6962, section 2.1. */
function merkleRoot(leaves: Buffer[]): Buffer {
  if (leaves.length === 0) return sha256(Buffer.alloc(0));
  if (leaves.length === 1) return sha256(Buffer.concat([Buffer.of(0), leaves[0]!]));
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Buffer.concat([Buffer.of(1), merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split))]));
}

/** The text of a manifest or tombstone, with a signature and its CRC. */
export function seal(fields: Record<string, unknown>): string {
  const value = sign(null, signedContent(fields), PRIVATE_KEY).toString("base64");
  const text = JSON.stringify({ ...fields, signature: { keyId: KEY_ID, value } }).slice(0, -1);
  return `${text},"crc32":"${crcOf(`${text},"crc32":"`)}"}`;
}

export function isSigned(manifest: string): boolean {
  const { signature, ...fields } = JSON.parse(manifest);
  const content = signedContent(fields);
  const value = Buffer.from(signature.value, "base64");
  return signature.keyId === KEY_ID && verify(null, content, createPublicKey(PRIVATE_KEY), value);
}

function signedContent({
  hashes: _hashes,
  inline: _inline,
  crc32: _crc32,
  ...signed
}: Record<string, unknown>): Buffer {
  return Buffer.from(`agarose-manifest/2\n${sortedJson(signed)}`);
}

/** RFC 8785, for what manifests consist of. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => {
    if (typeof field !== "object" || field === null || Array.isArray(field)) return field;
    return Object.fromEntries(Object.entries(field).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}

export function decode(chunks: Buffer[], present: number[], k: number, stripeBytes: number, bytes: number): Buffer {
  const matrix = rowsOver(present, indices(k));
  const stripes: Buffer[] = [];
  for (let s = 0; s * stripeBytes < bytes; s++) {
    const dataBytes = Math.min(stripeBytes, bytes - s * stripeBytes);
    const offset = s * Math.ceil(stripeBytes / k);
    const shards = present.map((chunk) => chunks[chunk]!.subarray(offset, offset + Math.ceil(dataBytes / k)));
    stripes.push(Buffer.concat(matrix.map((row) => combine(row, shards))).subarray(0, dataBytes));
  }
  return Buffer.concat(stripes);
}

/** Coefficients of each wanted row over the rows R: v(w) * V(R)^-1, by solving x * V(R) = v(w). */
export function rowsOver(present: number[], wanted: number[]): number[][] {
  return wanted.map((w) => {
    // Unknowns x_j; equation c says: sum over j of x_j * present_j^c = w^c.
    const equations = present.map((_, c) => [...present.map((r) => power(r, c)), power(w, c)]);
    const size = present.length;
    for (let column = 0; column < size; column++) {
      const pivot = equations.findIndex((equation, at) => at >= column && equation[column] !== 0);
      [equations[column], equations[pivot]] = [equations[pivot]!, equations[column]!];
      const scale = power(equations[column]![column]!, 254);
      equations[column] = equations[column]!.map((value) => times(value, scale));
      for (let at = 0; at < size; at++) {
        const factor = equations[at]![column]!;
        if (at === column || factor === 0) continue;
        equations[at] = equations[at]!.map((value, i) => value ^ times(factor, equations[column]![i]!));
      }
    }
    return equations.map((equation) => equation[size]!);
  });
}

export function combine(row: number[], shards: Buffer[]): Buffer {
  const sum = Buffer.alloc(shards[0]!.length);
  row.forEach((factor, i) => {
    const products = indices(256).map((byte) => times(factor, byte));
    shards[i]!.forEach((byte, at) => (sum[at]! ^= products[byte]!));
  });
  return sum;
}

/** Multiplication of polynomials over GF(2), reduced by 0x11D. */
function times(a: number, b: number): number {
  let result = 0;
  for (let bit = 0; bit < 8; bit++) {
    if (b & (1 << bit)) result ^= a << bit;
  }
  for (let bit = 14; bit >= 8; bit--) if (result & (1 << bit)) result ^= 0x11d << (bit - 8);
  return result;
}

function power(base: number, exponent: number): number {
  return indices(exponent).reduce((result) => times(result, base), 1);
}

export function indices(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** A key in the path of a URL, and in what is hashed. */
export function encodedKey(key: string): string {
  const segments = key.split("/");
  const isOdd = (segment: string | undefined): boolean => segment === "." || segment === "..";
  return segments
    .map((segment, at) => {
      const bytes = Array.from(Buffer.from(segment), (byte) => {
        const character = String.fromCharCode(byte);
        return /[A-Za-z0-9\-._~]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
      });
      if (at === segments.length - 1) return bytes.join("");
      const next = segments[at + 1]!;
      const isLast = at + 1 === segments.length - 1;
      const isFirst = at === 0 && (segment === "" || isOdd(segment));
      return `${bytes.join("")}${isFirst || isOdd(next) || (next === "" && !isLast) ? "%2F" : "/"}`;
    })
    .join("");
}

/** The name of a key, with the `!` that ends it. */
export function keyName(key: string): string {
  const digit = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
  const pairs = { 0x3a: "@-012345", 0x5b: "_WXYZ_a", 0x7b: "~01234" };
  const token = (byte: number): string => {
    for (const [from, [lead, ...seconds]] of Object.entries(pairs)) {
      const second = seconds[byte - Number(from)];
      if (second !== undefined) return `${lead}${second}`;
    }
    return byte < 0x2d ? `%${byte.toString(16).toUpperCase().padStart(2, "0")}` : String.fromCharCode(byte);
  };
  let [text, isRun] = ["", false];
  for (const character of key) {
    const [first = 0, ...rest] = Buffer.from(character);
    if (isRun !== first >= 0x80) text += isRun ? "-" : "~";
    isRun = first >= 0x80;
    text += isRun ? `${digit[first - 0xba]}${rest.map((byte) => digit[byte - 0x80]).join("")}` : token(first);
  }
  let [name, bytes] = ["", 0];
  for (const character of isRun ? `${text}-` : text) {
    const isFirst = name === "" || name.endsWith("/");
    if (character === "/") [name, bytes] = [name + (isFirst ? ".0/" : "/"), 0];
    else [name, bytes] = [name + (isFirst && character === "." ? ".-" : character), bytes + 1];
    if (bytes === 190) [name, bytes] = [`${name}~/`, 0];
  }
  return `${name}!`;
}

/** One frame of a bundle. */
export interface Frame {
  readonly type: number;
  readonly chunk: number;
  readonly stripe: number;
  readonly payload: Buffer;
}

/** The frames of a bundle, the end included. Throws for bytes that are none. */
export function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes[at + 1] !== 1) throw new Error(`a frame of format ${bytes[at + 1]}`);
    const length = bytes.readUInt32LE(at + 8);
    if (length > 16 * 1024 * 1024 || at + 12 + length > bytes.length) throw new Error(`a payload of ${length} bytes`);
    const payload = bytes.subarray(at + 12, at + 12 + length);
    frames.push({ type: bytes[at]!, chunk: bytes.readUInt16LE(at + 2), stripe: bytes.readUInt32LE(at + 4), payload });
    at += 12 + length;
  }
  if (frames.at(-1)?.type !== 4) throw new Error("the bundle is truncated");
  return frames;
}

/** The fields of a manifest about compression. */
export interface CompressedFields {
  readonly bytes: number;
  readonly sha256?: string;
  readonly segmentBytes: number;
  readonly segments: readonly number[];
}

/** The content of all segments. Throws for what is not theirs. */
export function inflate(stored: Buffer, { bytes, segmentBytes, segments }: CompressedFields): Buffer {
  const ends = segments.map((_, i) => segments.slice(0, i + 1).reduce((sum, length) => sum + length, 0));
  if (ends.at(-1) !== stored.length) throw new Error(`segments of ${ends.at(-1)} bytes in ${stored.length}`);
  const content = segments.map((length, i) => inflateMember(stored.subarray(ends[i]! - length, ends[i])));
  const isWhole = content.every((part, i) => part.length === Math.min(segmentBytes, bytes - i * segmentBytes));
  if (!isWhole) throw new Error("a segment of another length");
  return Buffer.concat(content);
}

/** The content of one whole member of gzip (RFC 1952). Of several, and of bytes behind one, `gunzip` says nothing. */
function inflateMember(member: Buffer): Buffer {
  if (member.readUIntBE(0, 3) !== 0x1f8b08) throw new Error("no member of gzip");
  const flags = member[3]!;
  let at = 10;
  if (flags & 4) at += 2 + member.readUInt16LE(at);
  for (const text of [8, 16]) if (flags & text) at = member.indexOf(0, at) + 1;
  if (flags & 2) at += 2;
  const { buffer, engine } = inflateRawSync(member.subarray(at), { info: true }) as unknown as Inflated;
  const end = at + engine.bytesWritten;
  if (end + 8 !== member.length) throw new Error(`a member that ends at ${end} of ${member.length} bytes`);
  if (member.readUInt32LE(end) !== crc32(buffer)) throw new Error("a wrong CRC-32");
  if (member.readUInt32LE(end + 4) !== buffer.length) throw new Error("a wrong length");
  return buffer;
}

/** What Node returns with `info`. */
interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/** The fields of a manifest about encryption, and those that are bound to it. */
export interface EncryptedFields {
  readonly key: string;
  readonly bytes: number;
  readonly encryption: Readonly<Record<"cipher" | "secret" | "dataKey" | "properties", string>>;
}

export function secretName(secret: Buffer): string {
  return sha256(Buffer.concat([Buffer.from("agarose-secret/1\n"), secret]))
    .toString("hex")
    .slice(0, 16);
}

/** Decrypts all cells of an object. Throws where a tag does not fit. */
export function decrypt(stored: Buffer, { key, bytes, encryption }: EncryptedFields, secret: Buffer) {
  if (encryption.cipher !== "A256GCM" || encryption.secret !== secretName(secret)) throw new Error("another secret");
  const bound = (what: string): Buffer => Buffer.from(`agarose-${what}/1\n${encodedKey(key)}\n${bytes}\n`);
  const sealed = Buffer.from(encryption.dataKey, "base64");
  const dataKey = openGcm(secret, sealed.subarray(0, 12), bound("data-key"), sealed.subarray(12));
  const nonce = (index: number, use: number): Buffer => {
    const written = Buffer.alloc(12);
    written.writeBigUInt64LE(BigInt(index));
    written.writeUInt32LE(use, 8);
    return written;
  };
  const properties = openGcm(dataKey, nonce(0, 2), bound("properties"), Buffer.from(encryption.properties, "base64"));
  const count = Math.ceil(bytes / 65_536);
  const cells = indices(count).map((i) => stored.subarray(i * 65_536, (i + 1) * 65_536));
  const pieces = cells.map((cell, i) => openGcm(dataKey, nonce(i, Number(i === count - 1)), bound("cell"), cell));
  return { content: Buffer.concat(pieces), properties: JSON.parse(properties.toString()) as Record<string, unknown> };
}

function openGcm(key: Buffer, nonce: Buffer, bound: Buffer, sealed: Buffer): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, nonce);
  decipher.setAAD(bound);
  decipher.setAuthTag(sealed.subarray(-16));
  return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
}
