/** A page of ListObjectsV2, from XML. */
import { AgaroseError } from "@agarose/core";
import type { ListedPage } from "@agarose/storage/buckets/checked-listing";
import { SaxesParser } from "saxes";

const ROOT = "ListBucketResult";
/** XML 1.0 has no control characters, and S3 sends those of a key as references all the same. */
const LENIENT = { defaultXMLVersion: "1.1", forceXMLVersion: true } as const;

/** Texts by the names of their elements. */
type Fields = Record<string, string | undefined>;

/** Throws SOURCE_FAILED for anything else than such a page. */
export function listedPage(xml: string): ListedPage {
  const { fields, contents } = read(xml);
  const objects = contents.map(({ Key = "", Size = "", LastModified = "", ETag }) => {
    const listed = { name: Key, bytes: Number(Size), modifiedMs: Date.parse(LastModified) || 0 };
    return { ...listed, ...(ETag !== undefined && { etag: ETag }) };
  });
  const { IsTruncated, NextContinuationToken: next } = fields;
  return { objects, isTruncated: IsTruncated === undefined ? undefined : IsTruncated === "true", next };
}

function read(xml: string): { readonly fields: Fields; readonly contents: readonly Fields[] } {
  const parser = new SaxesParser(LENIENT);
  const fields: Fields = {};
  const contents: Fields[] = [];
  const path: string[] = [];
  let text = "";
  const onText = (part: string): void => void (text += part);
  parser.on("text", onText);
  parser.on("cdata", onText);
  parser.on("error", (error) => {
    throw new AgaroseError("SOURCE_FAILED", `a listing is not XML: ${error.message}`, {}, error);
  });
  parser.on("opentag", ({ name }) => {
    if (path.length === 0 && name !== ROOT) {
      throw new AgaroseError("SOURCE_FAILED", `a listing is not a ${ROOT}: ${xml.slice(0, 100)}`);
    }
    if (path.length === 1 && name === "Contents") contents.push({});
    path.push(name);
    text = "";
  });
  parser.on("closetag", ({ name }) => {
    path.pop();
    if (path.length === 1) fields[name] = text;
    if (path.length === 2 && path[1] === "Contents") contents.at(-1)![name] = text;
  });
  parser.write(xml).close();
  return { fields, contents };
}
