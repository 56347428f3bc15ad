import type { App } from '../../../app.js';
import { findObjectId } from '../../../platform/ids.js';
import type { JobDefinition, RunAgain } from '../../../platform/jobs/job.js';
import { withSpan } from '../../../platform/observe/telemetry.js';
import { projectStore } from '../../projects/project-store.js';
import { acceptMail, closeMail, advanceLog, mailLogStore, noteReason, decryptMail, type MailLog } from '../mail-log.js';
import { refundMailQuota, commitMailQuota } from './mail-quota.js';
import { chooseProvider } from '../project-mail.js';
import { holdTurns, waitForTurn } from './provider-pace.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/**
 * Minutes to hours: a provider's bad afternoon is survived, then the mail counts as failed and its slot is given back.
 */
const MAIL_RETRY = {
  delaysMs: [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 60 * MINUTE, 180 * MINUTE],
};

/**
 * A worker holds a mail no longer than this for its turn: a provider that asked for silence must not keep what could be
 * sent by others.
 */
const MAX_IN_HAND_MS = 10 * SECOND;

/**
 * Sends one queued mail. Repeating it is harmless: the provider knows the key, the log only moves forward, a slot is
 * settled or given back once.
 */
export const deliverMail = defineDelivery('mail.deliver', { urgent: false, concurrency: 16 });

/** deliverMail for mail that the service itself owes a waiting end user, such as a code: goes before all other mail. */
export const deliverSystemMail = defineDelivery('mail.deliverSystem', { urgent: true, concurrency: 8 });

function defineDelivery(
  name: string,
  { urgent, concurrency }: { urgent: boolean; concurrency: number },
): JobDefinition<App, { mailLogId: string }> {
  return {
    name,
    retry: MAIL_RETRY,
    concurrency,
    perParty: 2,
    run: (app, { mailLogId }, { attempt }) => deliver(app, mailLogId, attempt, urgent),
  };
}

async function deliver(app: App, mailLogId: string, attempt: number, urgent: boolean): Promise<RunAgain | void> {
  const log = await mailLogStore(app).findOne({ _id: findObjectId(mailLogId)! });
  if (!log) return;
  if (log.status !== 'queued' || !log.encryptedMail) return closeMail(app, log);
  const project = await projectStore(app).findOne({ _id: log.projectId, state: 'active' });
  if (!project) return failMail(app, log, 'the project is gone');
  const { provider } = chooseProvider(app, project);
  const later = await waitForTurn(app, project, { urgent, mostMs: MAX_IN_HAND_MS });
  if (later) return { again: later, putOff: true };
  const mail = decryptMail(app, log._id, log.encryptedMail);
  const attributes = { 'bsvc.mail.provider': provider.name, 'bsvc.mail.id': mailLogId };
  const result = await withSpan(app.telemetry, 'send mail', { kind: 'client', attributes }, () =>
    provider.send(mail, mailLogId),
  );
  if (result.outcome === 'accepted') return acceptMail(app, log, result);
  if (result.outcome === 'refused') return failMail(app, log, result.reason);
  if (result.outcome === 'later' && result.retryAfterMs !== null) await holdTurns(app, project, result.retryAfterMs);
  const last = attempt > MAIL_RETRY.delaysMs.length;
  // Without an answer the mail may have been sent: it still counts.
  if (last && result.outcome === 'unknown') return loseMail(app, log, result.reason);
  if (last) return failMail(app, log, result.reason);
  await noteReason(app, log, result.reason);
  throw new Error(result.reason);
}

/**
 * A final refusal: the log first, then the slot, so that a crash in between is finished by the next run. One that
 * another run has sent keeps its slot.
 */
async function failMail(app: App, log: MailLog, reason: string): Promise<void> {
  if (await advanceLog(app, { _id: log._id }, 'failed', { reason })) await refundMailQuota(app, log.projectId, log._id);
}

async function loseMail(app: App, log: MailLog, reason: string): Promise<void> {
  await commitMailQuota(app, log.projectId, [log._id]);
  await advanceLog(app, { _id: log._id }, 'failed', { reason });
}
