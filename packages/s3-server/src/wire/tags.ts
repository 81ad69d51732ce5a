/** The tags of an object, which it keeps as the header that a client may put it with: a query, percent-encoded. */
import { headerCharactersMax } from "@agarose/core/format";
import { OPERATIONS } from "./operations.ts";
import { S3Error } from "./s3-error.ts";
import { encodeRfc3986, queryPairs } from "./signature.ts";
import { element, readXml, xmlDocument } from "./xml.ts";

/** The header that has them. No answer has it, only how many they are. */
export const TAGGING = "x-amz-tagging";

/** Keys and values. */
export type Tags = readonly (readonly [key: string, value: string])[];

const TAGS_MAX = 10;
const KEY_CHARACTERS_MAX = 128;
const VALUE_CHARACTERS_MAX = 256;

/** Returns the tags that a header has, as a client sent it or as it was kept. Throws S3Error InvalidURI. */
export function tagsIn(header: string | undefined): Tags {
  return queryPairs(Buffer.from(header ?? "", "latin1").toString());
}

/**
 * Returns the header by which an object keeps these tags.
 *
 * @throws S3Error BadRequest for more than S3 has, InvalidTag for one that is too long or comes twice.
 */
export function keptTags(tags: Tags): string {
  if (tags.length > TAGS_MAX) {
    throw new S3Error("BadRequest", `An object has at most ${TAGS_MAX} tags, the request has ${tags.length}.`);
  }
  for (const [at, [key, value]] of tags.entries()) {
    if (key === "" || key.length > KEY_CHARACTERS_MAX || value.length > VALUE_CHARACTERS_MAX) {
      const limits = `a key has 1 to ${KEY_CHARACTERS_MAX} characters and a value at most ${VALUE_CHARACTERS_MAX}`;
      throw new S3Error("InvalidTag", `Of tags, ${limits}. This one has ${key.length} and ${value.length}.`);
    }
    if (tags.findIndex(([other]) => other === key) < at) {
      throw new S3Error("InvalidTag", `Cannot provide multiple Tags with the same key: ${key}.`);
    }
  }
  const kept = tags.map((tag) => tag.map(encodeRfc3986).join("=")).join("&");
  const max = headerCharactersMax(TAGGING);
  if (kept.length <= max) return kept;
  throw new S3Error(
    "InvalidTag",
    `The tags take ${kept.length} characters percent-encoded, at most ${max} can be kept.`,
  );
}

/** Reads the body of PutObjectTagging. Throws S3Error MalformedXML. */
export function readTagging(xml: string): Tags {
  const { root, elements } = OPERATIONS.PutObjectTagging.body;
  const [set, ...others] = readXml(xml, root, elements).elements.get("TagSet") ?? [];
  if (!set || others.length > 0) throw new S3Error("MalformedXML", "A Tagging has one TagSet.");
  return (set.elements.get("Tag") ?? []).map(({ texts }) => {
    const [key, value] = [texts.get("Key"), texts.get("Value")];
    if (key === undefined || value === undefined) throw new S3Error("MalformedXML", "A Tag has a Key and a Value.");
    return [key, value];
  });
}

/** Returns the XML of GetObjectTagging. */
export function taggingDocument(tags: Tags): string {
  const shown = tags.map(([key, value]) =>
    element("Tag", element("Key", key, "text") + element("Value", value, "text")),
  );
  return xmlDocument("Tagging", element("TagSet", shown.join("")));
}
