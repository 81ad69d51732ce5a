/** PostObject: an upload by a form, as far as the policy in it allows. */
import type { Exchange } from "../exchange.ts";
import { checkRights } from "../rights.ts";
import { pathOf, sendEmpty, sendXml } from "../wire/answers.ts";
import { sentParts } from "../wire/body.ts";
import { readForm } from "../wire/form.ts";
import { checkCaller, refuseUnknown } from "../wire/parameters.ts";
import { checkPolicy, type FileBounds } from "../wire/post-policy.ts";
import { S3Error } from "../wire/s3-error.ts";
import { checkPolicySignature, encodeRfc3986 } from "../wire/signature.ts";
import { keptTags, readTagging } from "../wire/tags.ts";
import { element, XML_DECLARATION } from "../wire/xml.ts";
import { storeObject } from "./objects.ts";

type Fields = ReadonlyMap<string, string>;

/** PostObject. Its fields are the headers of a PutObject by the signer of the policy. */
export async function postObject(exchange: Exchange): Promise<void> {
  const { request, bucket, pairs, nowMs } = exchange;
  const { fields: sent, fileName, file } = await readForm(request.headers["content-type"], sentParts(request));
  const signer = checkPolicySignature(sent, pairs);
  // The one in the address counts, whatever the form says.
  const told = Array.from(sent.set("bucket", bucket), ([name, value]) => {
    return [name, value.replaceAll("${filename}", () => fileName)] as const;
  });
  const fields = new Map(told);
  const bounds = checkPolicy(fields, nowMs);
  const key = fields.get("key");
  if (!key) throw new S3Error("InvalidArgument", "Bucket POST must contain a field named 'key', before the file.");
  const put = { ...exchange, key, headers: headersIn(fields), query: new URLSearchParams() };
  refuseUnknown("PutObject", put);
  checkCaller(put, exchange.owner);
  checkRights(pairs.find(({ accessKeyId }) => accessKeyId === signer) ?? {}, "PutObject", put);
  answer(put, fields, await storeObject(put, within(bounds, file)));
}

/** Each letter is a byte, as in the headers of a request. */
function headersIn(fields: Fields): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of fields) {
    if (name === "tagging") headers["x-amz-tagging"] = keptTags(readTagging(value));
    else if (!/^(policy|x-amz-(algorithm|credential|signature))$/.test(name)) {
      headers[name === "acl" ? "x-amz-acl" : name] = Buffer.from(value).toString("latin1");
    }
  }
  return headers;
}

async function* within({ min, max }: FileBounds, file: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of file) {
    bytes += part.length;
    if (bytes > max)
      throw new S3Error("EntityTooLarge", `The policy allows at most ${max} bytes, but the file has more.`);
    yield part;
  }
  if (bytes < min)
    throw new S3Error("EntityTooSmall", `The policy requires at least ${min} bytes, but the file has ${bytes}.`);
}

/** Answers as the form asks: by a redirect, by a document, or by nothing. */
function answer(put: Exchange, fields: Fields, stored: Readonly<Record<string, string>>): void {
  const { bucket, key, response } = put;
  const { etag = "" } = stored;
  const redirect = fields.get("success_action_redirect") ?? fields.get("redirect") ?? "";
  const target = URL.canParse(redirect) ? new URL(redirect) : undefined;
  if (target && /^https?:$/.test(target.protocol)) {
    for (const [name, value] of Object.entries({ bucket, key, etag })) target.searchParams.append(name, value);
    return sendEmpty(put, 303, { ...stored, location: target.href });
  }
  const location = `${pathOf(put.request).replace(/\/$/, "")}/${key.split("/").map(encodeRfc3986).join("/")}`;
  const status = fields.get("success_action_status");
  if (status !== "201") return sendEmpty(put, status === "200" ? 200 : 204, { ...stored, location });
  for (const [name, value] of Object.entries({ ...stored, location })) response.setHeader(name, value);
  const told = Object.entries({ Location: location, Bucket: bucket, Key: key, ETag: etag });
  const elements = told.map(([name, value]) => element(name, value, "text"));
  // S3 has no namespace on this one.
  sendXml(put, XML_DECLARATION + element("PostResponse", elements.join("")), 201);
}
