import { ObjectId } from 'bson';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type App, AppError } from '../../world/app.js';
import { type Collection, documentsName, requireCollection } from '../../world/collections.js';
import {
  deleteDocument,
  getDocument,
  userCaller,
  recoverDocument,
  readEncoded,
  requireWriteTarget,
  trashDocument,
  updateDocument,
} from '../../world/documents.js';
import { openRandom } from '../../helpers/random.js';
import {
  ANYONE,
  buildRuledWorld,
  generateDividingRule,
  generateFields,
  giveRules,
  RULED_FIELDS,
  ruledPart,
  type Person,
  type RuledWorld,
  type Values,
} from '../../helpers/ruled-world.js';
import { useTestApp } from '../../helpers/use.js';

const SEEDS = Array.from({ length: Number(process.env.BSVC_TEST_RUNS ?? 6) }, (_, at) => 5_500 + at);
const REQUESTS = 50;

const test = await useTestApp();

const reached = { done: 0, missing: 0, before: 0, after: 0, unknown: 0, overtaken: 0 };

/** What the document holds at a moment, and whether it is in the trash. */
interface Moment {
  fields: Values;
  isTrashed: boolean;
}

const OPERATIONS = ['get', 'update', 'trash', 'delete', 'recover'] as const;
type Operation = (typeof OPERATIONS)[number];

const withChange = (before: Values, change: Values): Values => ruledPart({ ...before, ...change });

/**
 * The app, where somebody else acts before each read and each write of the collection's documents: between any two
 * steps of a request.
 */
function appWithOther(collection: Collection, act: () => Promise<void>): App {
  const store = test.app.db.collection(documentsName(collection));
  const findOne = async (...given: Parameters<typeof store.findOne>): Promise<unknown> => {
    await act();
    return store.findOne(...given);
  };
  const watched = Object.assign(Object.create(store) as object, { findOne });
  const collectionOf = (name: string) => (name === documentsName(collection) ? watched : test.app.db.collection(name));
  const transform = async (...given: Parameters<App['db']['transform']>): Promise<unknown> => {
    await act();
    return test.app.db.transform(...given);
  };
  const db = { ...test.app.db, collection: collectionOf, transform };
  return { ...test.app, db } as unknown as App;
}

interface Answer {
  code: string;
  side?: string;
  document?: Values;
}

/** Throws unless the answer was right at one of the moments through which the document went. */
function requireTrue(
  { rules }: RuledWorld,
  { person: { user }, operation, change }: { person: Person; operation: Operation; change: Values },
  moments: readonly Moment[],
  { code, side, document }: Answer,
): void {
  const rule = operation === 'trash' || operation === 'delete' ? rules.delete : rules.update;
  const after = operation === 'update' ? change : {};
  const isInState = ({ isTrashed }: Moment): boolean =>
    operation === 'delete' || isTrashed === (operation === 'recover');
  const isReadable = (at: Moment): boolean => isInState(at) && rules.read.admits(user, at.fields);
  const isBefore = (at: Moment): boolean => isReadable(at) && (operation === 'get' || rule.admits(user, at.fields));
  const isAfter = (at: Moment): boolean =>
    isBefore(at) &&
    (['get', 'trash', 'delete'].includes(operation) || rules.update.admits(user, withChange(at.fields, after)));
  const isKnown = (at: Moment): boolean => isReadable(at) && (!at.isTrashed || rules.delete.admits(user, at.fields));
  const isUnknown =
    user === null && [rules.read, ...(operation === 'get' ? [] : [rule])].some(({ asksCaller }) => asksCaller);
  const isTrue: Record<string, () => boolean> = {
    done: () =>
      moments.some(
        (at) => isAfter(at) && (!document || isDeepStrictEqual(ruledPart(document), withChange(at.fields, after))),
      ),
    DOCUMENT_NOT_FOUND: () => moments.some((at) => !isReadable(at) || (!isBefore(at) && !isKnown(at))),
    RULE_REFUSED: () =>
      moments.some((at) => (side === 'before' ? isKnown(at) && !isBefore(at) : isBefore(at) && !isAfter(at))),
    AUTH_REQUIRED: () => isUnknown,
  };
  const what = JSON.stringify({ rules, operation, change, user, moments, code, side, document });
  expect(isTrue[code]?.(), what).toBe(true);
  const kind = { done: 'done', DOCUMENT_NOT_FOUND: 'missing', AUTH_REQUIRED: 'unknown' }[code] as 'done';
  reached[code === 'RULE_REFUSED' ? (side as 'before' | 'after') : kind]++;
  if (moments.length > 2) reached.overtaken++;
}

