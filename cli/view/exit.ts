import { AppError, type Mistake } from '../../src/errors.js';
import { ConfigError } from '../../src/config/config.js';
import { findOutage, isDamage, isRefusedWrite, lacksDescriptors } from '../../src/platform/database/outages.js';
import { pageOfError } from '../../src/http/replies/error-page.js';

/** Exit codes of the process (cli.md, exit codes). */
export const EXIT = { done: 0, refused: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;

/**
 * The command line itself is wrong: exit 2. `note` is printed below the message, for example a caret under a bad
 * character.
 */
export class UsageError extends Error {
  readonly note?: string;
  constructor(message: string, note?: string) {
    super(message);
    this.name = 'UsageError';
    this.note = note;
  }
}

/** The person pressed Ctrl-C, or the process was asked to stop, before the command was done: exit 130. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted.');
    this.name = 'Interrupted';
  }
}

/** How much of a text is shown around a mistake. */
const POINTED_CHARACTERS = 90;

export interface Failure {
  exitCode: number;
  code: string;
  /** The failure, its cause and the next step. */
  message: string;
  note?: string;
  /** Each broken rule of a document or body, for programs: the message has them all. */
  details?: AppError['details'];
  /** Path of the guide that explains the code. */
  docs?: string;
  /** Set when it is our own bug. */
  unexpected?: boolean;
}

/** A failure that a command reports beside its result. */
export const refused = (code: string, message: string): Failure => ({ exitCode: EXIT.refused, code, message });

/** Errors that are worth another try, although what they came from could be reached. */
const ANSWERED: ReadonlySet<string> = new Set(['BUSY', 'STORAGE_REFUSED']);

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ETIMEDOUT',
  'EAI_AGAIN',
]);

const SYSTEM_ERRORS: Record<string, string> = {
  EACCES: 'Permission denied.',
  EBUSY: 'It is in use.',
  EDQUOT: 'The disk quota is used up.',
  EEXIST: 'Something else already exists there.',
  EIO: 'The disk cannot be read or written.',
  EISDIR: 'That is a directory, not a file.',
  ELOOP: 'Its symbolic links lead nowhere.',
  ENAMETOOLONG: 'The name is too long.',
  ENOSPC: 'The disk is full.',
  ENOTDIR: 'A file stands where a directory should be.',
  EPERM: 'The system does not permit it.',
  EROFS: 'The file system is read-only.',
};

/** A text and, below it, a caret at the mistake; of a long text what is around it. */
export function pointAt({ text, at }: Mistake): string {
  const from = Math.max(0, at - POINTED_CHARACTERS / 2);
  const shown = text.slice(from, from + POINTED_CHARACTERS);
  return `  ${shown.replaceAll(/[\s\p{Cc}]/gu, ' ')}\n  ${' '.repeat(at - from)}^`;
}

/**
 * Turns whatever a command threw into the exit code and the words for stderr. Driver texts never get through, except
 * that of an unreachable server.
 */
export function presentFailure(error: unknown): Failure {
  if (error instanceof UsageError) {
    return { exitCode: EXIT.usage, code: 'USAGE', message: error.message, note: error.note };
  }
  if (error instanceof ConfigError) {
    const message =
      error.problems.length === 1
        ? `Wrong setting: ${error.problems[0]}.`
        : `Wrong settings:\n${error.problems.map((problem) => `  ${problem}`).join('\n')}`;
    return { exitCode: EXIT.usage, code: 'WRONG_SETTING', message };
  }
  if (error instanceof Interrupted || (error instanceof Error && /^(ExitPrompt|Abort)Error$/.test(error.name))) {
    return { exitCode: EXIT.interrupted, code: 'INTERRUPTED', message: 'Interrupted.' };
  }
  if (error instanceof AppError) {
    const exitCode = error.kind === 'unavailable' && !ANSWERED.has(error.code) ? EXIT.unreachable : EXIT.refused;
    const note = error.mistake && pointAt(error.mistake);
    const { code, details } = error;
    return { exitCode, code, message: formatError(error), details, docs: pageOfError(code), note };
  }
  return presentForeignError(error);
}

function presentForeignError(error: unknown): Failure {
  if (isRefusedWrite(error)) {
    return { exitCode: EXIT.unreachable, code: 'STORE_READ_ONLY', message: (error as Error).message };
  }
  if (lacksDescriptors(error)) {
    const message = 'No more files can be opened: let this process open more ("ulimit -n"), or try again.';
    return { exitCode: EXIT.unreachable, code: 'OVERLOADED', message };
  }
  const outage = findOutage(error);
  if (outage) return presentFailure(outage);
  if (isDamage(error)) return { exitCode: EXIT.refused, code: 'STORE_DAMAGED', message: (error as Error).message };
  const { message = String(error), code } = error as { message?: string; code?: unknown };
  const path = (error as { path?: unknown }).path;
  if (typeof code === 'string' && UNREACHABLE_CODES.has(code)) {
    return {
      exitCode: EXIT.unreachable,
      code: 'UNREACHABLE',
      message: `The database cannot be reached (${oneLine(message)}). Check MONGODB_URI and that the server is running; "bsvc doctor" looks closer.`,
    };
  }
  if (error instanceof Error && error.name === 'MongoParseError') {
    // A text that quotes the address would show its password.
    const why = message.includes('://') ? '' : ` (${oneLine(message)})`;
    return {
      exitCode: EXIT.usage,
      code: 'WRONG_SETTING',
      message: `The address of the MongoDB cannot be used${why}. Check MONGODB_URI.`,
    };
  }
  if (code === 'ENOENT' && typeof path === 'string') {
    return { exitCode: EXIT.refused, code: 'FILE_MISSING', message: `There is no file ${path}. Check the path.` };
  }
  const refusal = typeof code === 'string' ? SYSTEM_ERRORS[code] : undefined;
  if (refusal) {
    const place = typeof path === 'string' ? `${path}: ` : '';
    return { exitCode: EXIT.refused, code: String(code), message: `${place}${refusal}` };
  }
  return {
    exitCode: EXIT.refused,
    code: 'INTERNAL',
    message: `Something unexpected went wrong: ${oneLine(message)}. Run again with BSVC_LOG_LEVEL=debug for the details.`,
    unexpected: true,
  };
}

function oneLine(text: string): string {
  return text.split('\n')[0]!.replace(/\.$/, '');
}

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
  PROVIDER_NOT_FOUND: '"bsvc user social list" shows them.',
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
function formatError({ code, message: first, details = [] }: AppError): string {
  const others = details.map((problem) => problem.message).filter((text) => !first.includes(text));
  const message = [first, ...new Set(others)].join('; ');
  const sentence = /[\p{L}\p{N}"”’)]$/u.test(message) ? `${message}.` : message;
  const next = NEXT_STEPS[code];
  return next === undefined || message.includes('bsvc ') ? sentence : `${sentence} ${next}`;
}
