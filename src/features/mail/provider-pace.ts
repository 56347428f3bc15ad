import { setTimeout as wait } from 'node:timers/promises';
import type { App } from '../../app.js';
import { overLimit } from '../../errors.js';
import type { Store } from '../../platform/database.js';
import { sha256Hex } from '../../platform/ids.js';
import type { Project } from '../projects/project.js';
import { findByokKey } from './project-mail.js';

interface Pace {
  /** Hash of the provider key: every process and project that uses the key shares one pace. */
  _id: string;
  nextAt: Date;
}

const MAIL_PACE = 'mail_pace';
/** A worker waits for its turn with a job in its hands. */
const LONGEST_HOLD_MS = 3_600_000;
/** A client waits for its answer. */
const LONGEST_WAIT_MS = 60_000;

function paceStore(app: Pick<App, 'db'>): Store<Pace> {
  return app.db.collection<Pace>(MAIL_PACE);
}

/** Books the next call that the provider's rate allows for this project's key, and waits for it. Providers without a key have no pace. */
export async function waitForTurn(app: App, project: Project): Promise<void> {
  const id = paceId(app, project);
  const rate = app.config.mailRate;
  if (id === null || rate === null) return;
  const now = new Date(app.clock.now());
  const gapMs = rate.windowMs / rate.count;
  // What is booked further ahead was booked before the clock was set back.
  const isNear = { $lte: ['$nextAt', new Date(now.getTime() + LONGEST_HOLD_MS)] };
  const booked = await paceStore(app).findOneAndUpdate(
    { _id: id },
    [{ $set: { nextAt: { $add: [{ $cond: [isNear, { $max: ['$nextAt', now] }, now] }, gapMs] } } }],
    { upsert: true, returnDocument: 'after' },
  );
  const turnMs = (booked as Pace).nextAt.getTime() - gapMs;
  if (turnMs > now.getTime()) await wait(turnMs - now.getTime());
}

/** For calls that a client waits for: 429 RATE_LIMITED, and no turn is booked, when the next one is more than a minute away. */
export async function refuseLongWait(app: App, project: Project): Promise<void> {
  const id = paceId(app, project);
  const pace = id === null || app.config.mailRate === null ? null : await paceStore(app).findOne({ _id: id });
  const waitMs = (pace?.nextAt.getTime() ?? 0) - app.clock.now();
  if (waitMs > LONGEST_WAIT_MS && waitMs <= LONGEST_HOLD_MS) {
    throw overLimit('RATE_LIMITED', 'The mail provider’s rate limit is exceeded', { retryAfterSeconds: waitMs / 1000 });
  }
}

/** Nobody calls with this project's key before `ms` have passed, an hour at most: what the provider asked for with 429. */
export async function holdTurns(app: App, project: Project, ms: number): Promise<void> {
  const id = paceId(app, project);
  if (id === null) return;
  const nextAt = new Date(app.clock.now() + Math.min(ms, LONGEST_HOLD_MS));
  await paceStore(app).updateOne({ _id: id }, { $max: { nextAt } }, { upsert: true });
}

function paceId(app: App, project: Project): string | null {
  const key = findByokKey(app, project) ?? (app.mail.name === 'resend' ? app.config.resendApiKey : null);
  return key === null ? null : sha256Hex(key);
}
