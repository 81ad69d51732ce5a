import { expect, test } from "vitest";
import { numberOf, tableAfter } from "./markdown-table.ts";

test("a table is read by its columns, and what is missing is named", () => {
  const [row] = tableAfter("# A\n\n| a | b | b |\n| - | - | - |\n| x | 1 | none |\n\nend", "# A");
  expect(row).toEqual({ a: "x", b: "1", "b 2": "none" });
  expect([numberOf(row!, "b"), numberOf(row!, "b 2")]).toEqual([1, undefined]);
  expect(() => numberOf(row!, "c")).toThrow('the table has no column "c", only a, b, b 2');
  expect(() => tableAfter("# A", "# B")).toThrow('the document has no table after "# B"');
});
