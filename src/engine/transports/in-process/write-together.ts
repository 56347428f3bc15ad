import { pauseEvery } from '../../scheduler.js';
import type { AppValueOptions } from '../../codec/app-values.js';
import { decodeDocument } from '../../codec/decode.js';
import type { Doc } from '../../codec/document.js';
import type { Core } from '../../commands/command.js';
import { compileQuery } from '../../commands/read/query.js';
import type { Modified } from '../../commands/write/modify.js';
import { readModification } from '../../commands/write/update.js';
import { StepRefused, writeTogether, type TogetherStep } from '../../commands/write/write-together.js';
import { openCommandSession, type CommandSession } from './session.js';
import { Decisions, type AppModified, type AppTurn } from './transform.js';

/** Many steps are read and shown in turns of so much: what they have between them takes a long one. */
const TURN_MS = 2;

/** A write as the application gives it, or a condition. */
export type AppStep =
  | ({ collection: string } & (
      { insert: object } | { filter: object; update: object } | { filter: object; remove: true }
    ))
  | AppCondition
  | AppTurn;

/** Whether a document `matches` the filter. */
export interface AppCondition {
  collection: string;
  filter: object;
  matches: boolean;
}

/**
 * Carries writes out in one transaction, in their order; all or none. A StepRefused names the one that was refused,
 * with the driver's error as its cause, or null where no document matched, or one that must not.
 */
export async function writeTogetherInProcess(
  core: Core,
  db: string,
  steps: readonly AppStep[],
  options: AppValueOptions,
): Promise<AppModified[]> {
  const session = openCommandSession(core, db, options);
  const turn = pauseEvery(TURN_MS);
  const read: TogetherStep[] = [];
  const decisions = new Decisions(core, db);
  const decided = new Map<number, AppModified>();
  for (const [n, step] of steps.entries()) {
    await turn();
    const isTurn = 'run' in step;
    read.push(isTurn ? decisions.turnOf(step, (written) => decided.set(n, written)) : readStep(session, db, step));
  }
  const modified = await carryOut(read, decisions);
  const shown: AppModified[] = [];
  for (const [n, { before, after }] of modified.entries()) {
    await turn();
    const step = steps[n]!;
    if (decided.has(n)) {
      shown.push(decided.get(n)!);
      continue;
    }
    // What was given is what is stored.
    shown.push({ before: present(before), after: 'insert' in step ? (step.insert as Doc) : present(after) });
  }
  return shown;
  async function carryOut(read: readonly TogetherStep[], decisions: Decisions): Promise<Modified[]> {
    for (;;) {
      try {
        return await writeTogether(core.storage, read);
      } catch (error) {
        if (!(error instanceof StepRefused) || error.cause === null) throw error;
        await decisions.settle(error.cause, `${db}.${steps[error.step]!.collection}`).catch((cause: unknown) => {
          throw new StepRefused(error.step, cause);
        });
      }
    }
  }

  function present(bytes: Buffer | null): Doc | null {
    return bytes && decodeDocument(bytes, 'app');
  }
}

const PLAIN = { arrayFilters: undefined, sort: {}, hint: undefined, upsert: false };

function readStep(session: CommandSession, db: string, step: Exclude<AppStep, AppTurn>): TogetherStep {
  const ns = `${db}.${step.collection}`;
  if ('insert' in step) {
    const document = step.insert as Doc;
    return { ns, insert: session.encode(document, document['_id']).bytes };
  }
  const filter = session.readDoc(step.filter);
  if ('matches' in step) return { ns, query: compileQuery(filter), matches: step.matches };
  if ('remove' in step) {
    return { ns, modification: { filter, query: compileQuery(filter), update: null, upsert: false } };
  }
  const change = session.readDoc(step.update);
  return { ns, modification: readModification(filter, change, PLAIN) };
}
