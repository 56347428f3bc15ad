import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { isEmailAddress } from '../../../platform/schema/text-forms.js';
import type { Project } from '../../projects/project.js';
import { sendMail } from './send-mail.js';

/**
 * Queues a mail that shows whether mail of the project works. It takes a slot of the quota and is refused like any
 * other mail; 400 INVALID_MAIL for what is not an address.
 */
export function sendTestMail(app: App, project: Project, to: string): ReturnType<typeof sendMail> {
  if (!isEmailAddress(to)) throw invalid('INVALID_MAIL', `"${to.slice(0, 80)}" is not an e-mail address`);
  const text = { subject: `Test mail of ${project.name}`, text: 'If you read this, mail works.' };
  return sendMail(app, project, { to: [to], variables: {}, content: { kind: 'direct', text } });
}
