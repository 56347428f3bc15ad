// Walks through the example as its users would: BSVC_URL, PUBLISHABLE_KEY and SECRET_KEY say where. Needs nothing else.
import assert from 'node:assert/strict';

const { BSVC_URL, PUBLISHABLE_KEY, SECRET_KEY } = process.env;

/** Sends a request as somebody; `null` is not signed in, `server` has the secret key. */
async function call(who, method, path, body) {
  const headers = { 'content-type': 'application/json', 'x-api-key': who === 'server' ? SECRET_KEY : PUBLISHABLE_KEY };
  if (who?.token) headers.authorization = `Bearer ${who.token}`;
  const reply = await fetch(`${BSVC_URL}/api/${path}`, { method, headers, body: body && JSON.stringify(body) });
  const answer = await reply.json();
  return reply.ok ? (answer.data ?? answer) : answer.code;
}

async function signUp(name, roles = []) {
  const body = { email: `${name}@example.test`, password: 'correct horse' };
  const answer = await call(null, 'POST', 'userAuth/signup', body);
  assert.ok(answer.user, `${body.email} could not sign up: ${answer}`);
  const { user, accessToken } = answer;
  if (roles.length > 0) await call('server', 'PUT', `userAuth/users/${user._id}/roles`, { roles });
  return { id: user._id, token: accessToken };
}

const list = async (who, path, field) => {
  const found = await call(who, 'GET', `data/${path}`);
  return typeof found === 'string' ? found : found.items.map((item) => item[field]).sort();
};

const [mum, tim, stranger] = [await signUp('mum'), await signUp('tim'), await signUp('stranger')];

const album = (await call(mum, 'POST', 'data/albums', { title: 'Summer', guests: [tim.id] }))._id;
await call(mum, 'POST', 'data/photos', { album, file: 'beach.jpg', place: 'Rimini' });
const boat = (await call(tim, 'POST', 'data/photos', { album, file: 'boat.jpg' }))._id;
assert.equal(await call(stranger, 'POST', 'data/photos', { album, file: 'x.jpg' }), 'RULE_REFUSED');
assert.deepEqual(await list(tim, `photos?album=${album}`, 'file'), ['beach.jpg', 'boat.jpg']);
assert.deepEqual(await list(tim, `photos?album=${album}&sort=file`, 'place'), [undefined, undefined]);
assert.deepEqual(await list(stranger, 'photos', 'file'), []);

// A photo that is open is everybody's; a guest who is no longer one keeps but the own photos.
await call(tim, 'PATCH', `data/photos/${boat}`, { open: true });
assert.deepEqual(await list(null, 'photos', 'file'), ['boat.jpg']);
await call(mum, 'PATCH', `data/albums/${album}`, { guests: [] });
assert.deepEqual(await list(tim, 'photos', 'file'), ['boat.jpg']);

console.log('walked');
