import type { App } from '../../../app.js';
import type { Project } from '../../projects/project.js';
import { readMailRequest } from '../read-mail.js';
import { sendMail } from './send-mail.js';

/**
 * Queues a mail that shows whether mail of the project works. It takes a slot of the quota and is refused like any
 * other mail.
 */
export function sendTestMail(app: App, project: Project, to: unknown): ReturnType<typeof sendMail> {
  const mail = { to, subject: `Test mail of ${project.name}`, text: 'If you read this, mail works.' };
  return sendMail(app, project, readMailRequest(mail));
}
