import { deserialize, type Document } from 'bson';
import type { AccessFilter, AskedSets } from '../access/access-rules.js';
import {
  compileRule,
  filterOf,
  keyOfQuestion,
  NOTHING,
  setFilter,
  type SetQuestion,
} from '../access/rules/compile-rule.js';
import { holdsAny, storedPath, valuesAt } from '../access/rules/bound-values.js';
import type { App } from '../../app.js';
import { loadMatchers } from '../../platform/database/database.js';
import type { ChangeLog } from '../changes/change-log.js';
import { openChangeLog } from '../changes/open-change-log.js';
import { requireCollection } from '../collections/collection-store.js';
import { documentsName, type Collection } from '../collections/collection.js';
import type { Literal, Rule } from '../collections/rules/rule.js';
import { tooManyMemberships } from '../access/rules/access-sets.js';
import { cursorExpired, type FeedPosition, type SetPosition } from './feed-cursor.js';

/** A set of the caller that decides what is shown, and the log of its collection. */
export interface FollowedSet {
  question: SetQuestion;
  collection: Collection;
  log: ChangeLog;
  /** What documents of the collection meet that are memberships of the caller. */
  members: Document;
}

/** The sets that a rule asks about for a caller. */
export interface FollowedSets {
  asked: AskedSets;
  sets: readonly FollowedSet[];
  /** Where the logs were before the sets were read; what is known of them is as of a later moment. */
  at: readonly SetPosition[];
}

/** What a follower is shown at a moment. */
export interface SetView {
  readable: AccessFilter;
  /** What may have been readable since the cursor: who was shown such a document is told that it is gone. */
  earlier: AccessFilter;
  /** Documents that a change of a set takes in, and those that it takes out. */
  enter: Document | null;
  leave: Document | null;
  sets: readonly SetPosition[];
  /** A set is another one than before: that is to be told. */
  isChanged: boolean;
}

/** More changes of memberships than these are not read: the follower starts over. */
const MAX_FOLLOWED = 10_000;
const CHUNK = 500;
const CHUNK_BYTES = 4 * 1024 * 1024;
const MAX_ATTEMPTS = 5;

/** Begins to follow the sets that a rule asks about. */
export async function openSets(app: App, projectId: Collection['projectId'], asked: AskedSets): Promise<FollowedSets> {
  const sets: FollowedSet[] = [];
  for (const question of asked.questions) {
    const collection = await requireCollection(app, projectId, question.set.collection);
    const own = setFilter(question.set, asked.facts.attributes) ?? NOTHING;
    const value = question.value === undefined ? [] : [holdsAny(question.set, [question.value]) ?? NOTHING];
    const members = { $and: [own, ...value], isDeleted: false };
    sets.push({ question, collection, log: openChangeLog(app, collection), members });
  }
  const at: SetPosition[] = [];
  for (const { log } of sets) at.push(log.position?.() ?? (await log.begin()));
  return { asked, sets, at };
}

/** The view where nothing has changed since the cursor and since the sets were read; null where it may have. */
export function findSameView(followed: FollowedSets, readable: AccessFilter, from: FeedPosition): SetView | null {
  const known = from.sets ?? [];
  if (from.until !== undefined || known.length !== followed.sets.length) return null;
  const isSame = followed.sets.every(({ log }, n) =>
    [known[n]!, followed.at[n]!].every((position) => {
      const now = log.position?.();
      return now?.epoch === position.epoch && now.seq === position.seq;
    }),
  );
  const same = { enter: null, leave: null, sets: known, isChanged: false };
  return isSame ? { readable, earlier: readable, ...same } : null;
}

/**
 * What a follower is to be shown at this moment who has everything up to `from` (rules.md 9). 410 CURSOR_EXPIRED where
 * the log of a set does not say what it was.
 */
export async function readSetView(app: App, followed: FollowedSets, from: FeedPosition): Promise<SetView> {
  const known = from.sets ?? [];
  if (known.length !== followed.sets.length) throw cursorExpired();
  const isOpen = from.until !== undefined;
  const changes = await Promise.all(
    followed.sets.map((set, n) => readSince(app, set, known[n]!, known[n]!.told ?? known[n]!.seq)),
  );
  const isChanged = changes.some(({ enter, leave }) => enter.size > 0 || leave.size > 0);
  const isTransition = isOpen || isChanged;
  // While a change is being told, what was shown is anything between the set of before and that of now.
  const sinceBefore = isOpen
    ? await Promise.all(followed.sets.map((set, n) => readSince(app, set, known[n]!, known[n]!.seq)))
    : changes;
  const now = changes.map((change) => change.now);
  const all = changes.map((change, n) => new Set([...change.now, ...change.earlier, ...sinceBefore[n]!.earlier]));
  const readable = compiledWith(followed, now);
  const parts = (values: 'enter' | 'leave', others: readonly ReadonlySet<Literal>[]): Document[] =>
    changes.flatMap((change, n) => {
      if (change[values].size === 0) return [];
      const rule = alternativesWith(followed.asked.rule, followed.sets[n]!);
      const filter = compiledWith(
        followed,
        others.map((other, at) => (at === n ? change[values] : other)),
        rule,
      );
      return [filter ?? {}];
    });
  const entering = parts('enter', now);
  const leaving = readable ? parts('leave', all) : [];
  return {
    readable,
    earlier: isTransition ? compiledWith(followed, all) : readable,
    enter: entering.length > 0 ? { $and: [...(readable ? [readable] : []), { $or: entering }] } : null,
    leave: leaving.length > 0 ? { $and: [{ $or: leaving }, { $nor: [readable] }] } : null,
    sets: changes.map(({ seq }, n) =>
      isTransition ? { epoch: known[n]!.epoch, seq: known[n]!.seq, told: seq } : { epoch: known[n]!.epoch, seq },
    ),
    isChanged,
  };
}

