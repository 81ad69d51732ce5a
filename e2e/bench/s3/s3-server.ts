/**
 * Runs an S3 server in a process of its own, so that its work does not count in a measurement. Prints its URL and runs
 * until its stdin ends. `node s3-server.ts embedded|versitygw FOLDER BUCKET…`, credentials from the environment as for
 * AWS.
 */
import { startS3Endpoint, startVersitygw } from "@agarose/dev-world/s3-endpoint";

const [kind, dir = "", ...buckets] = process.argv.slice(2);
const start = kind === "versitygw" ? startVersitygw : startS3Endpoint;
const server = await start({
  accessKeyId: process.env["AWS_ACCESS_KEY_ID"] ?? "",
  secretAccessKey: process.env["AWS_SECRET_ACCESS_KEY"] ?? "",
  dir,
  buckets,
});
console.log(server.url);
process.stdin.resume().once("end", () => void server.close());
