/**
 * The policy of a form, by which its signer allows whoever has it to upload.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
 */
import { S3Error } from "./s3-error.ts";

/** The shortest and the longest file, in bytes. */
export interface FileBounds {
  min: number;
  max: number;
}

/** Fields that a policy need not name, because it cannot or because they have no effect. */
const UNNAMED = /^(policy|x-amz-signature|x-ignore-.*)$/;

/**
 * Checks that the fields of a form, which include its bucket, are as its policy wants them, and that it names each.
 * Returns the bounds of the file.
 *
 * @throws S3Error InvalidPolicyDocument, or AccessDenied for a policy that has expired or does not fit.
 */
export function checkPolicy(fields: ReadonlyMap<string, string>, nowMs: number): FileBounds {
  const { expiresMs, conditions } = readPolicy(fields.get("policy") ?? "");
  if (nowMs >= expiresMs) throw denied("Policy expired.");
  const bounds = { min: 0, max: Number.POSITIVE_INFINITY };
  const named = new Set<string>();
  for (const condition of conditions) {
    const [operator, subject, value] = conditionOf(condition);
    if (operator === "content-length-range") {
      bounds.min = Math.max(bounds.min, bytesOf(subject));
      bounds.max = Math.min(bounds.max, bytesOf(value));
      continue;
    }
    if (typeof subject !== "string" || !subject.startsWith("$") || typeof value !== "string") {
      throw invalid(`${JSON.stringify(condition)} does not compare a field with a text`);
    }
    const name = subject.slice(1).toLowerCase();
    named.add(name);
    const field = fields.get(name) ?? "";
    // S3 takes a content type with commas for a list.
    const texts = name === "content-type" ? field.split(/,\s*/) : [field];
    if (operator !== "eq" && operator !== "starts-with") throw invalid(`${operator} is not a condition`);
    if (operator === "eq" ? field === value : texts.every((text) => text.startsWith(value))) continue;
    throw denied(`Policy Condition failed: ${JSON.stringify([operator, subject, value])}`);
  }
  const extra = [...fields.keys()].filter((name) => !named.has(name) && !UNNAMED.test(name));
  if (extra.length > 0) throw denied(`Extra input fields: ${extra.join(", ")}`);
  return bounds;
}

function readPolicy(policy: string): { readonly expiresMs: number; readonly conditions: readonly unknown[] } {
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(policy, "base64").toString());
  } catch {
    throw invalid("it is not JSON in base64");
  }
  const { expiration, conditions } = (read ?? {}) as Record<string, unknown>;
  const isDate = typeof expiration === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(expiration);
  const expiresMs = isDate ? Date.parse(expiration) : Number.NaN;
  if (Number.isNaN(expiresMs)) throw invalid("its expiration is not a date such as 2030-01-02T03:04:05Z");
  if (!Array.isArray(conditions)) throw invalid("its conditions are not a list");
  return { expiresMs, conditions };
}

/** `{"acl": "private"}` stands for `["eq", "$acl", "private"]`. */
function conditionOf(written: unknown): [operator: string, subject: unknown, value: unknown] {
  if (Array.isArray(written)) {
    const [operator, ...compared] = written as unknown[];
    if (typeof operator === "string" && compared.length === 2) {
      return [operator.toLowerCase(), compared[0], compared[1]];
    }
  } else {
    const [entry, ...others] = Object.entries(written ?? {});
    if (entry && others.length === 0) return ["eq", `$${entry[0]}`, entry[1]];
  }
  throw invalid(`${JSON.stringify(written)} is not a condition`);
}

function bytesOf(bound: unknown): number {
  const bytes = typeof bound === "string" && /^\d+$/.test(bound) ? Number(bound) : bound;
  if (Number.isSafeInteger(bytes) && (bytes as number) >= 0) return bytes as number;
  throw invalid(`${JSON.stringify(bound)} in content-length-range is not a number of bytes`);
}

function invalid(why: string): S3Error {
  return new S3Error("InvalidPolicyDocument", `Invalid Policy: ${why}.`);
}

function denied(why: string): S3Error {
  return new S3Error("AccessDenied", `Invalid according to Policy: ${why}`);
}
