import { ObjectId } from 'bson';
import supertest from 'supertest';
import { expect, it } from 'vitest';
import { addCollection, completeRules } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { listenToCommands } from '../helpers/command-log.js';
import { openDataClient, serverOf } from '../helpers/data-client.js';
import { useTestApp } from '../helpers/use.js';

const MINE = 'members[user = user.id].board';
let aheadMs = 0;

const test = await useTestApp({ clock: { now: () => Date.now() + aheadMs } });
const owner = await buildProject(test.app);
const asServer = openDataClient(test, serverOf(owner));
const user = new ObjectId().toHexString();
const authorization = `Bearer ${signAccessToken(test.app, owner.project, user, 3_600_000)}`;
const headers = { 'x-api-key': owner.publishable, authorization };
const texts = (...names: string[]) => names.map((name) => ({ name, type: 'String' as const }));
await addCollection(test.app, owner.project, {
  name: 'members',
  fields: texts('board', 'user'),
  rules: 'server-only',
});
await asServer('post', 'members', { board: 'mine', user });

/** How many commands about documents the database is sent for a request that finds nothing. */
async function workOf(method: 'get' | 'patch' | 'delete', path: string, body?: object): Promise<number> {
  // What a process keeps of sets is as old as it may be, or is not there.
  aheadMs += 2_000;
  await test.app.backgroundTasks.idle();
  const commands = listenToCommands();
  const { status, text } = await supertest(test.server)[method](`/api/${path}`).set(headers).send(body);
  commands.stop();
  expect(status, text).toBe(404);
  const documents = `documents_${owner.project._id.toHexString()}_`;
  return commands.seen.filter(({ name, body: command }) => String(command[name]).startsWith(documents)).length;
}

/** rules.md 13, property 6. On a MongoDB events are relayed meanwhile, which looks at documents too. */
it
  .skipIf(process.env.BSVC_TEST_TRANSPORT !== undefined)
  .each([
    `doc.board in ${MINE}`,
    `doc.board in ${MINE} or doc.o.x in ${MINE}`,
    `doc.id in ${MINE}`,
    'doc.owner = user.id',
  ])('what the rule %s hides is as much work as what is not there', async (rule) => {
  const name = `c${new ObjectId().toHexString()}`;
  const fields = [
    { name: 'board', type: 'String' as const },
    { name: 'owner', type: 'String' as const },
    { name: 'o', type: 'Object' as const, fields: [{ name: 'x', type: 'String' as const }] },
  ];
  const rules = completeRules({ read: rule, update: rule, delete: rule });
  await addCollection(test.app, owner.project, { name, fields, rules });
  const { body } = await asServer('post', name, { board: 'foreign', owner: 'somebody', o: { x: 'too' } });
  const trashed = await asServer('post', name, { board: 'foreign', owner: 'somebody', o: { x: 'too' } });
  const ids = [body, trashed.body].map(({ _id }: { _id: string }) => _id);
  await asServer('delete', `${name}/${ids[1]!}`).expect(200);
  const work = async (active: string, inTrash: string): Promise<number[]> => [
    await workOf('get', `data/${name}/${active}`),
    await workOf('patch', `data/${name}/${active}`, { owner: 'me' }),
    await workOf('patch', `data/${name}/${active}`, { board: 'mine' }),
    await workOf('delete', `data/${name}/${active}`),
    await workOf('delete', `data/${name}/${active}?permanent=true`),
    await workOf('patch', `data/${name}/${inTrash}/recover`),
  ];
  const hidden = await work(ids[0]!, ids[1]!);
  const unknown = await work(new ObjectId().toHexString(), new ObjectId().toHexString());
  expect(unknown).toEqual(hidden);
});
