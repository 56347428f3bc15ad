import { setTimeout as wait } from 'node:timers/promises';
import type { App } from '../../../app.js';
import { overLimit } from '../../../errors.js';
import { unlessDuplicate, storeOf } from '../../../platform/database/database.js';
import { sha256Hex } from '../../../platform/ids.js';
import { FairLimiter } from '../../../fair-limiter.js';
import type { Project } from '../../projects/project.js';
import { findByokKey } from '../project-mail.js';

interface Pace {
  /** Hash of the provider key: every process and project that uses the key shares one pace. */
  _id: string;
  nextAt: Date;
}

const MAIL_PACE = 'mail_pace';
/** A worker waits for its turn with a job in its hands. */
const MAX_HOLD_MS = 3_600_000;
/** A client waits for its answer. */
const MAX_WAIT_MS = 60_000;

/** Per process: who waits for one key. */
const lines = new WeakMap<App['config'], Map<string, { queue: FairLimiter; callers: number }>>();

async function inLine<T>({ config }: App, id: string, project: Project, work: () => Promise<T>): Promise<T> {
  const known = lines.get(config) ?? new Map<string, { queue: FairLimiter; callers: number }>();
  lines.set(config, known);
  // One call at a time: each project once before any of them twice.
  const line = known.get(id) ?? { queue: new FairLimiter({ shares: { all: 1 } }), callers: 0 };
  known.set(id, line);
  line.callers++;
  try {
    return await line.queue.run({ project: project._id.toHexString(), address: '' }, work);
  } finally {
    line.callers--;
    if (line.callers === 0) known.delete(id);
  }
}

const paceStore = storeOf<Pace>(MAIL_PACE);

export interface TurnOptions {
  /** True for a call that a person at a screen waits for: it goes before all that wait. */
  urgent?: boolean;
  /** Longest wait in milliseconds: beyond it no turn is taken, and the answer is when there may be one. */
  mostMs?: number;
}

/**
 * Waits for the next call that the provider's rate allows for this project's key; projects that share a key take turns.
 * Null when it may be made now; the moment of a later one when that is further away than `mostMs`. Providers without a
 * key have no pace.
 */
export async function waitForTurn(
  app: App,
  project: Project,
  { urgent = false, mostMs = MAX_HOLD_MS }: TurnOptions = {},
): Promise<Date | null> {
  const id = paceId(app, project);
  const rate = app.config.mailRate;
  if (id === null || rate === null) return null;
  const gapMs = rate.windowMs / rate.count;
  if (urgent) return bookTurn(app, id, gapMs, mostMs);
  return inLine(app, id, project, () => catchTurn(app, id, gapMs, mostMs));
}

/** Takes the next free turn, also one that is still to come: who only waits for a free one finds it taken. */
async function bookTurn(app: App, id: string, gapMs: number, mostMs: number): Promise<Date | null> {
  const now = new Date(app.clock.now());
  const before = await paceStore(app).findOne({ _id: id });
  const waitMs = (before?.nextAt.getTime() ?? 0) - now.getTime();
  if (waitMs > mostMs && waitMs <= MAX_HOLD_MS) return before!.nextAt;
  // A turn further ahead was booked before the clock was set back.
  const isNear = { $lte: ['$nextAt', new Date(now.getTime() + MAX_HOLD_MS)] };
  const booked = await paceStore(app).findOneAndUpdate(
    { _id: id },
    [{ $set: { nextAt: { $add: [{ $cond: [isNear, { $max: ['$nextAt', now] }, now] }, gapMs] } } }],
    { upsert: true, returnDocument: 'after' },
  );
  const turnMs = (booked as Pace).nextAt.getTime() - gapMs;
  if (turnMs > now.getTime()) await wait(turnMs - now.getTime());
  return null;
}

/**
 * Takes a turn that is free now, waiting until there is one. Time passes by the process's own timer, whatever the clock
 * says.
 */
async function catchTurn(app: App, id: string, gapMs: number, mostMs: number): Promise<Date | null> {
  const [startMs, startTick] = [app.clock.now(), performance.now()];
  for (;;) {
    const nowMs = Math.max(app.clock.now(), startMs + performance.now() - startTick);
    const taken = new Date(nowMs + gapMs);
    const doubted = new Date(nowMs + MAX_HOLD_MS);
    const free = { _id: id, $or: [{ nextAt: { $lte: new Date(nowMs) } }, { nextAt: { $gt: doubted } }] };
    const booked = paceStore(app).updateOne(free, { $set: { nextAt: taken } }, { upsert: true });
    if (await unlessDuplicate(booked)) return null;
    // The record is there, and its turn is not free.
    const pace = await paceStore(app).findOne({ _id: id });
    const waitMs = (pace?.nextAt.getTime() ?? nowMs) - nowMs;
    if (waitMs > mostMs) return pace!.nextAt;
    if (waitMs > 0) await wait(waitMs);
  }
}

/**
 * Refuses a call that a client waits for with 429 RATE_LIMITED, and books no turn, when the next one is more than a
 * minute away.
 */
export async function rejectLongWait(app: App, project: Project): Promise<void> {
  const id = paceId(app, project);
  const pace = id === null || app.config.mailRate === null ? null : await paceStore(app).findOne({ _id: id });
  const waitMs = (pace?.nextAt.getTime() ?? 0) - app.clock.now();
  if (waitMs > MAX_WAIT_MS && waitMs <= MAX_HOLD_MS) {
    throw overLimit('RATE_LIMITED', 'The mail provider’s rate limit is exceeded', { retryAfterSeconds: waitMs / 1000 });
  }
}

/** Stops all calls with this project's key for `ms`, an hour at most, as the provider asked with 429. */
export async function holdTurns(app: App, project: Project, ms: number): Promise<void> {
  const id = paceId(app, project);
  if (id === null) return;
  const nextAt = new Date(app.clock.now() + Math.min(ms, MAX_HOLD_MS));
  await paceStore(app).updateOne({ _id: id }, { $max: { nextAt } }, { upsert: true });
}

function paceId(app: App, project: Project): string | null {
  const key = findByokKey(app, project) ?? (app.mail.name === 'resend' ? app.config.resendApiKey : null);
  return key === null ? null : sha256Hex(key);
}
