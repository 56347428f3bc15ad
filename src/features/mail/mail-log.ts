import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { storeOf, unlessDuplicate } from '../../platform/database/database.js';
import { ID, object, oneOf, orNull, TEXT, arrayOf, type TypeOf } from '../../platform/schema/schema.js';
import type { EncryptedPlace } from '../../platform/secrets/reencrypt.js';
import { requireRoomFor } from '../quota/database-quota.js';
import { serviceRecordBytes, sizeClass } from '../quota/service-records.js';
import type { OutgoingMail, SendOutcome } from '../../platform/mail-provider/mail-provider.js';
import { refundMailQuota, commitMailQuota } from './sending/mail-quota.js';
import { missing } from '../../errors.js';
import { findObjectId } from '../../platform/ids.js';
import type { Project } from '../projects/project.js';
import { chooseProvider } from './project-mail.js';
import { findInOutbox } from '../../platform/mail-provider/outbox.js';

/** rest-api.md 2.8 */
export const MAIL_STATUSES = ['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed'] as const;
export type MailStatus = (typeof MAIL_STATUSES)[number];

export const TEMPLATE_USED = object(
  { id: orNull(ID), scope: oneOf('project', 'system', 'embedded'), key: TEXT, name: TEXT },
  'TemplateUsed',
);
export type TemplateUsed = TypeOf<typeof TEMPLATE_USED>;

export interface MailLog {
  /** Also the provider's idempotency key and the id of the mail's slot. */
  _id: ObjectId;
  projectId: ObjectId;
  providerEmailId: string | null;
  to: string[];
  subject: string;
  status: MailStatus;
  usingByok: boolean;
  templateUsed: TemplateUsed | null;
  /** Why it failed or bounced or is not sent yet, which recipients were refused, or that it is kept in the outbox. */
  reason: string | null;
  /** The mail to send, encrypted, as mails carry codes and private words; removed as soon as its fate is settled. */
  encryptedMail?: string;
  /** What it counts for in the project’s quota, beside the log itself, until its fate is settled. */
  size?: number;
  createdAt: Date;
  /** The time the provider took it; until then the time it was queued, so that the list can be sorted by it. */
  sentAt: Date;
}

const MAIL_LOGS = 'mail_logs';

export const mailLogStore = storeOf<MailLog>(MAIL_LOGS);

/** The log of a mail that waits to be sent. */
export function queuedLog(
  app: Pick<App, 'secrets' | 'clock'>,
  projectId: ObjectId,
  mail: OutgoingMail,
  told: Pick<MailLog, 'usingByok'> & Partial<Pick<MailLog, '_id' | 'subject' | 'templateUsed'>>,
): MailLog {
  const { _id = new ObjectId(), subject = mail.subject, templateUsed = null, usingByok } = told;
  const now = new Date(app.clock.now());
  const encryptedMail = app.secrets.encrypt(JSON.stringify(mail), mailContext(_id));
  return {
    _id,
    projectId,
    providerEmailId: null,
    to: mail.to,
    subject,
    status: 'queued',
    usingByok,
    templateUsed,
    reason: null,
    encryptedMail,
    size: sizeClass(encryptedMail.length),
    createdAt: now,
    sentAt: now,
  };
}

export function decryptMail(app: Pick<App, 'secrets'>, id: ObjectId, encrypted: string): OutgoingMail {
  return JSON.parse(app.secrets.decrypt(encrypted, mailContext(id))) as OutgoingMail;
}

const mailContext = (id: ObjectId): string => `mail-log:${id.toHexString()}`;

/** The states from which each state may be entered: forward only, `bounced` and `failed` are ends (decisions.md 7). */
const BEFORE: Readonly<Record<MailStatus, readonly MailStatus[]>> = {
  queued: [],
  sent: ['queued'],
  delivered: ['queued', 'sent'],
  complained: ['queued', 'sent', 'delivered'],
  bounced: ['queued', 'sent', 'delivered'],
  failed: ['queued'],
};

/** Moves a log forward by one conditional write; false when it is already there or beyond. */
export async function advanceLog(
  app: Pick<App, 'db' | 'metrics'>,
  filter: { _id: ObjectId } | { providerEmailId: string; projectId?: ObjectId },
  status: MailStatus,
  change: Partial<MailLog> = {},
): Promise<boolean> {
  const result = await mailLogStore(app).updateOne(
    { ...filter, status: { $in: [...BEFORE[status]] } },
    { $set: { ...change, status }, $unset: { encryptedMail: '', size: '' } },
  );
  if (result.modifiedCount === 0) return false;
  app.metrics.event('mails', status);
  return true;
}

/** Notes why a mail is still queued after an attempt. */
export async function noteReason(app: Pick<App, 'db'>, { _id }: MailLog, reason: string): Promise<void> {
  await mailLogStore(app).updateOne({ _id, status: 'queued' }, { $set: { reason } });
}

/** 403 QUOTA_EXCEEDED when the project has no room for mails that are to wait. */
export async function requireRoomForMails(app: App, projectId: ObjectId, logs: readonly MailLog[]): Promise<void> {
  const kept = logs.reduce((sum, { size = 0 }) => sum + size + serviceRecordBytes('mailLogs'), 0);
  await requireRoomFor(app, projectId, { kept });
}

/** A log as clients see it. */
function presentMailLog(log: MailLog) {
  return {
    id: log._id.toHexString(),
    providerEmailId: log.providerEmailId,
    to: log.to.length === 1 ? log.to[0]! : log.to,
    subject: log.subject,
    status: log.status,
    usingByok: log.usingByok,
    templateUsed: log.templateUsed,
    reason: log.reason,
    sentAt: log.sentAt.toISOString(),
  };
}

