// Walks through the example as its users would: BSVC_URL, PUBLISHABLE_KEY and SECRET_KEY say where,
// and PAYMENT_SECRET is what the server has been given, too. Needs nothing else.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';

const { BSVC_URL, PUBLISHABLE_KEY, SECRET_KEY, PAYMENT_SECRET } = process.env;

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

const [kim, lee] = [await signUp('kim'), await signUp('lee')];
const [hair, boss] = [await signUp('hair', ['staff']), await signUp('boss', ['manager'])];

const service = (await call(boss, 'POST', 'data/services', { name: 'Haircut', price: 25 }))._id;
const lay = (time, day = '2027-01-04') => call(hair, 'POST', 'data/slots', { day, time });
const ten = (await lay('10:00'))._id;
// Slots do not overlap, and have a day and a time that there is.
assert.equal(await lay('10:00'), 'DUPLICATE_VALUE');
assert.equal(await lay('10:15'), 'VALIDATION_FAILED');
assert.equal(await lay('10:30', 'banana'), 'VALIDATION_FAILED');

const claim = (who) => call(who, 'PATCH', `data/slots/${ten}`, { status: 'asked', customer: who.id, service });
// Of several who claim a slot one gets it, and nobody learns whose it is: to the others it is gone.
const claims = await Promise.all([claim(kim), claim(kim), claim(lee), claim(lee)]);
const [winner, loser] = (await list(kim, 'slots', 'time')).length > 0 ? [kim, lee] : [lee, kim];
assert.ok(claims.some((each) => typeof each !== 'string'));
assert.equal(await claim(loser), 'DOCUMENT_NOT_FOUND');
assert.deepEqual(await list(loser, 'slots', 'time'), []);

// What it costs is what the price list says; a client can neither say it nor that it is paid.
assert.equal((await call(winner, 'GET', `data/slots/${ten}`)).price, 25);
assert.equal(await call(winner, 'PATCH', `data/slots/${ten}`, { price: 1 }), 'FIELD_PROTECTED');
assert.equal(await call(winner, 'PATCH', `data/slots/${ten}`, { paid: true }), 'FIELD_PROTECTED');
async function pay(secret) {
  const body = JSON.stringify({ slot: ten, cents: 2500 });
  const headers = {
    'content-type': 'application/json',
    'x-signature': createHmac('sha256', secret).update(body).digest('hex'),
  };
  return (await fetch(`${BSVC_URL}/api/run/paid?project=booking`, { method: 'POST', headers, body })).status;
}
assert.deepEqual([await pay('guessed'), await pay(PAYMENT_SECRET)], [403, 204]);
assert.equal((await call(winner, 'GET', `data/slots/${ten}`)).paid, true);
const digestFor = async ({ token }) => {
  const headers = { 'x-api-key': PUBLISHABLE_KEY, authorization: `Bearer ${token}` };
  return (await fetch(`${BSVC_URL}/api/run/digest`, { headers })).text();
};
assert.deepEqual([await digestFor(boss), await digestFor(kim)], ['2027-01-04 10:00: 25', 'For managers']);

await call(hair, 'PATCH', `data/slots/${ten}`, { status: 'confirmed', remark: 'late twice' });
const confirmed = await call(winner, 'GET', `data/slots/${ten}`);
assert.deepEqual([confirmed.status, confirmed.remark], ['confirmed', undefined]);
assert.equal(await call(winner, 'PATCH', `data/slots/${ten}`, { wish: 'later' }), 'RULE_REFUSED');

// A cancelled slot is free for the next one.
await call(winner, 'PATCH', `data/slots/${ten}`, { status: 'free', customer: null, wish: null });
assert.equal((await claim(loser)).status, 'asked');
assert.deepEqual(await list(boss, 'slots', 'status'), ['asked']);

console.log('walked');
