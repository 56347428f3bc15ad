import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { findInOutbox } from '../../platform/mail-provider/outbox.js';
import { findObjectId } from '../../platform/ids.js';
import { arrayOf, object, orNull, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import type { Project } from '../projects/project.js';
import { mailLogStore, decryptMail } from './mail-log.js';

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
