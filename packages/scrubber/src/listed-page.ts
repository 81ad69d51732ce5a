/**
 * A page of ListObjectsV2, from XML.
 */
import { AgaroseError } from "@agarose/core";
import type { ListedPage } from "@agarose/storage/buckets/checked-listing";
import { XMLParser } from "fast-xml-parser";

interface Answer {
  readonly ListBucketResult?: {
    readonly IsTruncated?: string;
    readonly NextContinuationToken?: string;
    readonly Contents?: readonly {
      readonly Key?: string;
      readonly Size?: string;
      readonly LastModified?: string;
      readonly ETag?: string;
    }[];
  };
}

const parser = new XMLParser({
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  isArray: (name) => name === "Contents",
});

/** Throws SOURCE_FAILED for anything else than such a page. */
export function listedPage(xml: string): ListedPage {
  const { ListBucketResult: result } = parsed(xml);
  if (!result) throw new AgaroseError("SOURCE_FAILED", `a listing is no ListBucketResult: ${xml.slice(0, 100)}`);
  const objects = (result.Contents ?? []).map(({ Key = "", Size = "", LastModified = "", ETag }) => {
    const listed = { name: Key, bytes: Number(Size), modifiedMs: Date.parse(LastModified) || 0 };
    return { ...listed, ...(ETag !== undefined && { etag: ETag }) };
  });
  const { IsTruncated, NextContinuationToken: next } = result;
  return { objects, isTruncated: IsTruncated === undefined ? undefined : IsTruncated === "true", next };
}

function parsed(xml: string): Answer {
  try {
    return parser.parse(xml, true) as Answer;
  } catch (error) {
    throw new AgaroseError("SOURCE_FAILED", `a listing is no XML: ${(error as Error).message}`, {}, error);
  }
}
