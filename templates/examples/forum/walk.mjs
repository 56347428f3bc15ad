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

const [amy, bob, mod] = [await signUp('amy'), await signUp('bob'), await signUp('mod', ['moderator'])];

const topic = (await call(amy, 'POST', 'data/topics', { title: 'Hello' }))._id;
await call(amy, 'POST', 'data/posts', { topic, text: 'Hi' });
const rude = (await call(bob, 'POST', 'data/posts', { topic, text: 'Bah' }))._id;
assert.deepEqual(await list(null, `posts?topic=${topic}`, 'text'), ['Bah', 'Hi']);

// Amy reports it and a moderator hides it: its author still sees it, but not why.
await call(amy, 'POST', 'data/reports', { post: rude, why: 'rude' });
assert.deepEqual(await list(amy, 'reports', 'why'), []);
assert.deepEqual(await list(mod, 'reports', 'why'), ['rude']);
await call(mod, 'PATCH', `data/posts/${rude}`, { hidden: true, reason: 'rude' });
assert.deepEqual(await list(amy, `posts?topic=${topic}`, 'text'), ['Hi']);
assert.deepEqual(await list(bob, `posts?topic=${topic}`, 'text'), ['Bah', 'Hi']);
assert.equal((await call(bob, 'GET', `data/posts/${rude}`)).reason, undefined);
assert.equal(await call(bob, 'PATCH', `data/posts/${rude}`, { hidden: false }), 'RULE_REFUSED');

console.log('walked');
