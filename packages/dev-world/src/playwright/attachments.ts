/** What the fixture attaches to a test, and the reporter looks for. */

/** The name of both attachments: a page for people, and the reads as JSON. */
export const READS_ATTACHMENT = "reads";
/** Of the attachment that is the reads as JSON. */
export const READS_TYPE = "application/json";
