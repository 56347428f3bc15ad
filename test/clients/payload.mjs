import { mongooseAdapter } from '@payloadcms/db-mongodb';
import { buildConfig, getPayload } from 'payload';
import { same, uri, works } from './steps.mjs';

const config = buildConfig({
  secret: 'a secret of this test',
  telemetry: false,
  typescript: { autoGenerate: false },
  db: mongooseAdapter({ url: `${uri}/payload`, transactionOptions: false }),
  collections: [
    { slug: 'users', auth: true, fields: [] },
    {
      slug: 'posts',
      versions: { drafts: true },
      fields: [
        { name: 'title', type: 'text', required: true, index: true },
        { name: 'views', type: 'number' },
        { name: 'at', type: 'point' },
        { name: 'author', type: 'relationship', relationTo: 'users' },
      ],
    },
  ],
});

let payload;
await works('start', async () => {
  payload = await getPayload({ config });
});
await works('users, sign-in', async () => {
  const data = { email: 'ann@example.com', password: 'correct horse' };
  await payload.create({ collection: 'users', data });
  const { token } = await payload.login({ collection: 'users', data });
  same(typeof token, 'string');
});
await works('create, find, update, delete', async () => {
  const { docs: users } = await payload.find({ collection: 'users' });
  for (let n = 0; n < 30; n++) {
    const data = { title: `Post ${n}`, views: n, author: users[0].id, at: [n / 10, 0], _status: 'published' };
    await payload.create({ collection: 'posts', data });
  }
  const where = { and: [{ views: { greater_than: 9 } }, { title: { like: 'Post' } }] };
  const found = await payload.find({ collection: 'posts', where, sort: '-views', limit: 5, depth: 1 });
  same([found.totalDocs, found.docs.length, found.docs[0].author.email], [20, 5, 'ann@example.com']);
  const { id } = found.docs[0];
  same((await payload.update({ collection: 'posts', id, data: { views: 100 } })).views, 100);
  await payload.delete({ collection: 'posts', id });
  same((await payload.count({ collection: 'posts' })).totalDocs, 29);
});
await works('versions and drafts', async () => {
  const { docs } = await payload.find({ collection: 'posts', limit: 1 });
  await payload.update({ collection: 'posts', id: docs[0].id, data: { title: 'A draft' }, draft: true });
  const versions = await payload.findVersions({ collection: 'posts', where: { parent: { equals: docs[0].id } } });
  same(versions.totalDocs, 2);
});
await works('places', async () => {
  const where = { at: { near: [0, 0, 25_000, 0] } };
  same((await payload.find({ collection: 'posts', where, limit: 50 })).docs.length, 3);
});
await works('transactions', async () => {
  const session = await payload.db.connection.startSession();
  await session.withTransaction(() => payload.db.collections.posts.create([{ title: 'x' }], { session }));
});
process.exit(0);
