import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { sendCode } from './send-code.js';

/** Mails a new code that confirms the address, if it belongs to an account that needs one. Never tells whether it does. */
export function resendVerification(app: App, project: Project, input: { email: string }): Promise<void> {
  return sendCode(app, project, 'verification', input.email);
}
