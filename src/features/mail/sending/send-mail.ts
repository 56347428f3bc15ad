import { ObjectId } from 'bson';
import type { App } from '../../../app.js';
import { ID, object, oneOf, orNull, WHOLE, type TypeOf } from '../../../platform/schema/schema.js';
import type { Project } from '../../projects/project.js';
import { deliverMail, deliverSystemMail } from './deliver-mail.job.js';
import {
  mailLogStore,
  queuedLog,
  requireRoomForMails,
  TEMPLATE_USED,
  type MailLog,
  type TemplateUsed,
  type MailStatus,
} from '../mail-log.js';
import { reserveMailQuota, type MailQuotaUse } from './mail-quota.js';
import { requireTemplate } from '../mail-template.js';
import { findByokKey, resolveSender } from '../project-mail.js';
import { checkRendered, type MailRequest } from '../read-mail.js';
import { renderTemplate, type MailText } from '../render-template.js';
import { invalid } from '../../../errors.js';
import { isEmailAddress } from '../../../platform/schema/text-forms.js';
import { setTimeout as pause } from 'node:timers/promises';
import { findObjectId } from '../../../platform/ids.js';

export const QUEUED_MAIL = object(
  {
    id: ID,
    provider: oneOf('byok', 'default'),
    monthlyUsage: WHOLE,
    monthlyLimit: orNull(WHOLE),
    'templateUsed?': TEMPLATE_USED,
  },
  'QueuedMail',
);
export type QueuedMail = TypeOf<typeof QUEUED_MAIL>;

/**
 * Takes a slot, writes the log `queued` and hands the mail to the worker (rest-api.md 4.4). 400 for what cannot be
 * sent, 404 for an unknown template, 429 over quota. A crash between the steps leaves an open slot or a queued log,
 * which the sweep gives back or hands over again.
 */
export async function sendMail(
  app: App,
  project: Project,
  request: MailRequest,
  id = new ObjectId(),
): Promise<QueuedMail> {
  const { text, used } = await composeText(app, project, request);
  checkRendered(text);
  const from = resolveSender(app, project);
  const usingByok = findByokKey(app, project) !== null;
  const mail = { from, to: request.to, ...text, ...(request.replyTo && { replyTo: request.replyTo }) };
  const log = queuedLog(app, project._id, mail, { _id: id, usingByok, templateUsed: used });
  await requireRoomForMails(app, project._id, [log]);
  const slots = await reserveMailQuota(app, project, [id]);
  await mailLogStore(app).insertOne(log);
  await enqueueMail(app, log);
  return presentQueued(log, slots);
}

/** The answer for a mail that was queued. */
export function presentQueued({ _id, usingByok, templateUsed }: MailLog, { used, limit }: MailQuotaUse): QueuedMail {
  return {
    id: _id.toHexString(),
    provider: usingByok ? 'byok' : 'default',
    monthlyUsage: used,
    monthlyLimit: limit,
    ...(templateUsed && { templateUsed }),
  };
}

/** Hands a queued log to the worker; harmless to repeat. `urgent`: an end user waits for it. */
export async function enqueueMail(
  app: App,
  { _id, projectId }: Pick<MailLog, '_id' | 'projectId'>,
  { urgent = false }: { urgent?: boolean } = {},
): Promise<void> {
  const mailLogId = _id.toHexString();
  const options = { uniqueKey: `mail:${mailLogId}`, party: projectId.toHexString() };
  await app.jobs.enqueue(urgent ? deliverSystemMail : deliverMail, { mailLogId }, options);
}

async function composeText(
  app: App,
  project: Project,
  request: MailRequest,
): Promise<{ text: MailText; used: TemplateUsed | null }> {
  const { content, variables } = request;
  if (content.kind === 'direct') return { text: renderTemplate(content.text, variables), used: null };
  const { text, used } = await requireTemplate(app, project, content.by);
  const source = content.subject === undefined ? text : { ...text, subject: content.subject };
  return { text: renderTemplate(source, variables), used };
}

/**
 * Queues a mail that shows whether mail of the project works. It takes a slot of the quota and is refused like any
 * other mail; 400 INVALID_MAIL for what is not an address.
 */
export function sendTestMail(app: App, project: Project, to: string): ReturnType<typeof sendMail> {
  if (!isEmailAddress(to)) throw invalid('INVALID_MAIL', `"${to.slice(0, 80)}" is not an e-mail address`);
  const text = { subject: `Test mail of ${project.name}`, text: 'If you read this, mail works.' };
  return sendMail(app, project, { to: [to], variables: {}, content: { kind: 'direct', text } });
}

export interface SystemMail {
  template:
    | 'verification'
    | 'password-reset'
    | 'login-code'
    | 'email-change'
    | 'email-change-notice'
    | 'mfa-reset-notice'
    | 'invite';
  to: string;
  variables: Readonly<Record<string, string | number>>;
}

const HIDDEN_CODE = '••••••';

/**
 * Queues a mail that the service itself owes an end user; it costs the project no slot. The project may override the
 * template.
 */
export async function sendSystemMail(app: App, project: Project, mail: SystemMail): Promise<void> {
  const template = await requireTemplate(app, project, { name: mail.template });
  const text = renderTemplate(template.text, mail.variables);
  const outgoing = { from: resolveSender(app, project), to: [mail.to], ...text };
  const log = queuedLog(app, project._id, outgoing, {
    // Who reads the log is not to learn the code.
    subject: renderTemplate({ subject: template.text.subject }, { ...mail.variables, code: HIDDEN_CODE }).subject,
    usingByok: findByokKey(app, project) !== null,
    templateUsed: template.used,
  });
  await mailLogStore(app).insertOne(log);
  await enqueueMail(app, log, { urgent: true });
}

const LOOK_AGAIN_MS = 200;

export interface MailFate {
  status: MailStatus;
  /** The words of the mail server about a refusal, an attempt that failed, or refused recipients. */
  reason: string | null;
}

/**
 * Waits until a queued mail was sent, failed, or an attempt at it failed; at most `forMs`. The caller's signal ends the
 * wait with its reason.
 */
export async function waitForMail(app: App, id: string, forMs: number, signal: AbortSignal): Promise<MailFate> {
  const endMs = performance.now() + forMs;
  for (;;) {
    const log = await mailLogStore(app).findOne({ _id: findObjectId(id)! });
    const fate: MailFate = { status: log?.status ?? 'queued', reason: log?.reason ?? null };
    if (fate.status !== 'queued' || fate.reason !== null || performance.now() >= endMs) return fate;
    await pause(LOOK_AGAIN_MS, undefined, { signal });
  }
}
