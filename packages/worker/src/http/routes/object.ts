/** `GET|HEAD /o/<key>`: the object, decoded here, for clients without a service worker. */
import { isOutdated } from "@agarose/core";
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
import { readObject, type ClientOfRead } from "../../read/object-read.ts";
import { clientAddress } from "../../runtime/client-address.ts";
import type { Invocation } from "../../runtime/invocation.ts";
import { invocationOf, checkReader, pathOf, type AppEnv } from "../http.ts";
import { settingsOf } from "../../runtime/settings.ts";
import { readParts } from "../object-parts.ts";

const PREFIX = "/o/";

/** Answers 200, 206, 304, 412 or 416 as HTTP's conditional and range requests ask; HEAD reads the manifest only. */
export async function object(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PREFIX) ?? "";
  const invocation = invocationOf(c);
  const token = await checkReader(c, key);
  const { method: requested, headers, signal } = c.req.raw;
  const method = requested === "HEAD" ? "HEAD" : "GET";
  const answerOf = async (found: Manifest): Promise<Answered> => {
    const opened = await openContent(found, () => settingsOf(c.env).access.secrets.dataKeyOf(found));
    const shown = opened?.shown ?? found;
    const made = partsAnswer(shown, headers, crypto.randomUUID()) ?? objectAnswer(shown, headers);
    const answer = token !== undefined ? unshared(made) : made;
    const passed = method === "GET" ? passedOn(found, answer, headers) : undefined;
    return { answer: passed ?? answer, opened: passed ? undefined : opened, manifest: found };
  };
  const manifest = await invocation.manifest(key);
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
  /** Set where what is stored is not the content. */
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
