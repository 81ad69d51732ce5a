/** `GET|HEAD /o/<key>`: the object, decoded here, for clients without a service worker. */
import { isOutdated, keyInPath, objectAnswer, type Manifest, type ObjectAnswer } from "@agarose/core";
import type { Context } from "hono";
import { isUnreachable } from "../../read/manifest-store.ts";
import { readObject } from "../../read/object-read.ts";
import { clientAddress } from "../../request-monitor/telemetry-token.ts";
import { invocationOf, checkReader, pathOf, type AppEnv } from "../http.ts";

const PREFIX = "/o/";

/** Answers 200, 206, 304 or 416 as HTTP's conditional and range requests ask; HEAD reads the manifest only. */
export async function object(c: Context<AppEnv>): Promise<Response> {
  const key = keyInPath(pathOf(c), PREFIX) ?? "";
  const invocation = invocationOf(c);
  const isPrivate = await checkReader(c, key);
  const { method: requested, headers, signal } = c.req.raw;
  const client = { signal, client: clientAddress(headers) };
  const method = requested === "HEAD" ? "HEAD" : "GET";
  const answerOf = (found: Manifest): ObjectAnswer => {
    const answer = objectAnswer(found, headers, method);
    return isPrivate ? unshared(answer) : answer;
  };
  const manifest = await invocation.manifest(key);
  const answer = answerOf(manifest);
  if (method === "HEAD" || !answer.range) return bodiless(answer);
  invocation.count(key);
  try {
    return await readObject(invocation, manifest, answer, client);
  } catch (error) {
    if (!isOutdated(error)) throw error;
    // The manifest in memory may name a version that is gone: the manifest in the buckets decides.
    const current = await invocation.manifest(key, { refetch: true }).catch((later: unknown) => {
      // Buckets that do not answer say nothing new.
      throw isUnreachable(later) ? error : later;
    });
    if (current.version === manifest.version) throw error;
    const again = answerOf(current);
    return again.range ? readObject(invocation, current, again, client) : bodiless(again);
  }
}

/** Forbids shared caches to keep the answer, and makes the client's own cache revalidate it. */
function unshared(answer: ObjectAnswer): ObjectAnswer {
  return { ...answer, headers: { ...answer.headers, "cache-control": "private, no-cache" } };
}

function bodiless({ status, headers }: ObjectAnswer): Response {
  return new Response(null, { status, headers });
}
