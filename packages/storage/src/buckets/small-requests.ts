/**
 * Small requests without most of the SDK's middleware, which takes more time than the rest of such a request: PUT, GET,
 * HEAD and DELETE of one object, with a body that is in memory. What remains of the client serves them: its retries,
 * signer, clock, keys and connections, and the middleware that is ours.
 *
 * It uses parts of the SDK that its types omit, so the package depends on one exact version of it.
 */
import type { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { S3ServiceException, type S3Client } from "@aws-sdk/client-s3";
import type { RegionConfig } from "../config/config.ts";

interface SmallRequest {
  readonly method: "PUT" | "GET" | "HEAD" | "DELETE";
  /** Of the object. */
  readonly name: string;
  /** Names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** An answer with a status below 300. The body of a GET is not read yet. */
export interface SmallAnswer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Readable;
}

/** Serializers from input to request and from response to output, and parts that these requests do not use. */
const LEFT_OUT = [
  "addExpectContinueMiddleware",
  "bucketEndpointMiddleware",
  "contentLengthMiddleware",
  "deserializerMiddleware",
  "getUserAgentMiddleware",
  "hostHeaderMiddleware",
  "httpAuthSchemeMiddleware",
  "loggerMiddleware",
  "recursionDetectionMiddleware",
  "regionRedirectEndpointMiddleware",
  "regionRedirectMiddleware",
  "s3ExpressMiddleware",
  "serializerMiddleware",
  "validateBucketNameMiddleware",
];

interface Response {
  readonly statusCode: number;
  readonly headers: SmallAnswer["headers"];
  readonly body: Readable;
}

type Handler<R> = (args: { readonly input: object; readonly request: object }) => Promise<R>;
type Context = Readonly<Record<string, unknown>>;
type Answered = { readonly response: Response; readonly output: SmallAnswer & { readonly $metadata: object } };

/** The parts of the client's stack and configuration that its types omit. */
interface Stack {
  add(
    middleware: (next: Handler<{ readonly response: Response }>, context: Context) => Handler<Answered>,
    how: object,
  ): void;
  remove(name: string): boolean;
  resolve(handler: Handler<{ readonly response: Response }>, context: Context): Handler<Answered>;
}
interface Config {
  signer: (scheme: unknown) => Promise<unknown>;
  readonly requestHandler: { handle(request: object, options: object): Promise<{ readonly response: Response }> };
  readonly httpAuthSchemes: readonly { readonly schemeId: string; readonly signer: unknown }[];
  readonly logger: unknown;
  readonly systemClockOffset: number;
}
interface Presigner {
  presign(request: object, options: object): Promise<{ readonly query: Readonly<Record<string, string>> }>;
}

/** The SDK's name, where middleware asks for it. */
type CommandName = "GetObjectCommand" | "other";

/** The middleware of one request at a time, put together. */
interface Chain {
  readonly smithy: { abortSignal?: AbortSignal | undefined };
  readonly run: Handler<Answered>;
}

/** The holder of the URL chooses the bytes. */
const UNSIGNED_PAYLOAD = { "x-amz-content-sha256": "UNSIGNED-PAYLOAD" };

/** The small requests to one bucket. */
export class SmallRequests {
  readonly #config: Config;
  readonly #stack: Stack;
  readonly #bucket: URL;
  /** Chains that no request uses. To put one together takes as long as to sign a request. */
  readonly #idle: Record<CommandName, Chain[]> = { GetObjectCommand: [], other: [] };

  /** `client` has all of its middleware. */
  constructor(client: S3Client, { endpoint, bucket }: Pick<RegionConfig, "endpoint" | "bucket">) {
    this.#config = client.config as unknown as Config;
    this.#bucket = new URL(`${endpoint.replace(/\/+$/, "")}/${encoded(bucket)}/`);
    this.#stack = client.middlewareStack.clone() as unknown as Stack;
    for (const name of LEFT_OUT) this.#stack.remove(name);
    this.#stack.add(readAnswer, { step: "deserialize", name: "readAnswer" });
    // The SDK would make a signer for each request.
    const { signer } = this.#config;
    let own: Promise<unknown> | undefined;
    this.#config.signer = (scheme) => (own ??= signer(scheme));
  }

  /**
   * A URL by which anyone may send this request with these very headers, for `seconds` from now on. Rejects where
   * there are no keys.
   */
  async presign({ method, name, headers = {} }: SmallRequest, seconds: number): Promise<string> {
    const config = this.#config;
    const { protocol, hostname, host } = this.#bucket;
    const path = this.#pathOf(name);
    const signer = (await config.signer(undefined)) as Presigner;
    const signed = await signer.presign(
      { method, protocol, hostname, path, query: {}, headers: { host, ...headers, ...UNSIGNED_PAYLOAD } },
      { expiresIn: seconds, signingDate: new Date(Date.now() + config.systemClockOffset) },
    );
    const query = Object.entries(signed.query).map(([field, value]) => `${encoded(field)}=${encoded(value)}`);
    return `${protocol}//${host}${path}?${query.join("&")}`;
  }

  /** Sends a request. Rejects with the SDK's error for an answer of 300 or more. */
  async send({ method, name, headers, body }: SmallRequest, abortSignal?: AbortSignal): Promise<SmallAnswer> {
    const { protocol, hostname, port, host } = this.#bucket;
    const request = {
      method,
      protocol,
      hostname,
      ...(port !== "" && { port: Number(port) }),
      path: this.#pathOf(name),
      query: {},
      headers: { host, "user-agent": "agarose", ...(body && { "content-length": String(body.length) }), ...headers },
      body,
    };
    const commandName = method === "GET" ? "GetObjectCommand" : "other";
    const idle = this.#idle[commandName];
    const chain = idle.pop() ?? this.#chain(commandName);
    chain.smithy.abortSignal = abortSignal;
    const { output } = await chain.run({ input: {}, request });
    // One that has failed may still be waiting for something.
    idle.push(chain);
    return output;
  }

  #chain(commandName: CommandName): Chain {
    const config = this.#config;
    const signing: Record<string, unknown> = { config };
    const { signer } = config.httpAuthSchemes.find(({ schemeId }) => schemeId === "aws.auth#sigv4")!;
    const selectedHttpAuthScheme = { httpAuthOption: { signingProperties: signing }, identity: {}, signer };
    const smithy: Chain["smithy"] = {};
    const context = {
      commandName,
      logger: config.logger,
      __smithy_context: Object.assign(smithy, { selectedHttpAuthScheme }),
    };
    signing["context"] = context;
    const send: Handler<{ readonly response: Response }> = (args) =>
      config.requestHandler.handle(args.request, smithy.abortSignal ? { abortSignal: smithy.abortSignal } : {});
    return { smithy, run: this.#stack.resolve(send, context) };
  }

  #pathOf(name: string): string {
    return this.#bucket.pathname + name.split("/").map(encoded).join("/");
  }
}

/** Reads what is not the content of an object, and makes an error of a refusal, as the SDK does. */
function readAnswer(next: Handler<{ readonly response: Response }>, { commandName }: Context): Handler<Answered> {
  return async (args) => {
    const { response } = await next(args);
    const { statusCode: status, headers, body } = response;
    const $metadata = { httpStatusCode: status };
    const isContent = commandName === "GetObjectCommand" && status < 300;
    const text = isContent ? "" : await textOf(body);
    if (status < 300) return { response, output: { $metadata, status, headers, body } };
    const said = (field: string): string | undefined => new RegExp(`<${field}>([^<]*)</${field}>`).exec(text)?.[1];
    const error = new S3ServiceException({
      name: said("Code") ?? (status === 404 ? "NotFound" : "UnknownError"),
      message: said("Message") ?? "UnknownError",
      $fault: status < 500 ? "client" : "server",
      $metadata,
    });
    throw Object.assign(error, { $response: response });
  };
}

function encoded(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}
