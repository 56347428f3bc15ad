import { describe, expect, it } from 'vitest';
import { openRandom, type Random } from '../../helpers/random.js';
import {
  ANYONE,
  buildRuledWorld,
  generateDividingRule,
  generateFields,
  giveRules,
  ruledPart,
  type Person,
  type RuledWorld,
  type Values,
} from '../../helpers/ruled-world.js';
import { useTestApp } from '../../helpers/use.js';

const SEEDS = Array.from({ length: Number(process.env.BSVC_TEST_RUNS ?? 6) }, (_, at) => 3_300 + at);
const UPDATES = 60;
/** Updates that are under way at once. */
const WRITERS = 6;
/** Attempts of one update. */
const ATTEMPTS = 5;

const reached = { updated: 0, refusedBefore: 0, refusedAfter: 0, overtaken: 0 };

const test = await useTestApp();

/** A document as it is after each of its updates: the number of one is its `v`. */
type History = Values[];

interface Update {
  person: Person;
  id: string;
  change: Values;
  /** How many updates had been answered when it was sent. */
  since: number;
  status: number;
  answer: Values;
}

async function race(world: RuledWorld, random: Random): Promise<void> {
  const updates: Update[] = [];
  const answered = new Map<string, number>();
  const ids = [...world.documents.keys()].slice(0, 3);
  const plans = Array.from({ length: UPDATES }, () => {
    const given = generateFields(random, world.userIds);
    const names = Object.keys(given).filter(() => random.chance(0.5));
    const change = Object.fromEntries(names.map((name) => [name, random.chance(0.2) ? null : given[name]]));
    return { person: random.pick(world.people), id: random.pick(ids), change };
  });
  const work = async (): Promise<void> => {
    for (let plan = plans.pop(); plan; plan = plans.pop()) {
      const { person, id, change } = plan;
      const since = answered.get(id) ?? 0;
      const sent = { ...change, $inc: { v: 1 } };
      const { status, body } = await world.send(person, 'patch', `things/${id}`, sent);
      if (status === 200) answered.set(id, (answered.get(id) ?? 0) + 1);
      updates.push({ person, id, change, since, status, answer: (body.data ?? {}) as Values });
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, work));
  for (const id of ids)
    checkHistory(
      world,
      updates.filter((each) => each.id === id),
      world.documents.get(id)!,
    );
}

function checkHistory({ rules }: RuledWorld, updates: readonly Update[], first: Values): void {
  const admits = ({ person }: Update, document: Values): boolean => rules.update.admits(person.user, document);
  const after = ({ change }: Update, before: Values): Values =>
    Object.fromEntries(Object.entries({ ...before, ...change }).filter(([, value]) => value !== null));
  const history: History = [ruledPart(first)];
  const done = updates.filter(({ status }) => status === 200);
  for (const update of done.toSorted((a, b) => Number(a.answer.v) - Number(b.answer.v))) {
    const before = history.at(-1)!;
    const now = ruledPart(after(update, before));
    const what = `${rules.update.text} ${JSON.stringify({ before, change: update.change, user: update.person.user })}`;
    expect([update.answer.v, ruledPart(update.answer)], what).toEqual([history.length, now]);
    expect([admits(update, before), admits(update, now)], what).toEqual([true, true]);
    if (update.since < history.length - 1) reached.overtaken++;
    history.push(now);
  }
  reached.updated += done.length;
  for (const update of updates.filter(({ status }) => status !== 200)) {
    // A writer that others always come before says so after five attempts.
    if (update.status === 409) {
      expect(history.length - 1 - update.since, JSON.stringify(update)).toBeGreaterThanOrEqual(ATTEMPTS);
      continue;
    }
    const isBefore = history.slice(update.since).some((before) => !admits(update, before));
    const isAfter = history.slice(update.since).some((before) => !admits(update, after(update, before)));
    reached[isBefore ? 'refusedBefore' : 'refusedAfter']++;
    expect(isBefore || isAfter, `${rules.update.text}: refused ${JSON.stringify(update)}`).toBe(true);
    expect([401, 403]).toContain(update.status);
  }
}

/** rules.md 13, property 3. */
describe('an update among others of the same document', () => {
  it.each(SEEDS)('holds by the rule before and after, in the order in which they came (seed %i)', async (seed) => {
    const random = openRandom(seed);
    const world = await buildRuledWorld(test, random, 4);
    await giveRules(test, world, { read: ANYONE, update: generateDividingRule(world, random) });
    await race(world, random);
  });

  it('was carried out, refused for what was and for what would be, and overtaken', () => {
    for (const [what, count] of Object.entries(reached)) expect(count, what).toBeGreaterThan(0);
  });
});
