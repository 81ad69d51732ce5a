/** The table of ranges on the decision itself; the edge and the service worker run it over the wire. */
import { describe, expect, test } from "vitest";
import { errorAnswer, objectAnswer } from "./object-response.ts";
import type { Manifest } from "../format/manifest/index.ts";
import {
  emptyObjectCases,
  mediaProbes,
  rangeCases,
  type RangeAnswer,
  type RangeCase,
} from "../../test/objects/range-cases.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";

const { manifest } = await sampleObject({ k: 2, m: 1, bytes: 1000, stripeBytes: 100 });
const { manifest: empty } = await sampleObject({ k: 2, m: 1, bytes: 0, stripeBytes: 100 });
const { headers: sent } = objectAnswer(manifest, new Headers());
const OBJECT = { bytes: 1000, etag: sent["etag"]!, lastModified: sent["last-modified"]! };

function answerTo(object: Manifest, { headers, method }: Pick<RangeCase, "headers" | "method">): RangeAnswer {
  try {
    const answer = objectAnswer(object, new Headers(headers));
    const body = method === "HEAD" || !answer.range ? undefined : ([answer.range.start, answer.range.end] as const);
    expect(answer.headers["accept-ranges"]).toBe("bytes");
    return { status: answer.status, contentRange: answer.headers["content-range"] ?? null, body };
  } catch (error) {
    const { status, headers: shown } = errorAnswer(error);
    return { status, contentRange: shown["content-range"] ?? null, body: undefined };
  }
}

describe("an object's answer to", () => {
  test.each(rangeCases(OBJECT))("$name", (request) => {
    expect(answerTo(manifest, request)).toEqual(request.expected);
  });
  test.each(emptyObjectCases())("$name", (request) => {
    expect(answerTo(empty, request)).toEqual(request.expected);
  });
  test.each(mediaProbes(1000))("the probe for [%i, %i) of a media element", (start, end) => {
    const answer = answerTo(manifest, { method: "GET", headers: { range: `bytes=${start}-${end - 1}` } });
    expect(answer).toEqual({ status: 206, contentRange: `bytes ${start}-${end - 1}/1000`, body: [start, end] });
  });
});
