import { invalid } from '../../errors.js';
import { findObjectId } from '../../platform/ids.js';
import type { ObjectId } from 'bson';
import { isOneLine, readAddresses } from './mail-address.js';
import type { MailText } from './render-template.js';

export const MAX_BATCH = 100;
const MAX_SUBJECT_CHARACTERS = 998;
const MAX_BODY_CHARACTERS = 500_000;

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

/** Reads the body of `POST /api/mail/send` (rest-api.md 4.4, send rules 1 and 5). */
export function readMailRequest(body: Record<string, unknown>): MailRequest {
  const addressed = readAddressed(body);
  const variables = readVariables(body.variables);
  const subject = readText(body, 'subject', MAX_SUBJECT_CHARACTERS);
  const { templateId, templateName } = body;
  if (isGiven(templateId) && isGiven(templateName))
    throw invalid('INVALID_MAIL', 'Give either templateId or templateName, not both');
  if (isGiven(templateId)) {
    const id = typeof templateId === 'string' ? findObjectId(templateId) : null;
    if (!id) throw invalid('INVALID_MAIL', 'templateId must be 24 hexadecimal digits');
    return {
      ...addressed,
      variables,
      content: { kind: 'template', by: { id }, ...(subject !== undefined && { subject }) },
    };
  }
  if (isGiven(templateName)) {
    if (typeof templateName !== 'string' || !/^[\w .-]{1,64}$/.test(templateName))
      throw invalid('INVALID_MAIL', 'templateName must be the name of a template');
    return {
      ...addressed,
      variables,
      content: { kind: 'template', by: { name: templateName }, ...(subject !== undefined && { subject }) },
    };
  }
  return {
    ...addressed,
    variables,
    content: { kind: 'direct', text: { subject: subject ?? '', ...readBodies(body) } },
  };
}

/** Reads the body of `POST /api/mail/send-batch`; the first bad item refuses the whole batch, nothing is sent. */
export function readBatch(body: unknown): BatchItem[] {
  if (!Array.isArray(body)) throw invalid('INVALID_BODY', 'The body must be an array of mails');
  if (body.length === 0) throw invalid('INVALID_MAIL', 'Batch cannot be empty');
  if (body.length > MAX_BATCH) throw invalid('INVALID_MAIL', `Max ${MAX_BATCH} emails per batch`);
  return body.map((item: unknown, index) => {
    try {
      return readBatchItem(item);
    } catch (error) {
      throw invalid('INVALID_MAIL', (error as Error).message, {
        details: [{ field: String(index), rule: 'mail', message: (error as Error).message }],
      });
    }
  });
}

function readBatchItem(item: unknown): BatchItem {
  if (typeof item !== 'object' || item === null || Array.isArray(item))
    throw invalid('INVALID_BODY', 'Each mail must be an object');
  const mail = item as Record<string, unknown>;
  if (isGiven(mail.templateId) || isGiven(mail.templateName))
    throw invalid('INVALID_MAIL', 'Templates are not supported in a batch');
  const addressed = readAddressed(mail);
  const text: MailText = { subject: readText(mail, 'subject', MAX_SUBJECT_CHARACTERS) ?? '', ...readBodies(mail) };
  checkSubject(text.subject);
  if (!text.html?.trim() && !text.text?.trim()) throw invalid('INVALID_MAIL', 'Provide html or text');
  return { ...addressed, ...text };
}

/** Checks a mail after its placeholders are filled in (rest-api.md 4.4, send rule 4); refuses header injection too. */
export function checkRendered(mail: MailText): void {
  checkSubject(mail.subject);
  if (!mail.html?.trim() && !mail.text?.trim())
    throw invalid('INVALID_MAIL', 'Provide at least one of html or text content.');
}

function checkSubject(subject: string): void {
  if (subject.trim() === '') throw invalid('INVALID_MAIL', 'Subject is required');
  if (!isOneLine(subject)) throw invalid('INVALID_MAIL', 'The subject must be one line of text');
  if (subject.length > MAX_SUBJECT_CHARACTERS)
    throw invalid('INVALID_MAIL', `The subject may have at most ${MAX_SUBJECT_CHARACTERS} characters`);
}

function readAddressed(body: Record<string, unknown>): { to: string[]; replyTo?: string[] } {
  if (!isGiven(body.to)) throw invalid('INVALID_MAIL', 'Recipient is required');
  const to = readAddresses(body.to, 'to');
  return isGiven(body.replyTo) ? { to, replyTo: readAddresses(body.replyTo, 'replyTo') } : { to };
}

function readBodies(body: Record<string, unknown>): { html?: string; text?: string } {
  const html = readText(body, 'html', MAX_BODY_CHARACTERS);
  const text = readText(body, 'text', MAX_BODY_CHARACTERS);
  return { ...(html !== undefined && { html }), ...(text !== undefined && { text }) };
}

function readText(body: Record<string, unknown>, field: string, most: number): string | undefined {
  const value = body[field];
  if (!isGiven(value)) return undefined;
  if (typeof value !== 'string') throw invalid('INVALID_MAIL', `${field} must be a string`);
  if (value.length > most) throw invalid('INVALID_MAIL', `${field} may have at most ${most} characters`);
  return value;
}

function readVariables(value: unknown): Record<string, unknown> {
  if (!isGiven(value)) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid('INVALID_MAIL', 'variables must be an object');
  return value as Record<string, unknown>;
}

const isGiven = (value: unknown): value is NonNullable<unknown> => value !== undefined && value !== null;
