/** `GET|HEAD /o/<key>`: the object, decoded here, for clients without a service worker. */
import { AgaroseError, isOutdated, toAgaroseError } from "@agarose/core";
import { streamOf } from "@agarose/core/async";
import { openContent, type OpenedObject } from "@agarose/core/content";
import type { Manifest } from "@agarose/core/format";
import {
  keyInPath,
  objectAnswer,
  partsAnswer,
  unshared,
  type ObjectAnswer,
  type PartsAnswer,
} from "@agarose/core/http";
import type { Context } from "hono";
import { isUnreachable } from "../../read/manifest-store.ts";
import { ofFixedLength, readObject, type ClientOfRead } from "../../read/object-read.ts";
import { insteadOfUnknown } from "../../read/origin-object.ts";
import { clientAddress } from "../../runtime/client-address.ts";
import type { Invocation } from "../../runtime/invocation.ts";
import { invocationOf, checkReader, pathOf, type AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";
import { indexBehind, isOnSite, keyOnSite, openPage, type Site } from "../site.ts";
import { readParts } from "../object-parts.ts";

const PREFIX = "/o/";

/**
 * Answers 200, 206, 304, 412 or 416 as HTTP's conditional and range requests ask; HEAD reads the manifest only. On a
 * site, a folder without its slash answers 302, and what is not there the 404 page.
 */
export async function object(c: Context<AppEnv>): Promise<Response> {
  const path = keyInPath(pathOf(c), PREFIX) ?? "";
  const invocation = invocationOf(c);
  const { site } = settingsOf(c.env);
  try {
    return await served(keyOnSite(path, site), c.req.raw.headers, invocation, c);
  } catch (error) {
    if (!isOnSite(path, site) || toAgaroseError(error).code !== "OBJECT_NOT_FOUND") throw error;
    const instead = await insteadOf(path, site, invocation, c);
    if (!instead) throw error;
    return instead;
  }
}

/** The answer of a site for a path without an object; undefined where this client may read none. */
async function insteadOf(
  path: string,
  site: Site,
  invocation: Invocation,
  c: Context<AppEnv>,
): Promise<Response | undefined> {
  const index = indexBehind(path, site);
  const isFolder = index !== undefined && (await isReadable(index, invocation, c));
  if (isFolder) {
    const { pathname, search } = new URL(c.req.url);
    return new Response(null, { status: 302, headers: { location: `${pathname}/${search}` } });
  }
  if (site.notFound === undefined) return undefined;
  // Conditions and ranges are about what is not there.
  const page = await served(`${site.prefix}${site.notFound}`, new Headers(), invocation, c).catch(() => undefined);
  if (!page) return undefined;
  const headers = new Headers(page.headers);
  for (const name of ["etag", "last-modified", "accept-ranges", "expires"]) headers.delete(name);
  headers.set("cache-control", "no-store");
  return new Response(page.body, { status: 404, headers });
}

async function isReadable(key: string, invocation: Invocation, c: Context<AppEnv>): Promise<boolean> {
  try {
    await checkReader(c, key);
    await invocation.manifest(key);
    return true;
  } catch {
    return false;
  }
}

/** Answers for one object. */
async function served(key: string, asked: Headers, invocation: Invocation, c: Context<AppEnv>): Promise<Response> {
  const token = await checkReader(c, key);
  const { method: requested, headers, signal } = c.req.raw;
  const method = requested === "HEAD" ? "HEAD" : "GET";
  const { access, site } = settingsOf(c.env);
  const fitted = <A extends ObjectAnswer>(made: A, shown: Manifest): A => {
    openPage(made, shown, site);
    return token !== undefined ? unshared(made) : made;
  };
  const answerOf = async (found: Manifest): Promise<Answered> => {
    const opened = await openContent(found, () => access.secrets.dataKeyOf(found));
    const shown = opened?.shown ?? found;
    const answer = fitted(partsAnswer(shown, asked, crypto.randomUUID()) ?? objectAnswer(shown, asked), shown);
    const passed = method === "GET" ? passedOn(found, answer, asked) : undefined;
    return { answer: passed ?? answer, opened: passed ? passedSegment(found) : opened, manifest: found };
  };
  let manifest: Manifest;
  try {
    manifest = await invocation.manifest(key);
  } catch (error) {
    const own = { signal, client: clientAddress(headers) };
    const found = await insteadOfUnknown(error, key, method === "HEAD", own, invocation);
    const answer = fitted(objectAnswer(found.shown, asked), found.shown);
    answer.headers["x-agarose-read"] = "plain";
    if (method === "HEAD" || !answer.range) return bodiless(answer);
    const { start, end } = answer.range;
    const body = start < end ? ofFixedLength(await found.open(answer.range), end - start, invocation) : null;
    return new Response(body, { status: answer.status, headers: answer.headers });
  }
  const answered = await answerOf(manifest);
  if (method === "HEAD" || !answered.answer.range) return bodiless(answered.answer);
  const { bytes } = answered.opened?.shown ?? manifest;
  const client = { signal, client: clientAddress(headers), onTaken: invocation.weigh(key, bytes, token) };
  try {
    return await read(invocation, answered, client);
  } catch (error) {
    if (!isOutdated(error)) throw error;
    // The manifest in memory may name a version that is gone: the manifest in the buckets decides.
    const current = await invocation.manifest(key, { refetch: true }).catch((later: unknown) => {
      // Buckets that do not answer say nothing new.
      throw isUnreachable(later) ? error : later;
    });
    if (current.version === manifest.version) throw error;
    const again = await answerOf(current);
    return again.answer.range ? read(invocation, again, client) : bodiless(again.answer);
  }
}

/**
 * The answer of a whole object as it is stored, for a client that accepts gzip; undefined where it is to be inflated.
 * Ranges are of the content, which another entity tag would not let a client continue by.
 */
function passedOn(
  { gzip, encryption, bytes }: Manifest,
  answer: ObjectAnswer,
  asked: Headers,
): ObjectAnswer | undefined {
  if (!gzip) return undefined;
  const { status, headers } = answer;
  headers["vary"] = "accept-encoding";
  const isWhole = status === 200 && answer.range !== undefined && !("parts" in answer);
  if (!isWhole || encryption || gzip.segments.length > 1 || headers["content-encoding"]) return undefined;
  if (!acceptsGzip(asked.get("accept-encoding") ?? "")) return undefined;
  const coded = { "content-encoding": "gzip", "content-length": String(bytes), etag: `W/${headers["etag"]}` };
  return { status, headers: { ...headers, ...coded }, range: { start: 0, end: bytes } };
}

/**
 * The one segment of an object as it is stored. Its end is withheld unless it names the length of the content, so that
 * no client takes longer or shorter content for that of the object.
 */
function passedSegment(shown: Manifest): OpenedObject {
  const { key, bytes, gzip } = shown;
  const content = (_range: unknown, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> => {
    const reader = body.getReader();
    let left = bytes;
    let last = new Uint8Array();
    return streamOf(
      async () => {
        const { done, value } = await reader.read();
        if (!value) return { done };
        left -= value.length;
        last = Uint8Array.of(...last, ...value.subarray(-4)).slice(-4);
        const named = left === 0 ? new DataView(last.buffer).getUint32(0, true) : gzip!.bytes;
        if (named === gzip!.bytes) return { done, value };
        const message = `the segment of ${JSON.stringify(key)} names ${named} bytes, its manifest says ${gzip!.bytes}`;
        const error = new AgaroseError("OBJECT_CORRUPT", `${message}: repeat the put`, { key });
        await reader.cancel(error);
        throw error;
      },
      (reason) => reader.cancel(reason),
    );
  };
  return { shown, stored: (range) => range, content };
}

/** Whether an `Accept-Encoding` allows gzip (RFC 9110, section 12.5.3). */
function acceptsGzip(accepted: string): boolean {
  return accepted
    .toLowerCase()
    .split(",")
    .some((coding) => /^\s*(x-)?gzip\s*(;|$)/.test(coding) && !/;\s*q\s*=\s*0(\.0*)?\s*$/.test(coding));
}

interface Answered {
  readonly answer: ObjectAnswer | PartsAnswer;
  readonly manifest: Manifest;
  /** Set where what is stored is not what is sent, or must be checked. */
  readonly opened: OpenedObject | undefined;
}

function read(invocation: Invocation, { answer, manifest, opened }: Answered, client: ClientOfRead): Promise<Response> {
  return "parts" in answer
    ? readParts(invocation, manifest, answer, client, opened)
    : readObject(invocation, manifest, answer, client, opened);
}

function bodiless({ status, headers }: ObjectAnswer): Response {
  return new Response(null, { status, headers });
}
