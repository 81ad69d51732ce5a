import { expect, test } from "vitest";
import { tableLines } from "./output.ts";

test("columns are as wide as their widest cell, numbers stand at the right, and no line ends in spaces", () => {
  const rows = [
    ["region", "bytes", ""],
    ["fra", "12", "ok"],
  ];
  expect(tableLines(rows, (column) => column === 1)).toEqual(["region  bytes", "fra        12  ok"]);
});
