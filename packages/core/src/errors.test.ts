import { describe, expect, test } from "vitest";
import { AgaroseError, ERROR_CATALOGUE, explainError, isOutdated, toAgaroseError, type ErrorCode } from "./errors.ts";

describe("AgaroseError", () => {
  test("has its code as the message if there is no other", () => {
    expect(new AgaroseError("CHUNK_MISSING", false).message).toBe("CHUNK_MISSING");
    expect(new AgaroseError("CHUNK_MISSING", "").message).toBe("CHUNK_MISSING");
    expect(new AgaroseError("CHUNK_MISSING", "gone").message).toBe("gone");
  });

  test("becomes JSON of code, message and details", () => {
    const error = new AgaroseError("BUSY", "2 of 2 slots are taken: retry", { slots: 2 }, new Error("secret"));
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: "BUSY",
      message: "2 of 2 slots are taken: retry",
      details: { slots: 2 },
    });
  });
});

describe("the catalogue", () => {
  test("has a meaning and a remedy of one sentence each for every code", () => {
    for (const [code, { meaning, remedy }] of Object.entries(ERROR_CATALOGUE)) {
      for (const sentence of [meaning, remedy]) expect(sentence, code).toMatch(/^[A-Zk][^|]*[.]$/);
    }
  });

  test("explains a code in words", () => {
    expect(explainError("MANIFEST_NEWER")).toBe(
      "The manifest has a newer format, or requires a feature, that this program does not know. Upgrade Agarose.",
    );
  });
});

describe("isOutdated", () => {
  const failed = (...codes: string[]): AgaroseError =>
    new AgaroseError("NOT_ENOUGH_CHUNKS", "too few", { failures: codes.map((code) => ({ code })) });

  test("holds for a read that failed because chunks are gone, and for no other", () => {
    expect(isOutdated(failed("SOURCE_FAILED", "CHUNK_MISSING"))).toBe(true);
    expect(isOutdated(failed("SOURCE_FAILED"))).toBe(false);
    expect(isOutdated(new AgaroseError("NOT_ENOUGH_CHUNKS", "too few"))).toBe(false);
    expect(isOutdated(new AgaroseError("CHUNK_MISSING", "gone"))).toBe(false);
    expect(isOutdated(undefined)).toBe(false);
  });
});

describe("toAgaroseError", () => {
  test("returns an AgaroseError as it is", () => {
    const error = new AgaroseError("CHUNK_MISSING", "gone");
    expect(toAgaroseError(error)).toBe(error);
  });

  test("keeps code and details of an error of the same shape from a package that does not import core", () => {
    const foreign = Object.assign(new Error("too few"), {
      name: "AgaroseError",
      code: "NOT_ENOUGH_SHARDS",
      details: { needed: 4 },
    });
    const error = toAgaroseError(foreign);
    expect(error).toBeInstanceOf(AgaroseError);
    expect(error).toMatchObject({
      code: "NOT_ENOUGH_SHARDS",
      message: "too few",
      details: { needed: 4 },
      cause: foreign,
    });
  });

  test("distinguishes aborts and time-outs from other failures", () => {
    expect(toAgaroseError(new DOMException("x", "AbortError")).code).toBe("ABORTED");
    expect(toAgaroseError(new DOMException("x", "TimeoutError")).code).toBe("READ_TIMEOUT");
    expect(toAgaroseError(new TypeError("x"), "SOURCE_FAILED").code).toBe("SOURCE_FAILED");
  });

  test("wraps values that are not errors", () => {
    for (const thrown of [undefined, null, "text", 7, {}]) {
      const error = toAgaroseError(thrown, "ABORTED");
      expect(error).toBeInstanceOf(AgaroseError);
      expect([error.code, error.cause]).toEqual(["ABORTED", thrown]);
    }
  });
});

describe("httpStatus", () => {
  test("distinguishes faults of the request, of the object and of the sources", () => {
    expect(status("KEY_INVALID")).toBe(400);
    expect(status("KEY_TOO_LONG")).toBe(400);
    expect(status("REQUEST_INVALID")).toBe(400);
    expect(status("OBJECT_NOT_FOUND")).toBe(404);
    expect(status("OBJECT_TOO_LARGE")).toBe(413);
    expect(status("RANGE_UNSATISFIABLE")).toBe(416);
    expect(status("NOT_ENOUGH_CHUNKS")).toBe(502);
    expect(status("BUSY")).toBe(503);
    expect(status("READ_TIMEOUT")).toBe(504);
    expect(status("INTERNAL")).toBe(500);
  });
});

function status(code: ErrorCode): number {
  return new AgaroseError(code, "").httpStatus;
}
