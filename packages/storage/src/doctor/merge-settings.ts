/** Merges the CORS rules and policy that readers need into those of a bucket. Pure. */
import { AgaroseError } from "@agarose/core";
import { isRecord } from "@agarose/core/format";
import type { CORSRule } from "../buckets/bucket-settings.ts";
import { jsonIn } from "../config/json.ts";
import { publicReadPolicy, publicReadStatement } from "../buckets/public-read.ts";

/** Readable by scripts only when the bucket exposes them. */
export const HEADERS_TO_EXPOSE = ["content-length", "content-range", "etag"];

const RANGE = "range";
const MAX_AGE_SECONDS = 86_400;
const ANY = "*";

/**
 * Returns the rules with what readers at `origin` need, or undefined when they have it already.
 *
 * A store obeys the first rule that fits a request. So a rule that answers the origin too narrowly gets a wider copy
 * for reads before it, and keeps its own place. Without one, our own rule is the last.
 *
 * @param origin the app's origin, or `*` for any.
 */
export function withReadRule(rules: readonly CORSRule[], origin: string): CORSRule[] | undefined {
  const merged: CORSRule[] = [];
  const answered = new Set<string>();
  for (const rule of rules) {
    const patterns = readersOf(rule, origin);
    const isFirst = !answered.has(origin) && patterns.some((pattern) => !answered.has(pattern));
    if (isFirst && !isWideEnough(rule)) merged.push(widened(rule));
    merged.push(rule);
    for (const pattern of patterns) answered.add(pattern);
  }
  if (!answered.has(origin)) merged.push(readRule([origin]));
  return merged.length === rules.length ? undefined : merged;
}

/**
 * Returns the policy with a statement that lets anyone read objects, or undefined when it has one already.
 *
 * @throws STORE_FAILED for a policy that is no JSON of the known form.
 */
export function withPublicReads(policy: string | undefined, bucket: string): string | undefined {
  if (policy === undefined || policy === "") return publicReadPolicy(bucket);
  const parsed = parse(policy);
  const statements = Array.isArray(parsed["Statement"]) ? (parsed["Statement"] as unknown[]) : [parsed["Statement"]];
  if (!statements.every(isRecord)) throw unknownPolicy(policy);
  const own = publicReadStatement(bucket);
  if (statements.some((statement) => isPublicRead(statement, own.Resource))) return undefined;
  return JSON.stringify({ ...parsed, Statement: [...statements, own] });
}

function readRule(AllowedOrigins: string[]): CORSRule {
  return {
    AllowedOrigins,
    AllowedMethods: ["GET", "HEAD"],
    AllowedHeaders: [RANGE],
    ExposeHeaders: ["Content-Length", "Content-Range", "ETag"],
    MaxAgeSeconds: MAX_AGE_SECONDS,
  };
}

/** The rule for reads only, with what it lacks. */
function widened(rule: CORSRule): CORSRule {
  const own = readRule(rule.AllowedOrigins!);
  const missing = (names: readonly string[] | undefined, given: readonly string[] = []): string[] => {
    const known = new Set(given.map((name) => name.toLowerCase()));
    return [...given, ...(names ?? []).filter((name) => !known.has(name.toLowerCase()))];
  };
  return {
    ...own,
    AllowedHeaders: allowsHeader(rule, RANGE) ? rule.AllowedHeaders : missing(own.AllowedHeaders, rule.AllowedHeaders),
    ExposeHeaders: missing(own.ExposeHeaders, rule.ExposeHeaders),
    ...(rule.MaxAgeSeconds !== undefined && { MaxAgeSeconds: rule.MaxAgeSeconds }),
  };
}

/** The origin, if the rule lets it read. Of any origin: the patterns of the rule that name no origin in full. */
function readersOf({ AllowedMethods = [], AllowedOrigins = [] }: CORSRule, origin: string): string[] {
  if (!AllowedMethods.includes("GET")) return [];
  if (origin === ANY) return AllowedOrigins.filter((pattern) => /^(https?:\/\/)?\*$/.test(pattern));
  return AllowedOrigins.some((pattern) => fits(pattern, origin)) ? [origin] : [];
}

function isWideEnough(rule: CORSRule): boolean {
  const exposed = new Set((rule.ExposeHeaders ?? []).map((name) => name.toLowerCase()));
  const exposes = exposed.has(ANY) || HEADERS_TO_EXPOSE.every((name) => exposed.has(name));
  return exposes && allowsHeader(rule, RANGE);
}

function allowsHeader({ AllowedHeaders = [] }: CORSRule, name: string): boolean {
  return AllowedHeaders.some((pattern) => fits(pattern.toLowerCase(), name));
}

/** Whether a name fits a pattern with at most one asterisk, as S3 compares them. */
function fits(pattern: string, name: string): boolean {
  const at = pattern.indexOf(ANY);
  if (at === -1) return pattern === name;
  const [head, tail] = [pattern.slice(0, at), pattern.slice(at + 1)];
  return name.length >= head.length + tail.length && name.startsWith(head) && name.endsWith(tail);
}

/** Stores give a policy back in their own spelling: a list for a single value, `{"AWS": "*"}` for anyone. */
function isPublicRead(statement: Record<string, unknown>, resource: string): boolean {
  const holds = (given: unknown, wanted: string): boolean => given === wanted || asList(given).includes(wanted);
  const principal = statement["Principal"];
  return (
    statement["Effect"] === "Allow" &&
    statement["Condition"] === undefined &&
    holds(isRecord(principal) ? principal["AWS"] : principal, ANY) &&
    holds(statement["Action"], "s3:GetObject") &&
    holds(statement["Resource"], resource)
  );
}

function asList(given: unknown): readonly unknown[] {
  return Array.isArray(given) ? given : [];
}

function parse(policy: string): Record<string, unknown> {
  const parsed = jsonIn(policy);
  if (isRecord(parsed)) return parsed;
  throw unknownPolicy(policy);
}

function unknownPolicy(policy: string): AgaroseError {
  const start = policy.slice(0, 100);
  return new AgaroseError("STORE_FAILED", `the bucket has a policy of an unknown form, and it stays: ${start}`, {
    policy: start,
  });
}
