/**
 * The XML that S3 speaks: writing elements, and reading request bodies. A body is read by a parser that knows XML and
 * its namespaces, and every element of it must be one that the caller knows.
 */
import { SaxesParser } from "saxes";
import { S3Error } from "./s3-error.ts";

/** The first line of every XML answer. */
export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
/** The namespace of S3's answers (Amazon S3 API Reference). */
const S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/";

/** One element. `kind` says whether `content` is text to escape or elements already. */
export function element(name: string, content: string, kind: "elements" | "text" = "elements"): string {
  return `<${name}>${kind === "text" ? escapeXml(content) : content}</${name}>`;
}

/** A document with the S3 namespace on its root. */
export function xmlDocument(root: string, content: string): string {
  return `${XML_DECLARATION}<${root} xmlns="${S3_NAMESPACE}">${content}</${root}>`;
}

/** The elements that may be inside another one: `text` once, `elements` any number of times. */
export interface KnownElements {
  readonly [name: string]: "text" | { readonly elements: KnownElements };
}

/** An element that was read. */
export interface XmlElement {
  readonly texts: ReadonlyMap<string, string>;
  readonly elements: ReadonlyMap<string, readonly XmlElement[]>;
}

interface Open {
  readonly name: string;
  readonly known: KnownElements | undefined;
  readonly texts: Map<string, string>;
  readonly elements: Map<string, Open[]>;
  text: string;
}

/**
 * Reads a document whose root is `root`. Namespaces say nothing: an element is known by its local name.
 *
 * @throws S3Error MalformedXML when it is no well-formed XML, declares a document type, or has an element or attribute
 *   that is not known here.
 */
export function readXml(text: string, root: string, known: KnownElements): XmlElement {
  const parser = new SaxesParser({ xmlns: true });
  const open: Open[] = [];
  let result: Open | undefined;
  parser.on("error", (error) => {
    throw malformed(error.message);
  });
  parser.on("doctype", () => {
    throw malformed("a document type is not allowed");
  });
  parser.on("opentag", ({ local, attributes }) => {
    const odd = Object.values(attributes).find(({ name, prefix }) => name !== "xmlns" && prefix !== "xmlns");
    if (odd) throw malformed(`the attribute ${odd.name} is unknown`);
    const parent = open.at(-1);
    const child = { name: local, known: parent ? knownInside(parent, local) : known, text: "" };
    if (!parent && local !== root) throw malformed(`its root is ${local} and not ${root}`);
    const opened = { ...child, texts: new Map<string, string>(), elements: new Map<string, Open[]>() };
    open.push(opened);
    result ??= opened;
  });
  const onText = (part: string): void => {
    const innermost = open.at(-1);
    if (innermost) innermost.text += part;
  };
  parser.on("text", onText);
  parser.on("cdata", onText);
  parser.on("closetag", () => {
    const closed = open.pop()!;
    const parent = open.at(-1);
    if (closed.known && closed.text.trim() !== "") throw malformed(`${closed.name} has text between its elements`);
    if (!parent) return;
    if (closed.known) {
      const siblings = parent.elements.get(closed.name) ?? [];
      siblings.push(closed);
      parent.elements.set(closed.name, siblings);
      return;
    }
    if (parent.texts.has(closed.name)) throw malformed(`${parent.name} has ${closed.name} twice`);
    parent.texts.set(closed.name, closed.text);
  });
  parser.write(text).close();
  return result!;
}

/** Returns what the child `name` may have inside; undefined for text. */
function knownInside(parent: Open, name: string): KnownElements | undefined {
  const kind = parent.known && Object.hasOwn(parent.known, name) ? parent.known[name] : undefined;
  if (kind === undefined) throw malformed(`${name} is unknown inside ${parent.name}`);
  return kind === "text" ? undefined : kind.elements;
}

function malformed(why: string): S3Error {
  return new S3Error("MalformedXML", `The XML you provided was not well-formed or not what is expected here: ${why}.`);
}

function escapeXml(text: string): string {
  // XML 1.0 cannot hold most control characters, so they go as references, as S3 itself sends them.
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (c) => ENTITIES[c] ?? `&#x${c.charCodeAt(0).toString(16)};`);
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
