import { randomUUID } from 'node:crypto';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import type { Project } from '../projects/project.js';
import { readAnswer } from './before-calls.js';
import { callHandler, HandlerFailure } from './call-handler.js';
import { findHook, noHook, openHandler } from './hook.js';

/**
 * Calls the hook of an event once with a document that is not stored, and answers what it says, or why that is no
 * answer. 404 without a hook.
 */
export async function testHook(
  app: App,
  project: Project,
  event: string,
  document: Record<string, unknown>,
): Promise<{ answer: unknown; error: string | null }> {
  if (event.startsWith('after.')) {
    throw invalid(
      'INVALID_EVENTS',
      'What hears of an event is tried with a real one: bsvc webhook replay sends it again',
    );
  }
  const hook = findHook(project, event);
  if (!hook) throw noHook(event);
  const caller = { userId: null, roles: [], ip: null };
  const call = {
    ...{ projectId: project._id, ownerId: hook.id, id: `call_${randomUUID()}`, event, timeoutMs: hook.timeoutMs },
    ...{ depth: 1, target: openHandler(app, project._id, hook) },
    body: JSON.stringify({ event, test: true, caller, document, idempotencyKey: null }),
  };
  try {
    const answer = await callHandler(app, call, (json) => {
      readAnswer(json, 1, true);
      return json;
    });
    return { answer, error: null };
  } catch (error) {
    if (!(error instanceof HandlerFailure)) throw error;
    return { answer: error.answer, error: error.message };
  }
}
