/**
 * The little XML that S3 speaks: writing elements, and reading two request bodies of a fixed shape.
 */
import { S3Error } from "./s3-error.ts";

/** The first line of every XML answer. */
export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
/** The namespace of S3's answers (Amazon S3 API Reference). */
export const S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";

/** One element. `kind` says whether `content` is text to escape or elements already. */
export function element(name: string, content: string, kind: "elements" | "text" = "elements"): string {
  return `<${name}>${kind === "text" ? escapeXml(content) : content}</${name}>`;
}

/** A document with the S3 namespace on its root. */
export function xmlDocument(root: string, content: string): string {
  return `${XML_DECLARATION}<${root} xmlns="${S3_NAMESPACE}">${content}</${root}>`;
}

/** The texts of all elements `name` inside `xml`, entities resolved; an empty element is "". */
export function textsOf(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?(?:/>|>([^<]*)</${name}>)`, "g");
  return Array.from(xml.matchAll(pattern), (match) => unescapeXml(match[1] ?? ""));
}

/** The inner XML of all elements `name`, which must not be nested in themselves. */
export function elementsOf(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, "g");
  return Array.from(xml.matchAll(pattern), (match) => match[1]!);
}

function escapeXml(text: string): string {
  // XML 1.0 cannot hold most control characters, so they go as references, as S3 itself sends them.
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (c) => ENTITIES[c] ?? `&#x${c.charCodeAt(0).toString(16)};`);
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const CHARACTERS: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([0-9a-fA-F]+)|#(\d+)|(\w+));/g, (whole, hex, decimal, name: string | undefined) => {
    if (name) return CHARACTERS[name] ?? whole;
    const point = hex ? Number.parseInt(hex as string, 16) : Number(decimal);
    if (point > 0x10ffff) throw new S3Error("MalformedXML", `character reference ${whole} is out of range`);
    return String.fromCodePoint(point);
  });
}
