import { expect, test } from "vitest";
import { printable } from "./output.ts";

test("a key is printed on one line, with control characters as escapes and all else as it is", () => {
  expect(printable("a\nb\u001b[31m\u0085 ключ 漢字 😀")).toBe("a\\u{a}b\\u{1b}[31m\\u{85} ключ 漢字 😀");
});
