/** GetObjectTagging, PutObjectTagging and DeleteObjectTagging. */
import { inTurn, type Exchange } from "../exchange.ts";
import { sendEmpty, sendXml } from "../wire/answers.ts";
import { describedAs } from "../wire/answered-object.ts";
import { receiveText } from "../wire/body.ts";
import { keptTags, readTagging, taggingDocument, TAGGING, tagsIn, type Tags } from "../wire/tags.ts";
import { withSource } from "./copies.ts";

const TAGGING_XML_BYTES_MAX = 64 * 1024;

/** GetObjectTagging. */
export async function objectTagging(exchange: Exchange): Promise<void> {
  const tags = await withSource(exchange, exchange, async ({ headers }) => tagsIn(headers[TAGGING]));
  sendXml(exchange, taggingDocument(tags));
}

/** PutObjectTagging. */
export async function putTagging(exchange: Exchange): Promise<void> {
  await retag(readTagging(await receiveText(exchange, TAGGING_XML_BYTES_MAX)), exchange);
  sendEmpty(exchange, 200);
}

/** DeleteObjectTagging. */
export async function deleteTagging(exchange: Exchange): Promise<void> {
  await retag([], exchange);
  sendEmpty(exchange, 204);
}

/** Other tags are other headers: a copy of the object onto itself. */
async function retag(tags: Tags, exchange: Exchange): Promise<void> {
  const { bucket, key } = exchange;
  const tagged = { [TAGGING]: keptTags(tags) };
  await inTurn(exchange, key, () =>
    withSource(exchange, exchange, (object) => {
      const described = describedAs(object, tagged);
      return object.copyTo({ bucket, key, described, checksums: undefined, onlyIf: undefined });
    }),
  );
}
