import { ObjectId } from 'bson';
import { invalid } from '../../errors.js';
import { compileCheck } from '../../platform/schema/check-schema.js';
import {
  arrayOf,
  claimed,
  type JsonSchema,
  OBJECT,
  openObject,
  orNull,
  type Schema,
  text,
  type TypeOf,
} from '../../platform/schema/schema.js';
import { isOneLine, MAX_EMAIL_CHARACTERS } from '../../platform/schema/text-forms.js';
import type { MailText } from './render-template.js';

const MAX_BATCH = 100;
const MAX_RECIPIENTS = 50;
const MAX_SUBJECT_CHARACTERS = 998;
const MAX_BODY_CHARACTERS = 500_000;
const ONE_LINE = 'The subject must be one line of text';

const ONE_ADDRESS = { format: 'email', maxLength: MAX_EMAIL_CHARACTERS };
export const ADDRESS = text({ ...ONE_ADDRESS, examples: ['ada@example.com'] });
/** An address, or a list of them. */
const addresses = (type: readonly string[], texts: Schema['texts']): JsonSchema => ({
  ...ONE_ADDRESS,
  ...arrayOf(ADDRESS, { minItems: 1, maxItems: MAX_RECIPIENTS }),
  type,
  texts,
});
const ADDRESSED = {
  to: claimed<string | string[]>(
    addresses(['string', 'array'], {
      required: 'Recipient is required',
      minItems: 'Recipient list cannot be empty',
    }),
  ),
  'replyTo?': claimed<string | string[] | null>(
    addresses(['string', 'array', 'null'], { minItems: 'Reply-to list cannot be empty' }),
  ),
};
const BODY = orNull(text({ maxLength: MAX_BODY_CHARACTERS }));
const BODIES = { 'html?': BODY, 'text?': BODY };

/** The subject of a mail that is sent as it stands. */
export const SUBJECT = text({
  minLength: 1,
  maxLength: MAX_SUBJECT_CHARACTERS,
  notBlank: true,
  oneLine: true,
  texts: { required: 'Subject is required', oneLine: ONE_LINE },
});

/** The body of `POST /api/mail/send` (rest-api.md 4.4). */
export const MAIL = {
  ...openObject(
    {
      ...ADDRESSED,
      'subject?': orNull(text({ maxLength: MAX_SUBJECT_CHARACTERS })),
      ...BODIES,
      'templateId?': orNull(
        text({ pattern: '^[0-9a-fA-F]{24}$', texts: { pattern: 'templateId must be 24 hexadecimal digits' } }),
      ),
      'templateName?': orNull(
        text({ pattern: '^[\\w .-]{1,64}$', texts: { pattern: 'templateName must be the name of a template' } }),
      ),
      'variables?': { ...orNull(OBJECT), description: 'Values of placeholders.' },
    },
    'Mail',
  ),
  description: 'Either a template, or a subject with html or text. Other fields are ignored.',
};

/** What a mail without a template needs besides. */
const checkDirect = compileCheck(openObject({ subject: SUBJECT }));

const BATCH_MAIL = openObject({ ...ADDRESSED, subject: SUBJECT, ...BODIES }, 'BatchMail');

/** The body of `POST /api/mail/send-batch`. */
export const MAIL_BATCH = arrayOf(BATCH_MAIL, {
  minItems: 1,
  maxItems: MAX_BATCH,
  texts: { minItems: 'Batch cannot be empty', maxItems: `Max ${MAX_BATCH} emails per batch` },
});

/** A send request, checked: either a template to look up or the text itself. */
export interface MailRequest {
  to: string[];
  replyTo?: string[];
  variables: Record<string, unknown>;
  content:
    | { kind: 'direct'; text: MailText }
    | { kind: 'template'; by: { id: ObjectId } | { name: string }; subject?: string };
}

/** One item of a batch, checked. */
export interface BatchItem extends MailText {
  to: string[];
  replyTo?: string[];
}

/** Reads the body of `POST /api/mail/send`: send rules 1 and 5 (rest-api.md 4.4). */
export function readMailRequest(body: TypeOf<typeof MAIL>): MailRequest {
  const { templateId, templateName } = body;
  const subject = body.subject ?? undefined;
  const common = { ...readAddressed(body), variables: body.variables ?? {} };
  if (isGiven(templateId) && isGiven(templateName)) {
    throw invalid('INVALID_MAIL', 'Give either templateId or templateName, not both');
  }
  if (!isGiven(templateId) && !isGiven(templateName)) {
    const direct = checkDirect({ subject });
    return { ...common, content: { kind: 'direct', text: { ...direct, ...readBodies(body) } } };
  }
  const by = isGiven(templateId) ? { id: new ObjectId(templateId) } : { name: templateName! };
  return { ...common, content: { kind: 'template', by, ...(subject !== undefined && { subject }) } };
}

/** Reads the body of `POST /api/mail/send-batch`; the first bad item refuses the whole batch, nothing is sent. */
export function readBatch(body: TypeOf<typeof MAIL_BATCH>): BatchItem[] {
  return body.map((item, index) => {
    const refuse = (message: string): Error =>
      invalid('INVALID_MAIL', message, { details: [{ field: String(index), rule: 'mail', message }] });
    const { templateId, templateName } = item as { templateId?: unknown; templateName?: unknown };
    if (isGiven(templateId) || isGiven(templateName)) throw refuse('Templates are not supported in a batch');
    const mail = { ...readAddressed(item), subject: item.subject, ...readBodies(item) };
    if (!hasContent(mail)) throw refuse('Provide html or text');
    return mail;
  });
}

/**
 * Refuses a mail that is not fit to be sent once its placeholders are filled in (rest-api.md 4.4, send rule 4): filled
 * in, a subject could be empty, too long or bring headers along. 400 INVALID_MAIL.
 */
export function checkRendered(mail: MailText): void {
  const { subject } = mail;
  if (subject.trim() === '') throw invalid('INVALID_MAIL', 'Subject is required');
  if (!isOneLine(subject)) throw invalid('INVALID_MAIL', ONE_LINE);
  if (subject.length > MAX_SUBJECT_CHARACTERS) {
    throw invalid('INVALID_MAIL', `The subject may have at most ${MAX_SUBJECT_CHARACTERS} characters`);
  }
  if (!hasContent(mail)) throw invalid('INVALID_MAIL', 'Provide at least one of html or text content.');
}

const hasContent = ({ html, text: plain }: MailText): boolean => Boolean(html?.trim()) || Boolean(plain?.trim());

interface Addressed {
  to: string | string[];
  replyTo?: string | string[] | null;
}

function readAddressed({ to, replyTo }: Addressed): { to: string[]; replyTo?: string[] } {
  return { to: [to].flat(), ...(isGiven(replyTo) && { replyTo: [replyTo].flat() }) };
}

function readBodies(body: { html?: string | null; text?: string | null }): { html?: string; text?: string } {
  const { html, text: plain } = body;
  return { ...(isGiven(html) && { html }), ...(isGiven(plain) && { text: plain }) };
}

const isGiven = <T>(value: T): value is NonNullable<T> => value !== undefined && value !== null;
