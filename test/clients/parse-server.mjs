import { createServer } from 'node:http';
import express from 'express';
import { ParseServer } from 'parse-server';
import { refused, same, uri, works } from './steps.mjs';

const app = express();
const http = createServer(app);
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
const serverURL = `http://127.0.0.1:${http.address().port}/parse`;

async function request(method, path, body) {
  const reply = await fetch(`${serverURL}${path}`, {
    method,
    headers: { 'X-Parse-Application-Id': 'app', 'X-Parse-Master-Key': 'master', 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(answer.error ?? JSON.stringify(answer)), { code: answer.code });
  return answer;
}
const where = (filter) => `?where=${encodeURIComponent(JSON.stringify(filter))}`;

await works('start unmodified, with its indexes without regard to case', async () => {
  const server = new ParseServer({
    databaseURI: `${uri}/parse`,
    appId: 'app',
    masterKey: 'master',
    serverURL,
    verbose: false,
    silent: true,
    logsFolder: null,
    allowClientClassCreation: true,
    // Without it the words of a refusal are not shown.
    enableSanitizedErrorResponse: false,
  });
  await server.start();
  app.use('/parse', server.app);
});
let id;
await works('save, find, update, delete', async () => {
  id = (await request('POST', '/classes/Note', { text: 'hello', n: 1, tags: ['a'] })).objectId;
  await request('PUT', `/classes/Note/${id}`, {
    n: { __op: 'Increment', amount: 2 },
    tags: { __op: 'AddUnique', objects: ['a', 'b'] },
  });
  const { results } = await request('GET', `/classes/Note${where({ tags: 'b', n: { $gte: 3 } })}`);
  same(results[0].objectId, id);
});
await works('patterns, sort, count, pointers', async () => {
  await request('POST', '/classes/Reply', { note: { __type: 'Pointer', className: 'Note', objectId: id } });
  same((await request('GET', `/classes/Reply?include=note`)).results[0].note.text, 'hello');
  same((await request('GET', `/classes/Note${where({ text: { $regex: '^hel' } })}&order=-n&count=1`)).count, 1);
});
await works('aggregate', async () => {
  const pipeline = encodeURIComponent(JSON.stringify([{ $group: { _id: '$n', total: { $sum: '$n' } } }]));
  same((await request('GET', `/aggregate/Note?pipeline=${pipeline}`)).results[0].total, 3);
});
await works('sign-up, login, duplicate user in other case', async () => {
  await request('POST', '/users', { username: 'Ann', password: 'secret', email: 'Ann@x.test' });
  same((await request('GET', '/login?username=Ann&password=secret')).username, 'Ann');
  const taken = await request('POST', '/users', { username: 'ANN', password: 'secret' }).catch(({ code }) => code);
  same(taken, 202);
  const other = { username: 'other', password: 'secret', email: 'aNN@x.test' };
  same(await request('POST', '/users', other).catch(({ code }) => code), 203);
});
await works('places by $nearSphere and $within $box, with an index of places', async () => {
  const at = (latitude, longitude) => ({ __type: 'GeoPoint', latitude, longitude });
  await request('POST', '/schemas/Shop', {
    className: 'Shop',
    fields: { n: { type: 'Number' }, at: { type: 'GeoPoint' } },
    indexes: { at_2dsphere: { at: '2dsphere' } },
  });
  for (const n of [3, 1, 2]) await request('POST', '/classes/Shop', { n, at: at(0, n) });
  const near = await request('GET', `/classes/Shop${where({ at: { $nearSphere: at(0, 0), $maxDistance: 0.04 } })}`);
  same(
    near.results.map(({ n }) => n),
    [1, 2],
  );
  const within = { $within: { $box: [at(-1, 1.5), at(1, 4)] } };
  same((await request('GET', `/classes/Shop${where({ at: within })}`)).results.length, 2);
});
// Parse answers an error of its database in words of its own.
await refused('batches in a transaction', /Internal server error/, () =>
  request('POST', '/batch', {
    transaction: true,
    requests: [{ method: 'POST', path: '/parse/classes/Note', body: { n: 9 } }],
  }),
);
process.exit(0);