/** rules.md 8: what is answered was so at one moment between the beginning of a request and its end. */
describe('a request while the document changes between any two of its steps', () => {
  it.each(SEEDS)('is answered by what was so at one moment (seed %i)', async (seed) => {
    const random = openRandom(seed);
    const world = await buildRuledWorld(test, random, 6);
    const { project } = world.owner;
    const [read, update, remove] = Array.from({ length: 3 }, () => generateDividingRule(world, random));
    await giveRules(test, world, { read: seed % 2 === 0 ? ANYONE : read!, update: update!, delete: remove! });
    const collection = await requireCollection(test.app, project._id, 'things');
    const store = test.app.db.collection(documentsName(collection));
    let id = new ObjectId();
    let moments: Moment[] = [];
    let next: () => Moment | null = () => null;
    const hold = async (moment: Moment): Promise<void> => {
      const gone = RULED_FIELDS.filter((name) => !Object.hasOwn(moment.fields, name));
      const state = {
        isDeleted: moment.isTrashed,
        deletedAt: moment.isTrashed ? new Date(test.app.clock.now()) : null,
      };
      await store.updateOne(
        { _id: id } as never,
        {
          $set: { ...moment.fields, ...state },
          ...(gone.length > 0 && { $unset: Object.fromEntries(gone.map((name) => [name, ''])) }),
        },
        { upsert: true },
      );
      moments.push(moment);
    };
    const app = appWithOther(collection, async () => {
      const moment = next();
      if (moment) await hold(moment);
    });
    for (let at = 0; at < REQUESTS; at++) {
      const operation = random.chance(0.3) ? 'update' : random.pick(OPERATIONS);
      const trashed = operation === 'recover' ? 0.7 : operation === 'get' || operation === 'update' ? 0.1 : 0.3;
      const states = Array.from({ length: 3 }, () => ({
        fields: ruledPart(generateFields(random, world.userIds)),
        isTrashed: random.chance(trashed),
      }));
      const share = random.pick([0, 0.5, 1]);
      const given = generateFields(random, world.userIds);
      const change = Object.fromEntries(
        Object.keys(given).flatMap((name) =>
          random.chance(0.4) ? [[name, random.chance(0.2) ? null : given[name]]] : [],
        ),
      );
      if (Object.keys(change).length === 0) change.open = true;
      const person = random.pick(world.people);
      const caller = userCaller(project, (person.user?.id as string | undefined) ?? null);
      next = () => null;
      id = new ObjectId();
      moments = [];
      await hold(states[0]!);
      const steps = random.fork(`${at}`);
      next = () => (steps.chance(share) ? steps.pick(states) : null);
      let answer: Answer;
      try {
        const answered = await run(app, caller, operation, id.toHexString(), change);
        answer = { code: 'done', ...(answered && { document: answered }) };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        const side = error.details?.[0]?.side;
        answer = { code: error.code, ...(typeof side === 'string' && { side }) };
      }
      requireTrue(world, { person, operation, change }, moments, answer);
    }
  });

  it('was carried out, refused for each reason, and overtaken', () => {
    for (const [what, count] of Object.entries(reached)) expect(count, what).toBeGreaterThan(0);
  });
});

async function run(
  app: App,
  caller: ReturnType<typeof userCaller>,
  operation: Operation,
  id: string,
  change: Values,
): Promise<Values | null> {
  if (operation === 'get') {
    const reply = await getDocument(app, caller, 'things', id, '');
    return readEncoded(reply) as Values;
  }
  const place = await requireWriteTarget(app, caller, 'things');
  if (operation === 'update') return updateDocument(app, place, id, change);
  if (operation === 'recover') return recoverDocument(app, place, id);
  await (operation === 'trash' ? trashDocument : deleteDocument)(app, place, id);
  return null;
}
