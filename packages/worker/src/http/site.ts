/** A site below `/o/`: index pages, a page for what is not there, and pages that may run scripts. */
import type { ObjectAnswer } from "@agarose/core/http";
import type { Manifest } from "@agarose/core/format";
import * as v from "valibot";
import { json, type Parsed } from "../runtime/variables.ts";

const name = v.pipe(v.string(), v.regex(/^[^/]+$/, "is not the name of a file"));

/** The variable of this room. */
export const SITE_VARIABLES = {
  SITE: json(
    "The site that `/o/` serves below the key prefix `prefix`: `index` answers for a folder, by default `index.html`, " +
      "and `notFound` with status 404 for missing paths. Its pages may run scripts, so let nobody else write there.",
    'JSON {"prefix"?, "index"?, "notFound"?}, or null',
    v.nullable(
      v.strictObject({
        prefix: v.optional(v.string(), ""),
        index: v.optional(name, "index.html"),
        notFound: v.exactOptional(name),
      }),
    ),
    { fallback: "null" },
  ),
};

/** The site of a PoP. */
export type Site = NonNullable<Parsed<typeof SITE_VARIABLES>["site"]>;

/** Whether a path is on the site, also that of its top folder without the slash. */
export function isOnSite(path: string, site: Site | null): site is Site {
  return site !== null && `${path}/`.startsWith(site.prefix);
}

/** The key that answers for a path: that of the index page for a folder. */
export function keyOnSite(path: string, site: Site | null): string {
  const isFolder = path === "" || path.endsWith("/");
  return site && isFolder && path.startsWith(site.prefix) ? `${path}${site.index}` : path;
}

/** The key of the index page of a folder whose path has no slash at its end; undefined for what can be none. */
export function indexBehind(path: string, { index }: Site): string | undefined {
  return path === "" || path.endsWith("/") ? undefined : `${path}/${index}`;
}

/** Lets a page of the site do what any page does, but for its own policy. Other objects stay sandboxed. */
export function openPage(answer: ObjectAnswer, { key, headers }: Manifest, site: Site | null): void {
  if (!site || !key.startsWith(site.prefix)) return;
  const { "content-security-policy": own } = headers;
  if (own === undefined) delete answer.headers["content-security-policy"];
  else answer.headers["content-security-policy"] = own;
}
