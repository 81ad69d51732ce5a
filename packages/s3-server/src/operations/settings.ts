/**
 * Reads of what a bucket is set up with. No bucket here has anything beyond its owner and perhaps versions, and each
 * read answers that as S3 does of a bucket that nobody has set up, so that programs such as Terraform see it as it is.
 * Nothing of it can be changed.
 */
import type { Exchange } from "../exchange.ts";
import { sendXml } from "../wire/answers.ts";
import { ownerElement, userElements } from "../wire/list.ts";
import { S3Error, type S3ErrorCode } from "../wire/s3-error.ts";
import { element, xmlDocument } from "../wire/xml.ts";

type Read = (exchange: Exchange) => Promise<void>;

const empty = (root: string): Read => content(root, "");
const none =
  (code: S3ErrorCode, message: string): Read =>
  async () => {
    throw new S3Error(code, message);
  };

function content(root: string, elements: string): Read {
  return async (exchange) => sendXml(exchange, xmlDocument(root, elements));
}

/** The operations, by their names in S3. */
export const SETTINGS = {
  // An empty location is us-east-1.
  GetBucketLocation: empty("LocationConstraint"),
  GetBucketVersioning: async (exchange) => {
    const status = exchange.backend.keepsVersions?.() ? element("Status", "Enabled") : "";
    sendXml(exchange, xmlDocument("VersioningConfiguration", status));
  },
  GetBucketAcl: ownerHasAll,
  GetBucketLogging: empty("BucketLoggingStatus"),
  GetBucketNotificationConfiguration: empty("NotificationConfiguration"),
  GetBucketAccelerateConfiguration: empty("AccelerateConfiguration"),
  GetBucketRequestPayment: content("RequestPaymentConfiguration", element("Payer", "BucketOwner")),
  GetBucketTagging: none("NoSuchTagSet", "The TagSet does not exist"),
  GetBucketPolicy: none("NoSuchBucketPolicy", "The bucket policy does not exist"),
  GetBucketPolicyStatus: none("NoSuchBucketPolicy", "The bucket policy does not exist"),
  GetBucketCors: none("NoSuchCORSConfiguration", "The CORS configuration does not exist"),
  GetBucketWebsite: none("NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration"),
  GetBucketLifecycleConfiguration: none(
    "NoSuchLifecycleConfiguration",
    "The lifecycle configuration does not exist. `expire` and `keep` of the deployment are not shown here.",
  ),
  GetBucketEncryption: none(
    "ServerSideEncryptionConfigurationNotFoundError",
    "The server side encryption configuration was not found",
  ),
  GetBucketReplication: none("ReplicationConfigurationNotFoundError", "The replication configuration was not found"),
  GetBucketOwnershipControls: none("OwnershipControlsNotFoundError", "The bucket ownership controls were not found"),
  GetPublicAccessBlock: none(
    "NoSuchPublicAccessBlockConfiguration",
    "The public access block configuration was not found",
  ),
  GetObjectLockConfiguration: none(
    "ObjectLockConfigurationNotFoundError",
    "Object Lock configuration does not exist for this bucket",
  ),
} as const satisfies Record<string, Read>;

/** GetObjectAcl: that of an object which is there. */
export async function objectAcl(exchange: Exchange): Promise<void> {
  const object = await exchange.backend.open(exchange, { left: exchange.left });
  await object.close();
  await ownerHasAll(exchange);
}

async function ownerHasAll(exchange: Exchange): Promise<void> {
  const { owner } = exchange;
  const type = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"';
  const grantee = `<Grantee ${type}>${userElements(owner)}</Grantee>`;
  const grants = element("AccessControlList", element("Grant", grantee + element("Permission", "FULL_CONTROL")));
  sendXml(exchange, xmlDocument("AccessControlPolicy", ownerElement("Owner", owner) + grants));
}
