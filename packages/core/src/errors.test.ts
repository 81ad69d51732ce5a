import { describe, expect, test } from "vitest";
import { AgaroseError, toAgaroseError, type ErrorCode } from "./errors.ts";

describe("toAgaroseError", () => {
  test("gives back an error of ours as it is", () => {
    const error = new AgaroseError("CHUNK_MISSING", "gone");
    expect(toAgaroseError(error)).toBe(error);
  });

  test("takes over code and details of an error of the same shape from a package that does not import this one", () => {
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

  test("tells aborts and time-outs from other failures", () => {
    expect(toAgaroseError(new DOMException("x", "AbortError")).code).toBe("ABORTED");
    expect(toAgaroseError(new DOMException("x", "TimeoutError")).code).toBe("READ_TIMEOUT");
    expect(toAgaroseError(new TypeError("x"), "SOURCE_FAILED").code).toBe("SOURCE_FAILED");
  });

  test("wraps what is no error at all", () => {
    for (const thrown of [undefined, null, "text", 7, {}]) {
      const error = toAgaroseError(thrown, "ABORTED");
      expect(error).toBeInstanceOf(AgaroseError);
      expect([error.code, error.cause]).toEqual(["ABORTED", thrown]);
    }
  });
});

describe("httpStatus", () => {
  test("blames the request, the object or what is behind us", () => {
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
