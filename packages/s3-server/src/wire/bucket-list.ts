/** ListBuckets. */
import { ownerElement } from "./list.ts";
import { S3Error } from "./s3-error.ts";
import { element, xmlDocument } from "./xml.ts";

/** A bucket as the list shows it. */
export interface ListedBucketName {
  readonly name: string;
  readonly createdMs: number;
}

const REGION = "us-east-1";
const BUCKETS_MAX = 10_000;

/**
 * Returns the XML of ListBuckets, all of them on one page unless `max-buckets` says less.
 *
 * @param buckets in order of their names.
 * @throws S3Error InvalidArgument.
 */
export function listBuckets(owner: string, query: URLSearchParams, buckets: readonly ListedBucketName[]): string {
  const most = query.get("max-buckets") ?? String(BUCKETS_MAX);
  if (!/^\d{1,5}$/.test(most) || Number(most) < 1 || Number(most) > BUCKETS_MAX) {
    throw new S3Error("InvalidArgument", `max-buckets must be from 1 to ${BUCKETS_MAX}.`);
  }
  const prefix = query.get("prefix") ?? "";
  const region = query.get("bucket-region") ?? REGION;
  const after = query.get("continuation-token") ?? "";
  if (after !== "" && !buckets.some(({ name }) => name === after)) {
    throw new S3Error("InvalidArgument", "The continuation token provided is incorrect.");
  }
  const matching = buckets.filter(({ name }) => name.startsWith(prefix) && name > after && region === REGION);
  const page = matching.slice(0, Number(most));
  const shown = page.map(({ name, createdMs }) =>
    element(
      "Bucket",
      element("Name", name, "text") +
        element("CreationDate", new Date(createdMs).toISOString()) +
        element("BucketRegion", REGION),
    ),
  );
  const next = matching.length > page.length ? element("ContinuationToken", page.at(-1)!.name, "text") : "";
  const head = ownerElement("Owner", owner) + element("Buckets", shown.join(""));
  return xmlDocument("ListAllMyBucketsResult", head + next + (prefix && element("Prefix", prefix, "text")));
}
