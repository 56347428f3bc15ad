import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { operatorCaller } from '../../../src/features/access/operator-access.js';
import type { LogPosition } from '../../../src/features/changes/change-log.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { readFeedQuery } from '../../../src/features/feed/feed-query.js';
import { openFollowing } from '../../../src/features/feed/read-page.js';
import type { Group, Member } from '../../../src/features/feed/streams/group.js';
import { Watcher } from '../../../src/features/feed/streams/watcher.js';
import { loadMatchers, type Matcher } from '../../../src/platform/database/database.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { buildCollection, buildProject, placeDocuments } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();

type Delivery = Parameters<Member['deliver']>[1];

interface Watched {
  collection: Collection;
  start: LogPosition;
  join(seq: number, deliver?: (from: Delivery) => void): Group | null;
  /** All who have joined. */
  leave(): void;
}

/** A followed collection; `matches` is called when the watcher judges whether a group is shown a document. */
async function watch(matches: () => void = () => undefined): Promise<Watched> {
  const { project } = await buildProject(test.app);
  const collection = await buildCollection(test.app, project);
  await setChanges(test.app, project._id, collection.name, { on: true });
  const { signal } = new AbortController();
  const read = readFeedQuery.bind(null, '');
  const following = await openFollowing(test.app, operatorCaller(project), collection.name, read, signal);
  const start = await following.log.begin();
  const open = await loadMatchers();
  const openMatcher = (filter: Parameters<typeof open>[0]): Matcher => {
    const matcher = open(filter);
    return {
      ...matcher,
      matches(bytes) {
        matches();
        return matcher.matches(bytes);
      },
    };
  };
  const room = { take: () => undefined, giveBack: () => undefined };
  const watcher = new Watcher(test.app, following.collection, openMatcher, room, start, () => undefined);
  const joined: [Group, Member][] = [];
  return {
    ...{ collection, start },
    join(seq, deliver = () => undefined) {
      const member: Member = {
        form: { n: 0, hasIds: false },
        deliver: (_, from) => deliver(from),
        leave: () => undefined,
      };
      const group = watcher.join(following, member, { ...start, seq, shown: null, isListing: false });
      if (group) joined.push([group, member]);
      return group;
    },
    leave() {
      for (const [group, member] of joined) watcher.leave(group, member);
    },
  };
}

describe('somebody who joins those who are told together', () => {
  it.each([0, 2])(
    'is told once more what is gone, of which it may have read that it is back (%i ahead)',
    async (ahead) => {
      const { start, join, leave } = await watch();
      const group = join(start.seq)!;
      // Of a log that does not know what was before.
      const gone = () => group.judge({ id: 'a', at: new Date(), document: null, earlier: null, owners: [] });
      expect([gone(), gone()]).toEqual(['gone', null]);
      expect(join(start.seq + ahead)).toBe(group);
      expect([gone(), gone()]).toEqual(['gone', null]);
      leave();
    },
  );

  it('does not join in the middle of a judgement without what is judged', async () => {
    const events = new EventEmitter();
    let joins: (Group | null)[] | null = null;
    const { collection, start, join, leave } = await watch(() => {
      joins ??= [join(start.seq), join(start.seq + 1)];
    });
    const group = join(start.seq, () => events.emit('told'))!;
    const told = once(events, 'told');
    await placeDocuments(test.app, collection, [{ n: 1 }]);
    await told;
    expect(joins).toEqual([null, group]);
    leave();
  });
});
