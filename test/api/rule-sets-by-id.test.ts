import { describe, expect, it } from 'vitest';
import { addCollection } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { openStreamClient, type StreamClient } from '../helpers/event-stream.js';
import { newRecord } from '../helpers/member-world.js';
import { useTestApp } from '../helpers/use.js';
// rules.md 9 and 13: a stream under a rule with a set tells what a list shows, also after the set's documents have
// changed, whether the set holds a field of theirs or their ids, and whether the filter names one value of it or not.
const ann = newRecord({})._id.toHexString();
const bob = newRecord({})._id.toHexString();

const test = await useTestApp();
const owner = await buildProject(test.app);

/** What makes a document of the collection `lists` somebody's, and what its cards name of it. */
const SETS = [
  ['lists[owner = user.id].id', 'id'],
  ['lists[user.id in members].id', 'id'],
  ['lists[owner = user.id].code', 'code'],
  ['lists[user.id in members].code', 'code'],
] as const;
const CASES = SETS.flatMap(([set, named]) => [true, false].map((isPinned) => [set, isPinned, named] as const));

let made = 0;

async function buildWorld(set: string) {
  const names = { lists: `lists${++made}`, cards: `cards${made}` };
  const text = (name: string) => ({ name, type: 'String' as const });
  await addCollection(test.app, owner.project, {
    name: names.lists,
    fields: [text('owner'), text('code'), text('title'), { name: 'members', type: 'Array', items: { type: 'String' } }],
    rules: 'server-only',
    changes: { on: true },
  });
  await addCollection(test.app, owner.project, {
    name: names.cards,
    fields: [text('list'), text('title')],
    rules: { read: `doc.list in ${set.replace('lists', names.lists)}` },
    changes: { on: true },
  });
  return names;
}

async function send(method: string, path: string, body?: object): Promise<{ _id: string }> {
  const reply = await fetch(`${test.url}/api/data/${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-api-key': owner.secret },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answer = (await reply.json()) as { _id: string; data?: { _id: string } };
  expect(reply.ok, JSON.stringify(answer)).toBe(true);
  return answer.data ?? answer;
}

const follow = (cards: string, query: string): Promise<StreamClient> =>
  openStreamClient(test, {
    method: 'GET',
    path: `/api/data/${cards}/changes${query}`,
    headers: {
      'x-api-key': owner.publishable,
      authorization: `Bearer ${signAccessToken(test.app, owner.project, ann, 3_600_000)}`,
    },
  });

const titles = (stream: StreamClient): unknown[] => [...stream.known().values()].map(({ title }) => title).sort();
const shows = (stream: StreamClient, ...wanted: string[]): Promise<unknown> =>
  titles(stream).join() === wanted.join()
    ? Promise.resolve()
    : stream.until(
        (_, { known }) =>
          [...known().values()]
            .map(({ title }) => title)
            .sort()
            .join() === wanted.join(),
      );

describe('a stream under a rule with a set', () => {
  it.each(CASES)('%s, one value named: %s, goes on when its documents change', async (set, isPinned, named) => {
    const { lists, cards } = await buildWorld(set);
    const list = await send('POST', lists, { owner: ann, code: `c${made}`, title: 'a', members: [ann] });
    const foreign = await send('POST', lists, { owner: bob, code: `d${made}`, title: 'b', members: [bob] });
    const value = named === 'id' ? list._id : `c${made}`;
    const other = named === 'id' ? foreign._id : `d${made}`;
    await send('POST', cards, { list: value, title: '1' });
    const stream = await follow(cards, isPinned ? `?list=${value}` : '');
    try {
      await shows(stream, '1');
      // What stays in the set.
      await send('PATCH', `${lists}/${list._id}`, { $addToSet: { members: bob } });
      await send('POST', cards, { list: value, title: '2' });
      await shows(stream, '1', '2');
      await send('PATCH', `${lists}/${list._id}`, { title: 'c' });
      await send('POST', cards, { list: other, title: 'foreign' });
      await send('POST', cards, { list: value, title: '3' });
      await shows(stream, '1', '2', '3');
      // What leaves it and comes back.
      await send('PATCH', `${lists}/${list._id}`, { owner: bob, members: [bob] });
      await shows(stream);
      await send('POST', cards, { list: value, title: '4' });
      await send('PATCH', `${lists}/${list._id}`, { owner: ann, members: [bob, ann] });
      await shows(stream, '1', '2', '3', '4');
      await send('DELETE', `${lists}/${list._id}`);
      await shows(stream);
    } finally {
      stream.close();
    }
  });
});
