import { forbidden } from '../../errors.js';
import { findLimit } from '../plans/plan-limits.js';
import type { Project } from '../projects/project.js';
import { MAX_WEBHOOKS } from './webhook.js';

/** 403 WEBHOOK_LIMIT when a project with `count` webhooks may not have another (rest-api.md 6.2). */
export function requireWebhookRoom(project: Project, count: number): void {
  const limit = Math.min(findLimit(project, 'webhooks') ?? MAX_WEBHOOKS, MAX_WEBHOOKS);
  if (count >= limit) throw forbidden('WEBHOOK_LIMIT', 'Webhook limit reached');
}
