/**
 * A listing of several pages, checked as it arrives. A store that lies in a listing hides objects or adds some, and
 * what is missing from one looks like what nobody has stored.
 */
import { AgaroseError } from "@agarose/core";
import type { RegionConfig } from "../config/config.ts";
import type { ListedObject } from "./store.ts";

/** A page of ListObjectsV2 as a store sent it. */
export interface ListedPage {
  readonly objects: readonly ListedObject[];
  /** Undefined where the answer does not say, as an empty one. */
  readonly isTruncated: boolean | undefined;
  /** The token of the next page. */
  readonly next: string | undefined;
}

/** A page of a thousand names of 1,024 bytes, each of them escaped, has less. */
export const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** S3 may send pages without names. So many in a row are not a listing that moves. */
const EMPTY_PAGES_MAX = 100;
/** Names of ours. Those of other programs may come in an order other than that of their UTF-8. */
const OWN_NAME = /^[\x21-\x7e]+$/;

/**
 * The objects below `prefix` whose names are greater than `after`, page by page.
 *
 * @throws SOURCE_FAILED when a page is none, names something outside of the prefix, is not in order of the names, has a
 *   length that is not a count of bytes, or does not lead to another page that does.
 */
export async function* checkedListing(
  region: RegionConfig,
  { prefix, after = "" }: { readonly prefix: string; readonly after?: string | undefined },
  fetchPage: (token: string | undefined) => Promise<ListedPage>,
): AsyncGenerator<ListedObject> {
  const broken = (what: string, details: Record<string, unknown> = {}): AgaroseError => {
    const { name, endpoint, bucket } = region;
    const message = `region ${name} ${what}, so its listing of ${JSON.stringify(prefix)} cannot be used: check ${endpoint}/${bucket}`;
    return new AgaroseError("SOURCE_FAILED", message, { region: name, prefix, ...details });
  };
  let token: string | undefined;
  let last = "";
  let emptyPages = 0;
  do {
    const { objects, isTruncated, next } = await fetchPage(token);
    if (isTruncated === undefined) throw broken("answered with 200, but not with a ListBucketResult");
    if (isTruncated && (next === undefined || next === ""))
      throw broken("announces a next page, but not how to get it");
    if (isTruncated && next === token) throw broken("sends the same continuation token again and again");
    emptyPages = objects.length === 0 ? emptyPages + 1 : 0;
    if (emptyPages > EMPTY_PAGES_MAX) {
      throw broken(`sent ${emptyPages} pages without a name in a row (limit ${EMPTY_PAGES_MAX})`, { emptyPages });
    }
    for (const object of objects) {
      const { name, bytes } = object;
      if (!name.startsWith(prefix)) throw broken(`lists ${JSON.stringify(name)}, which was not asked for`, { name });
      if (!Number.isSafeInteger(bytes) || bytes < 0) {
        throw broken(`lists ${JSON.stringify(name)} with ${bytes} bytes`, { name, bytes });
      }
      if (OWN_NAME.test(name)) {
        if (name <= last) {
          const how =
            name === last ? "twice" : `behind ${JSON.stringify(last)}, and not in order of the names as S3 does`;
          throw broken(`lists ${JSON.stringify(name)} ${how}`, { name });
        }
        last = name;
      }
      // Not every store begins where it is asked to.
      if (name > after) yield object;
    }
    token = isTruncated ? next : undefined;
  } while (token !== undefined);
}
