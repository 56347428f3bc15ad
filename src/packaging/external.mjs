/**
 * Packages that the built scripts load from folders of their own: native parts, what is found by name at run time, what
 * few starts need.
 */
export const EXTERNAL = [
  ...['bcrypt', 'libsql', 'mongodb', 'bson', 'ajv', 'jsonwebtoken', '@aws-sdk/client-s3'],
  ...['@aws-sdk/s3-request-presigner', '@opentelemetry/api', 'nodemailer', 'prom-client', 'resend', 'undici', 'yaml'],
  ...['csv-parse', 'ioredis', '@simplewebauthn/server'],
];

/** The package of lmdb that holds its native part, for each platform. */
export const NATIVE_PARTS = [
  ...['darwin-arm64', 'darwin-x64', 'linux-arm', 'linux-arm64', 'linux-x64', 'win32-arm64', 'win32-x64'],
].map((platform) => `@lmdb/lmdb-${platform}`);
