import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { sendCode } from './send-code.js';

/** Mails a code with which a new password can be set, if the address has an account. Never tells whether it has. */
export function requestPasswordReset(app: App, project: Project, input: { email: string }): Promise<void> {
  return sendCode(app, project, 'password-reset', input.email);
}
