/** What S3 servers answer when keys, or the clock that they were used by, are wrong. All else is about the object. */
export const CREDENTIAL_PROBLEMS: ReadonlySet<string> = new Set([
  "AccessDenied",
  "AuthorizationHeaderMalformed",
  "CredentialsProviderError",
  "ExpiredToken",
  "InvalidAccessKeyId",
  "InvalidToken",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch",
  "TokenRefreshRequired",
  // What versitygw calls an unknown access key id, with status 404.
  "XAdminUserNotFound",
]);
