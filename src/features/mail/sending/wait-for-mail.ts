import { setTimeout as pause } from 'node:timers/promises';
import type { App } from '../../../app.js';
import { findObjectId } from '../../../platform/ids.js';
import { mailLogStore, type MailStatus } from '../mail-log.js';

const LOOK_AGAIN_MS = 200;

export interface MailFate {
  status: MailStatus;
  /** The words of the mail server about a refusal, an attempt that failed, or refused recipients. */
  reason: string | null;
}

/**
 * Waits until a queued mail was sent, failed, or an attempt at it failed; at most `forMs`. The caller's signal ends the
 * wait with its reason.
 */
export async function waitForMail(app: App, id: string, forMs: number, signal: AbortSignal): Promise<MailFate> {
  const endMs = performance.now() + forMs;
  for (;;) {
    const log = await mailLogStore(app).findOne({ _id: findObjectId(id)! });
    const fate: MailFate = { status: log?.status ?? 'queued', reason: log?.reason ?? null };
    if (fate.status !== 'queued' || fate.reason !== null || performance.now() >= endMs) return fate;
    await pause(LOOK_AGAIN_MS, undefined, { signal });
  }
}
