import type { AppError } from '../../src/errors.js';

/**
 * The next step after a refusal, by its code, in words of the command line; the refusal's own text holds for HTTP too.
 */
const NEXT_STEPS: Readonly<Record<string, string>> = {
  PROJECT_NOT_FOUND: '"bsvc project list" shows them.',
  PROJECT_EXISTS: 'Choose another name; creating with --if-not-exists takes the one that is there.',
  COLLECTION_NOT_FOUND: '"bsvc collection list" shows them.',
  COLLECTION_DROPPING: 'Repeat "bsvc collection drop" to finish it at once.',
  COLLECTION_EXISTS: '"bsvc collection edit" changes it; adding with --if-not-exists leaves it as it is.',
  EMPTY_SCHEMA: 'Declare one with --field title:String!, or store any JSON object with --flexible.',
  FIELD_EXISTS: '--set-field changes it.',
  FIELD_NOT_FOUND: '--add-field declares a further one; "bsvc collection show" lists what there is.',
  KEY_NOT_FOUND: '"bsvc key list" shows them.',
  USER_NOT_FOUND: '"bsvc user list" shows them.',
  EMAIL_TAKEN: 'Add --if-not-exists to take the one that is there.',
  SESSION_NOT_FOUND: '"bsvc user list <user>" shows them.',
  PROVIDER_NOT_FOUND: '"bsvc user social" shows them.',
  OPERATOR_NOT_FOUND: '"bsvc operator list" shows them.',
  OPERATOR_SESSION_NOT_FOUND: '"bsvc operator token --list" shows them.',
  TEMPLATE_NOT_FOUND: '"bsvc mail template list" shows them.',
  WEBHOOK_NOT_FOUND: '"bsvc webhook list" shows them.',
  WEBHOOK_LIMIT: 'Remove one with "bsvc webhook remove", or give the project another plan with "bsvc project update".',
  WEBHOOK_DISABLED: '"bsvc webhook edit" with --enable does.',
  DELIVERY_NOT_FOUND: '"bsvc webhook deliveries" shows them.',
  JOB_NOT_FOUND: '"bsvc jobs" shows them.',
  NO_BUCKET: '"bsvc byok bucket set" gives it one.',
  BYOK_REQUIRED: '"bsvc byok set" stores it.',
  MAIL_PROVIDER_UNAVAILABLE: '--no-verify stores the key unchecked.',
  SENDER_MISSING: '"bsvc project update" with --mail-from sets the project’s default.',
};

/**
 * The message of a refusal as a sentence with all that is wrong, then the next step unless the message names a command
 * already.
 */
export function formatError({ code, message: first, details = [] }: AppError): string {
  const others = details.map((problem) => problem.message).filter((text) => !first.includes(text));
  const message = [first, ...new Set(others)].join('; ');
  const sentence = /[\p{L}\p{N}"”’)]$/u.test(message) ? `${message}.` : message;
  const next = NEXT_STEPS[code];
  return next === undefined || message.includes('bsvc ') ? sentence : `${sentence} ${next}`;
}
