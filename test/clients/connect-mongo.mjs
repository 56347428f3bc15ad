import * as connectMongo from 'connect-mongo';
import { same, uri, works } from './steps.mjs';

const MongoStore = connectMongo.MongoStore ?? connectMongo.default;
const store = MongoStore.create({ mongoUrl: uri, dbName: 'sessions', touchAfter: 0 });
const call = (name, ...args) =>
  new Promise((resolve, reject) => store[name](...args, (error, value) => (error ? reject(error) : resolve(value))));
const session = { cookie: { expires: new Date(Date.now() + 60_000), originalMaxAge: 60_000 }, user: 'ann' };

await works('start, save and read sessions', async () => {
  await call('set', 'one', session);
  same((await call('get', 'one')).user, 'ann');
});
await works('expiry by a TTL index, touch', async () => {
  await call('touch', 'one', session);
  same(await call('get', 'nobody'), null);
});
await works('list, count, remove', async () => {
  await call('set', 'two', session);
  same(await call('length'), 2);
  same((await call('all')).length, 2);
  await call('destroy', 'one');
  await call('clear');
});
await store.close();
