/**
 * Computes the tables of the papers' figures anew: what the five papers publish beside what our models give.
 *
 *   node packages/lab/papers/page/main.ts                    # all, some minutes
 *   node packages/lab/papers/page/main.ts sprout c2p.betweenPops   # those of a section, and one
 *
 * Run `npm run format` afterwards.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { PAGE } from "./page.ts";
import { TABLES, withTables } from "./tables.ts";

const wanted = process.argv.slice(2);
const names = Object.keys(TABLES);
const matches = (name: string, want: string): boolean => name === want || name.startsWith(`${want}.`);
const unknown = wanted.find((want) => !names.some((name) => matches(name, want)));
if (unknown !== undefined) {
  process.stderr.write(`there is no table ${unknown}: choose from ${names.join(", ")}, or their sections\n`);
  process.exitCode = 2;
} else {
  const computed = new Map<string, string>();
  for (const name of names) {
    if (wanted.length > 0 && !wanted.some((want) => matches(name, want))) continue;
    computed.set(name, await TABLES[name]!());
  }
  writeFileSync(PAGE, withTables(readFileSync(PAGE, "utf8"), computed));
}
