import { expect, test } from "vitest";
import { traceFields, traceOf, traceparent } from "./trace.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const READ = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736";

const of = (header?: string, query = ""): ReturnType<typeof traceOf> =>
  traceOf(new Headers(header === undefined ? {} : { traceparent: header }), new URLSearchParams(query));

test("a traceparent is continued, with a span of its own", () => {
  const found = of(`00-${TRACE}-${PARENT}-01`)!;
  expect(found).toMatchObject({ trace: TRACE, parent: PARENT, sampled: true });
  expect(found.span).toMatch(/^[\da-f]{16}$/);
  expect(of(`00-${TRACE}-${PARENT}-01`)!.span).not.toBe(found.span);
  expect(traceparent(found)).toBe(`00-${TRACE}-${found.span}-01`);
  expect(traceparent(of(`00-${TRACE}-${PARENT}-02`)!)).toMatch(/-00$/);
  expect(of(`01-${TRACE}-${PARENT}-01-more`), "a later version may have more").toMatchObject({ trace: TRACE });
});

test("the id of a read names its trace, and a header is preferred", () => {
  expect(of(undefined, `trace=${READ}`)).toMatchObject({ trace: TRACE, parent: TRACE.slice(0, 16), sampled: true });
  expect(of(`00-${"a".repeat(32)}-${PARENT}-00`, `trace=${READ}`)).toMatchObject({ trace: "a".repeat(32) });
});

test.each([
  [undefined, ""],
  [undefined, "trace="],
  [undefined, `trace=${READ}x`],
  [undefined, `trace=${READ.toUpperCase()}`],
  [undefined, `trace=00000000-0000-0000-a3ce-929d0e0e4736`],
  [`00-${TRACE}-${PARENT}`, ""],
  [`ff-${TRACE}-${PARENT}-01`, ""],
  [`00-${"0".repeat(32)}-${PARENT}-01`, ""],
  [`00-${TRACE}-${"0".repeat(16)}-01`, ""],
  [`00-${TRACE.toUpperCase()}-${PARENT}-01`, ""],
  [`00-${TRACE}-${PARENT}-01x`, ""],
])("traceparent %s and query %s are no trace", (header, query) => {
  expect(of(header, query)).toBeUndefined();
  expect(traceFields(of(header, query))).toEqual({});
});
