import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import { mailCodeJob } from './mail-code.job.js';
import { openCode, type CodePurpose } from './one-time-code.js';

/**
 * Has a new code mailed, unless one went out in the last minute; older ones end. Whether the address has an account is looked up by the worker alone,
 * so that neither answer nor time tells it.
 */
export async function sendCode(app: App, project: Project, purpose: CodePurpose, email: string): Promise<void> {
  const codeId = await openCode(app, project._id, purpose, email);
  if (codeId) await app.jobs.enqueue(mailCodeJob, { codeId });
}
