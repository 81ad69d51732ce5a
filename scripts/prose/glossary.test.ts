import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the glossary has no word twice", () => {
  const page = readFileSync(new URL("../../docs/internals/glossary.md", import.meta.url), "utf8");
  const words = [...page.matchAll(/^\| \*\*(.+?)\*\*/gm)].map(([, word]) => word!.toLowerCase());
  expect(words.length).toBeGreaterThan(50);
  expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
});

test("the glossary defines no word that the project has replaced", () => {
  const page = readFileSync(new URL("../../docs/internals/glossary.md", import.meta.url), "utf8");
  const replaced = /\b(StripeFlights|ReadMemory|Purse|LatencyBook|PeerBook|UnderWay)\b/;
  expect(page).not.toMatch(replaced);
});
