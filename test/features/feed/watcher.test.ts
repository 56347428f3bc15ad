import { afterAll, beforeAll, expect, it } from 'vitest';
import { operatorCaller } from '../../../src/features/access/operator-caller.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { readFeedQuery } from '../../../src/features/feed/feed-query.js';
import { openFollowing } from '../../../src/features/feed/read-page.js';
import type { Member } from '../../../src/features/feed/streams/group.js';
import { Watcher } from '../../../src/features/feed/streams/watcher.js';
import { loadMatchers } from '../../../src/platform/database/database.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';

let test: TestApp;
beforeAll(async () => (test = await openTestApp()));
afterAll(() => test.close());

const buildMember = (): Member => ({
  form: { n: 0, hasIds: false },
  deliver: () => undefined,
  leave: () => undefined,
});

it('what was told of as gone is told again, when somebody joins who has read further than the watcher', async () => {
  const { project } = await buildProject(test.app);
  const collection = await buildCollection(test.app, project);
  await setChanges(test.app, project._id, collection.name, { on: true });
  const { signal } = new AbortController();
  const read = readFeedQuery.bind(null, '');
  const following = await openFollowing(test.app, operatorCaller(project), collection.name, read, signal);
  const start = await following.log.begin();
  const watcher = new Watcher(test.app, following.collection, await loadMatchers(), start, () => undefined);
  const members: Member[] = [];
  const join = (seq: number) => {
    members.push(buildMember());
    return watcher.join(following, members.at(-1)!, { ...start, seq, shown: null, isListing: false })!;
  };
  const group = join(start.seq);
  // Of a log that does not know what was before.
  const gone = () => group.judge({ id: 'a', at: new Date(), document: null, earlier: null, owners: [] });
  expect([gone(), gone()]).toEqual(['gone', null]);
  join(start.seq);
  expect(gone()).toBeNull();
  // It may have been shown the document meanwhile.
  join(start.seq + 2);
  expect([gone(), gone()]).toEqual(['gone', null]);
  for (const member of members) watcher.leave(group, member);
});
