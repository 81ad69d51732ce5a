/** Answers of S3 servers when keys, or the clock of their user, are wrong. All others are about the object. */
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
  // The code of versitygw for an unknown access key id, with status 404.
  "XAdminUserNotFound",
]);