export const ENCRYPTED_QUEUED_MAILS: EncryptedPlace = {
  collection: MAIL_LOGS,
  fields: (record) => {
    const { _id, encryptedMail } = record as MailLog;
    return encryptedMail === undefined
      ? []
      : [{ path: 'encryptedMail', encrypted: encryptedMail, context: mailContext(_id) }];
  },
};

/** The mail provider's word about a mail; kept for a while, as it may come before the mail's id there is known here. */
interface MailEvent {
  /** Whose account it came from, and the event's id there. */
  _id: string;
  /** The project whose own account sent it; null = the service's account. */
  projectId: ObjectId | null;
  providerEmailId: string;
  status: MailStatus;
  reason: string | null;
  seenAt: Date;
}

export const eventStore = storeOf<MailEvent>('mail_events');

/** Keeps an event; false when it was there already. */
export async function keepEvent(app: Pick<App, 'db'>, event: MailEvent): Promise<boolean> {
  return (await unlessDuplicate(eventStore(app).insertOne(event))) !== null;
}

/**
 * The events about a mail, from its project's own account and from the service's; none while the provider has not named
 * it.
 */
async function listStatusEvents(
  app: Pick<App, 'db'>,
  { projectId, providerEmailId }: Pick<MailLog, 'projectId' | 'providerEmailId'>,
): Promise<MailEvent[]> {
  if (providerEmailId === null) return [];
  const events = eventStore(app).find({ providerEmailId, projectId: { $in: [projectId, null] } });
  return events.sort({ seenAt: 1, _id: 1 }).toArray();
}

type AcceptedMail = Extract<SendOutcome, { outcome: 'accepted' }>;

/**
 * Notes that the provider took a mail, under that id, and which recipients it refused or that it sends none. Its slot
 * stays taken.
 */
export async function acceptMail(app: App, log: MailLog, { id, partial, isKept }: AcceptedMail): Promise<void> {
  const providerEmailId = id;
  const sentAt = new Date(app.clock.now());
  const reason = partial ?? (isKept ? 'kept in the outbox, not sent' : null);
  await advanceLog(app, { _id: log._id }, 'sent', { providerEmailId, sentAt, reason });
  await closeMail(app, { ...log, status: 'sent', providerEmailId });
}

/**
 * Finishes a mail that is no longer queued: settles its slot or gives it back, and lets the provider's word from before
 * its id was known take effect. Idempotent.
 */
export async function closeMail(app: App, log: MailLog): Promise<void> {
  if (log.status === 'failed') return refundMailQuota(app, log.projectId, log._id);
  for (const { status, reason } of await listStatusEvents(app, log)) {
    await advanceLog(app, { _id: log._id }, status, { ...(reason !== null && { reason }) });
  }
  await commitMailQuota(app, log.projectId, [log._id]);
}

export const LOGS_PAGE = 50;
export const MAX_LOGS_PAGE = 200;

interface MailLogQuery {
  page?: number;
  limit?: number;
  status?: MailStatus;
  /** Only those to this address. */
  to?: string;
}

/** The latest logs of a project by `sentAt`, newest first (rest-api.md 4.4, 8). */
export async function listMailLogs(
  app: App,
  project: Project,
  { page = 1, limit = LOGS_PAGE, status, to }: MailLogQuery = {},
) {
  const filter = {
    projectId: project._id,
    ...(status !== undefined && { status }),
    ...(to !== undefined && { to }),
  };
  const [logs, total] = await Promise.all([
    mailLogStore(app)
      .find(filter, { projection: { encryptedMail: 0 } })
      .sort({ sentAt: -1, _id: -1 })
      .skip((page - 1) * limit)
      .limit(limit)
      .toArray(),
    mailLogStore(app).countDocuments(filter),
  ]);
  return { items: logs.map(presentMailLog), total, page, limit };
}

/**
 * A log by the provider's id (or ours, while it has none) with what the provider says now. 404 for another project's.
 */
export async function readLiveStatus(app: App, project: Project, id: string) {
  const own = findObjectId(id);
  const log = await mailLogStore(app).findOne(
    { projectId: project._id, $or: [{ providerEmailId: id }, ...(own ? [{ _id: own }] : [])] },
    { projection: { encryptedMail: 0 } },
  );
  if (!log) throw missing('NOT_FOUND', 'There is no email log with this id');
  const live = log.providerEmailId ? await chooseProvider(app, project).provider.findStatus(log.providerEmailId) : null;
  return { dbLog: presentMailLog(log), last_event: live?.lastEvent ?? log.status, providerStatus: live?.raw ?? null };
}

export const MAIL_TEXT = object(
  { from: TEXT, to: arrayOf(TEXT), subject: TEXT, text: orNull(TEXT), html: orNull(TEXT) },
  'MailText',
);

/**
 * The mail of a log: while it is pending, or permanently if the outbox keeps mails instead of sending them. 404
 * EMAIL_NOT_FOUND, and MAIL_TEXT_GONE for one that has left the house.
 */
export async function readMailContent(app: App, project: Project, id: string): Promise<TypeOf<typeof MAIL_TEXT>> {
  const _id = findObjectId(id);
  const log = _id && (await mailLogStore(app).findOne({ _id, projectId: project._id }));
  if (!log) throw missing('EMAIL_NOT_FOUND', 'There is no email with this id');
  const mail = log.encryptedMail
    ? decryptMail(app, log._id, log.encryptedMail)
    : await findInOutbox(app, log._id.toHexString());
  if (!mail) throw missing('MAIL_TEXT_GONE', 'The email was sent. Its text is no longer stored');
  const { from, to, subject, text = null, html = null } = mail;
  return { from, to, subject, text, html };
}
