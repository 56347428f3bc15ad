/** Which guide explains a code: the first whose pattern it meets. */
const PAGES: readonly (readonly [pattern: RegExp, guide: string])[] = [
  [/^(API_KEY|AUTH_REQUIRED|TOKEN_EXPIRED|ORIGIN_|COOKIE_|SECRET_KEY_|READ_BLOCKED|WRITE_BLOCKED)/, 'troubleshooting'],
  [/^(QUOTA_|RATE_|DATABASE_|STORE_(?!DAMAGED)|BODY_IN_|INVALID_QUERY|NO_SPACE|INTERNAL)/, 'troubleshooting'],
  [/^(STORE_DAMAGED|RESTORING|BACKUP_|NO_BACKUP_)/, 'backup'],
  [/^CURSOR_EXPIRED/, 'realtime'],
  [
    /(REFERENCE|REFERRED|CONFLICTING_|COUNT_DIFFERS|IDEMPOTENCY|BATCH_(?!UNCERTAIN)|IF_MATCH|_CHANGING|MEANWHILE)/,
    'writes',
  ],
  [/(MISFITS|DUPLICATE_VALUE|VALIDATION_FAILED)/, 'data'],
  [/(RULE|OWNER_|MEMBERSHIPS|FIELD_(NOT_READABLE|PROTECTED|FIXED)|USERS_)/, 'rules'],
  [/(\bMAIL_|SENDER_|TEMPLATE|BYOK_|BATCH_UNCERTAIN|INVALID_SIGNATURE|INVALID_MAIL)/, 'email'],
  [/^(HOOK|RUN)_/, 'own-code'],
  [/(WEBHOOK|DELIVERY_|PAYLOAD_|INVALID_EVENTS|PRIVATE_ADDRESS|PORT_|INVALID_HEADERS)/, 'webhooks'],
  [/(FILE|UPLOAD|BUCKET|STORAGE|RANGE_|INVALID_ORIGIN)/, 'files'],
  [/(MFA|TOTP|PASSKEY|OTP|CODE_|LOGIN|SIGN_IN|ACCOUNT|ANONYMOUS|CREDENTIALS|PASSWORD|EMAIL|SOCIAL|PROVIDER)/, 'auth'],
  [
    /(IDENTITY|ID_TOKEN|HANDOVER|INVITE|REFRESH|REDIRECT|SESSION|STEP_UP|TOKEN_|PROFILE|ROLES|LAST_WAY|USER_NOT)/,
    'auth',
  ],
  [/(OPERATOR|VIEWER|OWN_ACCOUNT|LINK_INVALID|FOREIGN_REQUEST|NOBODY_|VIEW_|ALL_PROJECTS)/, 'console'],
  [/^(OVERLOADED|TOO_|PATTERN|QUERY_|RESULT_|DOCUMENT_TOO|BODY_TOO|REQUEST_TIMEOUT|BUSY|KEY_LIMIT|RECOUNT_)/, 'limits'],
];

/** The path of the guide that explains an error code, below the service's own path (agents.md 2). */
export function pageOfError(code: string): string {
  return `/api/docs/guides/${PAGES.find(([pattern]) => pattern.test(code))?.[1] ?? 'data'}`;
}
