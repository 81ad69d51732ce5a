/** GetObjectAttributes. */
import type { OpenedObject } from "../backend.ts";
import type { Exchange } from "../exchange.ts";
import { sendXml } from "../wire/answers.ts";
import { algorithmOfHeader } from "../wire/checksum.ts";
import { checksumElements, limitOf, partsPage } from "../wire/list.ts";
import { countOf, partsOf } from "../wire/parts.ts";
import { S3Error } from "../wire/s3-error.ts";
import { element, xmlDocument } from "../wire/xml.ts";

const SHOWN: Readonly<Record<string, (object: OpenedObject, exchange: Exchange) => string>> = {
  ETag: ({ etag }) => element("ETag", etag.replaceAll('"', ""), "text"),
  Checksum: ({ headers }) => {
    const checksums = checksumElements(headers);
    const type = element("ChecksumType", headers["x-amz-checksum-type"] ?? "FULL_OBJECT");
    return checksums && element("Checksum", checksums + type);
  },
  ObjectParts: objectParts,
  StorageClass: () => element("StorageClass", "STANDARD"),
  ObjectSize: ({ bytes }) => element("ObjectSize", String(bytes)),
};

/** GetObjectAttributes: those that the request names, of an object that it need not read. */
export async function objectAttributes(exchange: Exchange): Promise<void> {
  const { backend, headers, left, response } = exchange;
  const asked = (headers["x-amz-object-attributes"] ?? "").split(",").map((name) => name.trim());
  const unknown = asked.find((name) => !Object.hasOwn(SHOWN, name));
  if (unknown !== undefined) {
    const message = `x-amz-object-attributes names some of ${Object.keys(SHOWN).join(", ")}, not ${JSON.stringify(unknown)}.`;
    throw new S3Error("InvalidArgument", message);
  }
  const object = await backend.open(exchange, { left });
  try {
    const shown = Object.entries(SHOWN).map(([name, show]) => {
      // A wrong parameter is reported even if its attribute is not requested.
      const attribute = show(object, exchange);
      return asked.includes(name) ? attribute : "";
    });
    response.setHeader("last-modified", new Date(object.modifiedMs).toUTCString());
    sendXml(exchange, xmlDocument("GetObjectAttributesResponse", shown.join("")));
  } finally {
    await object.close();
  }
}

/** Of an object that came in parts: how many, and where their lengths are kept, a page of them. */
function objectParts(object: OpenedObject, { headers }: Exchange): string {
  const limit = limitOf(headers["x-amz-max-parts"], "x-amz-max-parts");
  const parts = partsOf(object)?.map((part, at) => ({ ...part, number: at + 1 })) ?? [];
  const { marker, shown, isTruncated } = partsPage(parts, limit, headers["x-amz-part-number-marker"]);
  const count = countOf(object.etag);
  if (count === undefined) return "";
  const [header] = Object.keys(object.headers).filter((name) => algorithmOfHeader(name) !== undefined);
  const listed = shown.map(({ number, start, end, checksum }) =>
    element(
      "Part",
      element("PartNumber", String(number)) +
        element("Size", String(end - start)) +
        (header !== undefined && checksum !== undefined ? checksumElements({ [header]: checksum }) : ""),
    ),
  );
  const page = [
    element("PartsCount", String(count)),
    element("PartNumberMarker", marker),
    shown.length > 0 ? element("NextPartNumberMarker", String(shown.at(-1)!.number)) : "",
    element("MaxParts", String(limit)),
    element("IsTruncated", String(isTruncated)),
  ];
  return element("ObjectParts", [...page, ...listed].join(""));
}
