/**
 * Checks AWS Signature Version 4, in the Authorization header, in the query of a presigned URL, and of a form's policy.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { S3Error } from "./s3-error.ts";

/** The parts of a request that its signature covers. */
export interface SignedRequest {
  readonly method: string;
  /** Path as sent, percent-encoded. */
  readonly path: string;
  /** Query as sent, without `?`. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Signs streamed chunks: the key and the scope of the request, and its signature as the first seed. */
export interface SigningContext {
  readonly accessKeyId: string;
  readonly key: Buffer;
  readonly date: string;
  readonly scope: string;
  readonly signature: string;
}

/** One pair of S3 keys. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

const SKEW_MS_MAX = 15 * 60 * 1000;
const PRESIGNED_SECONDS_MAX = 7 * 24 * 3600;

/**
 * Checks the signature of a request. Returns undefined for a request without one.
 *
 * @throws S3Error InvalidAccessKeyId, SignatureDoesNotMatch, RequestTimeTooSkewed, AccessDenied (expired, or a header
 *   that must be signed is not), or the code of a malformed signature.
 */
export function checkSignature(
  request: SignedRequest,
  pairs: readonly Credentials[],
  nowMs: number,
): SigningContext | undefined {
  refuseOtherSignatures(request);
  const claim = claimInHeader(request) ?? claimInQuery(request);
  if (!claim) return undefined;
  const { accessKeyId, scope, key } = signingKey(claim, pairs);
  checkTime(claim, nowMs);
  refuseUnsigned(request, claim);
  const isSigned = canonicalRequests(request, claim).some((canonical) => {
    const toSign = ["AWS4-HMAC-SHA256", claim.date, scope, sha256Hex(canonical)].join("\n");
    return sameHex(hmac(key, toSign).toString("hex"), claim.signature);
  });
  if (!isSigned) throw mismatch();
  return { accessKeyId, key, date: claim.date, scope, signature: claim.signature };
}

/**
 * Checks the signature of the policy in a form, whose fields have lower-case names. Returns the access key id.
 *
 * @throws S3Error AccessDenied without a policy, InvalidArgument without one of the fields that sign it, or what
 *   `checkSignature` throws.
 */
export function checkPolicySignature(fields: ReadonlyMap<string, string>, pairs: readonly Credentials[]): string {
  const policy = fields.get("policy");
  if (policy === undefined) throw new S3Error("AccessDenied", "The form has no policy before its file.");
  if (fields.has("awsaccesskeyid")) throw versionTwo();
  const [algorithm, credential, date, signature] = ["algorithm", "credential", "date", "signature"].map((name) => {
    const value = fields.get(`x-amz-${name}`);
    if (value !== undefined) return value;
    const message = `Bucket POST must contain a field named 'x-amz-${name}', before the file.`;
    throw new S3Error("InvalidArgument", message);
  }) as [string, string, string, string];
  if (algorithm !== "AWS4-HMAC-SHA256")
    throw new S3Error("InvalidArgument", "x-amz-algorithm must be AWS4-HMAC-SHA256.");
  const { accessKeyId, key } = signingKey({ credential: scopeOf(credential), date }, pairs);
  if (!sameHex(hmac(key, policy).toString("hex"), signature)) throw mismatch();
  return accessKeyId;
}

/** By pair, the key that was made last. All requests of a day share it. */
const lastKeys = new WeakMap<Credentials, Pick<SigningContext, "accessKeyId" | "scope" | "key">>();

function signingKey(
  { credential, date }: Pick<Claim, "credential" | "date">,
  pairs: readonly Credentials[],
): Pick<SigningContext, "accessKeyId" | "scope" | "key"> {
  const [accessKeyId, ...scope] = credential;
  const credentials = pairs.find((pair) => pair.accessKeyId === accessKeyId);
  if (!credentials) {
    throw new S3Error("InvalidAccessKeyId", "The access key id does not exist in our records.");
  }
  const [day, region, service, terminator] = scope;
  if (!day || !region || service !== "s3" || terminator !== "aws4_request" || !date.startsWith(day)) {
    throw new S3Error("AuthorizationHeaderMalformed", "The credential scope is not DAY/REGION/s3/aws4_request.");
  }
  const known = lastKeys.get(credentials);
  if (known?.scope === scope.join("/")) return known;
  const key = scope.reduce<Buffer>(
    (parent, part) => hmac(parent, part),
    Buffer.from(`AWS4${credentials.secretAccessKey}`),
  );
  const made = { accessKeyId: credentials.accessKeyId, scope: scope.join("/"), key };
  lastKeys.set(credentials, made);
  return made;
}

function mismatch(): S3Error {
  return new S3Error("SignatureDoesNotMatch", "The signature we calculated does not match the one you provided.");
}

function versionTwo(): S3Error {
  const message =
    "This is Signature Version 2. The authorization mechanism you have provided is not supported. " +
    "Please use AWS4-HMAC-SHA256: set signature_version s3v4, or the like, in your client.";
  return new S3Error("InvalidRequest", message);
}

/** Signature Version 2, and two signatures at once. */
function refuseOtherSignatures({ headers, query }: SignedRequest): void {
  const authorization = single(headers["authorization"])?.trim();
  const names = queryPairs(query).map(([name]) => name);
  if (authorization?.startsWith("AWS ") || (names.includes("AWSAccessKeyId") && names.includes("Signature"))) {
    throw versionTwo();
  }
  if (authorization !== undefined && names.includes("X-Amz-Signature")) {
    throw new S3Error("InvalidArgument", "Only one auth mechanism allowed; the Authorization header or the query.");
  }
}

/** Returns the SHA-256 in hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Returns the HMAC-SHA-256. */
export function hmac(key: Buffer, data: string): Buffer {
  return createHmac("sha256", key).update(data).digest();
}

/** Compares two digests in constant time. */
export function sameHex(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}

interface Claim {
  readonly credential: string[];
  readonly signedHeaders: string[];
  readonly signature: string;
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly date: string;
  readonly payloadHash: string;
  readonly expiresSeconds?: number;
}

function claimInHeader({ headers }: SignedRequest): Claim | undefined {
  const authorization = single(headers["authorization"]);
  if (authorization === undefined) return undefined;
  const [algorithm, rest = ""] = split(authorization.trim(), " ");
  const fields = new Map(rest.split(",").map((field) => split(field.trim(), "=")));
  const credential = fields.get("Credential");
  const signature = fields.get("Signature");
  const signedHeaders = fields.get("SignedHeaders");
  const date = single(headers["x-amz-date"]) ?? signedDate(single(headers["date"]));
  const payloadHash = single(headers["x-amz-content-sha256"]);
  if (algorithm !== "AWS4-HMAC-SHA256" || !credential || !signature || !signedHeaders || !date) {
    throw new S3Error("AuthorizationHeaderMalformed", "The Authorization header is not an AWS4-HMAC-SHA256 signature.");
  }
  if (!payloadHash)
    throw new S3Error("InvalidRequest", "Missing required header for this request: x-amz-content-sha256");
  return { credential: scopeOf(credential), signedHeaders: signedHeaders.split(";"), signature, date, payloadHash };
}

/** A client may sign by `Date`, which is of the form of HTTP, as boto3 does for a request that has this header. */
function signedDate(date: string | undefined): string | undefined {
  const ms = Date.parse(date ?? "");
  if (Number.isNaN(ms)) return date;
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
}

function claimInQuery({ headers, query }: SignedRequest): Claim | undefined {
  const fields = new Map(queryPairs(query));
  if (!fields.has("X-Amz-Signature")) return undefined;
  const credential = fields.get("X-Amz-Credential");
  const signature = fields.get("X-Amz-Signature");
  const signedHeaders = fields.get("X-Amz-SignedHeaders");
  const date = fields.get("X-Amz-Date");
  const expires = fields.get("X-Amz-Expires") ?? "";
  const expiresSeconds = Number(expires);
  const sound = /^\d+$/.test(expires) && expiresSeconds <= PRESIGNED_SECONDS_MAX;
  if (
    fields.get("X-Amz-Algorithm") !== "AWS4-HMAC-SHA256" ||
    !credential ||
    !signature ||
    !signedHeaders ||
    !date ||
    !sound
  ) {
    throw new S3Error("AuthorizationQueryParametersError", "The query is not a complete AWS4-HMAC-SHA256 signature.");
  }
  const payloadHash =
    fields.get("X-Amz-Content-Sha256") ?? single(headers["x-amz-content-sha256"]) ?? "UNSIGNED-PAYLOAD";
  const names = signedHeaders.split(";");
  return { credential: scopeOf(credential), signedHeaders: names, signature, date, payloadHash, expiresSeconds };
}

function checkTime(claim: Claim, nowMs: number): void {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(claim.date);
  if (!match) throw new S3Error("AccessDenied", "X-Amz-Date is not of the form YYYYMMDDTHHMMSSZ.");
  const [year, month, day, hour, minute, second] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const signedMs = Date.UTC(year, month - 1, day, hour, minute, second);
  if (claim.expiresSeconds !== undefined) {
    if (nowMs >= signedMs + claim.expiresSeconds * 1000) throw new S3Error("AccessDenied", "Request has expired.");
    if (nowMs < signedMs - SKEW_MS_MAX) throw new S3Error("AccessDenied", "Request is not valid yet.");
  } else if (Math.abs(nowMs - signedMs) > SKEW_MS_MAX) {
    throw new S3Error(
      "RequestTimeTooSkewed",
      "The difference between the request time and the current time is too large.",
    );
  }
}

/** A header that is not signed could be changed on the way, and the ones of S3 change what a request does. */
function refuseUnsigned({ headers }: SignedRequest, { signedHeaders }: Claim): void {
  const signed = new Set(signedHeaders.map((name) => name.toLowerCase()));
  const must = ["host", ...Object.keys(headers).filter((name) => name.startsWith("x-amz-"))];
  const unsigned = must.filter((name) => !signed.has(name));
  if (unsigned.length === 0) return;
  throw new S3Error("AccessDenied", `There are headers in the request that must be signed: ${unsigned.join(", ")}.`);
}

/**
 * The canonical request, and another reading of it where a signed header has bytes outside ASCII: most clients sign the
 * bytes that they send, and those that send a text as ISO-8859-1 sign it as UTF-8. Node has read each byte as a letter.
 */
function canonicalRequests(request: SignedRequest, claim: Claim): Uint8Array[] {
  const canonical = canonicalRequest(request, claim);
  const sent = Buffer.from(canonical, "latin1");
  const meant = Buffer.from(canonical, "utf8");
  return sent.equals(meant) ? [sent] : [sent, meant];
}

function canonicalRequest(request: SignedRequest, claim: Claim): string {
  const names = claim.signedHeaders.map((name) => name.toLowerCase());
  const headers = names.map((name) => {
    const value = request.headers[name];
    const text = Array.isArray(value) ? value.join(",") : (value ?? "");
    return `${name}:${text.trim().replace(/ +/g, " ")}\n`;
  });
  return [
    request.method,
    canonicalPath(request.path),
    canonicalQuery(request.query),
    headers.join(""),
    names.join(";"),
    claim.payloadHash,
  ].join("\n");
}

/** Returns the path with every segment percent-encoded once by AWS's rules, however the client encoded it. */
function canonicalPath(path: string): string {
  return path
    .split("/")
    .map((segment) => encodeRfc3986(decode(segment)))
    .join("/");
}

function canonicalQuery(query: string): string {
  return queryPairs(query)
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, value]) => [encodeRfc3986(name), encodeRfc3986(value)] as const)
    .toSorted(([a, x], [b, y]) => compareAscii(a, b) || compareAscii(x, y))
    .map((pair) => pair.join("="))
    .join("&");
}

/** By name and then by value: `a` comes before `a-b`, whatever comes behind their names. */
function compareAscii(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** Returns the decoded name and value pairs of a query. */
export function queryPairs(query: string): [string, string][] {
  return query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => split(pair.replaceAll("+", "%20"), "=").map(decode) as [string, string]);
}

/** Percent-encodes all but RFC 3986's unreserved characters. */
export function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Percent-decodes `text`. Throws S3Error InvalidURI. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error("InvalidURI", "Couldn't parse the specified URI.");
  }
}

function scopeOf(credential: string): string[] {
  const parts = credential.split("/");
  // An access key id may have slashes. The four parts after it may not.
  return [parts.slice(0, -4).join("/"), ...parts.slice(-4)];
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
