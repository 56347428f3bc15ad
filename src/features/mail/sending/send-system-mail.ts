import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { mailLogStore, queuedLog } from '../mail-log.js';
import { requireTemplate } from '../mail-template.js';
import { findByokKey, resolveSender } from '../project-mail.js';
import { renderTemplate } from '../render-template.js';
import { enqueueMail } from './send-mail.js';

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
