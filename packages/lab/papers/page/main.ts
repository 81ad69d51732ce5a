/**
 * Regenerates the page of the papers' figures: what the five papers publish beside what our models give.
 *
 *   node packages/lab/papers/page/main.ts               # everything, some minutes
 *   node packages/lab/papers/page/main.ts sprout c2p    # the tables of these sections
 *   node packages/lab/papers/page/main.ts text          # no table: the prose around the tables of the present page
 *
 * Run `npm run format` afterwards.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { PAGE } from "./page.ts";
import { HEAD, renderPage, SECTIONS, tablesOf } from "./sections.ts";

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => name !== "text" && !(name in SECTIONS));
if (unknown !== undefined) {
  process.stderr.write(`no section has the name ${unknown}: choose from ${Object.keys(SECTIONS).join(", ")}, text\n`);
  process.exitCode = 2;
} else {
  const known = wanted.length === 0 ? new Map<string, string[]>() : tablesOf(readFileSync(PAGE, "utf8"));
  for (const name of wanted) known.delete(SECTIONS[name]?.().title ?? "");
  writeFileSync(PAGE, await renderPage(HEAD, known));
}
