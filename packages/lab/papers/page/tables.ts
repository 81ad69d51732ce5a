/** All tables of the page, and where they are on it: each below a mark with its name. */
import { agar } from "./agar.ts";
import { c2p } from "./c2p.ts";
import { ecCache } from "./ec-cache.ts";
import { liu } from "./liu.ts";
import type { Tables } from "./page.ts";
import { sprout } from "./sprout.ts";
import { together } from "./together.ts";

/** By `section.name`. */
export const TABLES: Tables = Object.fromEntries(
  Object.entries({ agar, liu, sprout, "ec-cache": ecCache, c2p, together }).flatMap(([section, tables]) =>
    Object.entries(tables).map(([name, compute]) => [`${section}.${name}`, compute] as const),
  ),
);

const MARKED = /(<!-- table: (\S+) -->\n\n)((?:\|.*\n)+)/g;

/** The marked tables of a page by name. */
export function tablesOf(page: string): Map<string, string> {
  return new Map([...page.matchAll(MARKED)].map(([, , name = "", table = ""]) => [name, table]));
}

/** Returns the page with the tables in `computed` in the place of those that it has under these names. */
export function withTables(page: string, computed: ReadonlyMap<string, string>): string {
  return page.replace(MARKED, (_, mark: string, name: string, table: string) => {
    const made = computed.get(name);
    return mark + (made === undefined ? table : `${made}\n`);
  });
}