/** Ends the telling of a change where everything is told up to its end. */
export function endTransition(position: FeedPosition): FeedPosition {
  const { sets, until, ...rest } = position;
  if (until === undefined || position.seq < until) return position;
  return { ...rest, sets: (sets ?? []).map(({ epoch, seq, told }) => ({ epoch, seq: told ?? seq })) };
}

function compiledWith(
  { asked, sets }: FollowedSets,
  values: readonly ReadonlySet<Literal>[],
  rule: Rule = asked.rule,
): AccessFilter {
  const answers = new Map(
    sets.map(({ question }, n) => {
      const { value } = question;
      const known = values[n]!;
      return [keyOfQuestion(question), value === undefined ? [...known] : known.has(value)] as const;
    }),
  );
  return filterOf(compileRule(rule, { ...asked.facts, answers }));
}

/** The rule without the alternatives that do not ask about the set. */
function alternativesWith(rule: Rule, { question: { set } }: FollowedSet): Rule {
  const alternatives = rule.alternatives.filter((conditions) =>
    conditions.some((condition) => {
      const value =
        condition.kind === 'document' ? condition.value : condition.kind === 'caller' ? condition.right : null;
      return value?.kind === 'set' && value.set.text === set.text;
    }),
  );
  return { ...rule, alternatives };
}

interface SetChange {
  now: Set<Literal>;
  /** What the set may have held since, without what it holds now by unchanged memberships. */
  earlier: Set<Literal>;
  enter: Set<Literal>;
  leave: Set<Literal>;
  /** The position of the log as of which `now` is. */
  seq: number;
}

/**
 * What a set holds, and what it may have held since a position: values of memberships that nobody touched, and of the
 * earlier states of the others.
 */
async function readSince(app: App, followed: FollowedSet, { epoch }: SetPosition, since: number): Promise<SetChange> {
  const { documents, seq } = await readMembers(app, followed, epoch);
  const path = storedPath(followed.question.set.path).split('.');
  const valuesOf = (members: readonly Document[]): Set<Literal> =>
    new Set(members.flatMap((each) => valuesAt(each, path)));
  const now = valuesOf(documents);
  if (since >= seq) return { now, earlier: new Set(), enter: new Set(), leave: new Set(), seq };
  const { touched, befores } = await readTouched(followed, epoch, since, seq);
  const untouched = valuesOf(documents.filter(({ _id }) => !touched.has(String(_id))));
  const earlier = new Set([...untouched, ...valuesOf(befores)]);
  const enter = new Set([...now].filter((value) => !untouched.has(value)));
  const leave = new Set([...earlier].filter((value) => !now.has(value)));
  return { now, earlier, enter, leave, seq };
}

/** The memberships, and the position of the log as of which they are. */
async function readMembers(
  app: App,
  { question, collection, log, members }: FollowedSet,
  epoch: string,
): Promise<{ documents: Document[]; seq: number }> {
  const most = app.config.ruleSet;
  for (let attempt = 0; ; attempt++) {
    const before = log.position?.();
    if (before?.epoch !== epoch) throw cursorExpired();
    const documents = await app.db
      .collection(documentsName(collection))
      .find(members)
      .project({ [storedPath(question.set.path)]: 1 })
      .limit(most + 1)
      .toArray();
    if (documents.length > most) throw tooManyMemberships(question, most);
    const isSame = log.position?.()?.seq === before.seq;
    // Memberships that are newer than the position are found once more by the next page.
    if (isSame || attempt === MAX_ATTEMPTS) return { documents, seq: before.seq };
  }
}

/** The memberships that changed since, and what those of the caller were before. */
async function readTouched(
  { question, log, members }: FollowedSet,
  epoch: string,
  since: number,
  end: number,
): Promise<{ touched: Set<string>; befores: Document[] }> {
  if (end - since > MAX_FOLLOWED) throw cursorExpired();
  const matcher = (await loadMatchers())(members);
  const { set } = question;
  const named = ['isDeleted', ...[set.userPath, set.path, ...set.conditions.map(({ path }) => path)]].map(
    (path) => storedPath(path).split('.')[0]!,
  );
  const touched = new Set<string>();
  const befores: Document[] = [];
  for (let seq = since; seq < end;) {
    const search = { visible: NOTHING, limit: CHUNK, maxBytes: CHUNK_BYTES };
    const found = await log.watch({ after: { epoch, seq }, ...search });
    if (!found || found.seq === seq) throw cursorExpired();
    for (const { id, earlier } of found.changes) {
      touched.add(id);
      for (const { bytes, isPartial } of earlier ?? []) {
        const document = deserialize(bytes, { validation: { utf8: false } });
        if (isPartial && named.some((name) => !Object.hasOwn(document, name))) throw cursorExpired();
        if (matcher.matches(bytes)) befores.push(document);
      }
    }
    seq = found.seq;
  }
  return { touched, befores };
}
