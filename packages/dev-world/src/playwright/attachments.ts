/** Names of the attachments that the fixture adds to a test and the reporter reads. */

/** The name of both attachments: a page for people, and the reads as JSON. */
export const READS_ATTACHMENT = "reads";
/** Of the attachment that is the reads as JSON. */
export const READS_TYPE = "application/json";
