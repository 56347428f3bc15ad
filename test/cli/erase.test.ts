import { join } from 'node:path';
import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { requireCollection } from '../world/collections.js';
import { requireProject } from '../world/projects.js';
import { fileStore } from '../world/stored.js';
import { storedDocuments } from '../helpers/build-project.js';
import { openCliHome, type CliOptions } from '../helpers/run-cli.js';
import { withApp } from '../helpers/with-app.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const bsvc = (argv: string[], options: CliOptions = {}) =>
  home.bsvc(argv, { ...options, env: { BSVC_PROJECT: 'shop', BSVC_BCRYPT_COST: '4', PASSWORD: 'correct horse' } });
const ids: Record<string, string> = {};

async function count(collection: string): Promise<number> {
  const { stdout } = await bsvc(['data', 'query', collection, '--include-deleted', '--count', '--json']);
  return (JSON.parse(stdout) as { count: number }).count;
}

await bsvc(['project', 'create', 'shop']);
for (const name of ['ann', 'bob']) {
  const words = ['user', 'create', '--email', `${name}@example.com`, '--password-env', 'PASSWORD', '--verified'];
  ids[name] = (await bsvc([...words, '--json'])).json<{ user: { _id: string } }>().user._id;
}
await bsvc(['collection', 'add', 'notes', '--field', 'text:String', '--field', 'userId:String', '--rls', 'private']);
await bsvc(['collection', 'add', 'tasks', '--field', 'text:String', '--field', 'assignee:Ref(users)']);
await bsvc(['collection', 'add', 'votes', '--field', 'voter:String']);
const lines = (documents: object[]): string => documents.map((each) => `${JSON.stringify(each)}\n`).join('');
const put = (collection: string, documents: object[]) =>
  bsvc(['data', 'import', collection, '-', '--format', 'ndjson'], { stdin: lines(documents) });
const [ann, bob] = [ids.ann, ids.bob];
await put('notes', [
  ...Array.from({ length: 210 }, (_, n) => ({ text: `a${n}`, userId: ann })),
  { text: 'trashed', userId: ann, isDeleted: true, deletedAt: '2024-01-01T00:00:00Z' },
  { text: 'b', userId: bob },
]);
await put('tasks', [
  { text: 't', assignee: ann },
  { text: 'u', assignee: bob },
]);
await put('votes', [{ voter: ann }, { voter: bob }]);
await withApp({ BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed' }, async (app) => {
  const project = await requireProject(app, 'shop');
  const now = new Date();
  await fileStore(app).insertMany(
    [ann, bob].map((uploadedBy) => ({
      _id: new ObjectId(),
      projectId: project._id,
      path: `${project._id.toHexString()}/${uploadedBy}_a.txt`,
      name: 'a.txt',
      contentType: 'text/plain',
      declaredSize: null,
      size: 1,
      state: 'confirmed' as const,
      place: 'local' as const,
      uploadedBy,
      createdAt: now,
    })),
  );
});

describe('bsvc user delete --erase', () => {
  const words = ['user', 'delete', 'ann@example.com', '--erase', '--also', 'votes.voter', '--json'];
  const removed = [
    { kind: 'files', place: 'files', count: 1 },
    { kind: 'documents', place: 'notes.userId', count: 211 },
    { kind: 'documents', place: 'votes.voter', count: 1 },
  ];
  const mentioned = [{ kind: 'documents', place: 'tasks.assignee', count: 1 }];

  it('reports with --dry-run what there is, and asks before anything goes', async () => {
    expect((await bsvc([...words, '--dry-run'])).json()).toMatchObject({ dryRun: true, removed, mentioned });
    const refused = await bsvc(words);
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('--yes') as string,
    });
    expect(await count('notes')).toBe(212);
    const wrong = await bsvc([...words, '--also', 'votes.nobody', '--dry-run']);
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('votes.nobody') as string });
  });

  it('deletes for good what is theirs, the account too, and leaves what is of others', async () => {
    const outcome = await bsvc([...words, '--yes']);
    expect({ code: outcome.code, stderr: outcome.stderr }).toEqual({ code: 0, stderr: '' });
    expect(outcome.json()).toMatchObject({ user: ids.ann, dryRun: false, removed, mentioned });
    expect(await Promise.all(['notes', 'tasks', 'votes'].map(count))).toEqual([1, 2, 1]);
    const users = (await bsvc(['user', 'list', '--json'])).json<{ email: string }[]>();
    expect(users.map(({ email }) => email)).toEqual(['bob@example.com']);
    const files = (await bsvc(['file', '--json'])).stdout;
    expect([files.includes(ids.ann!), files.includes(ids.bob!)]).toEqual([false, true]);
    expect(await bsvc([...words, '--yes'])).toMatchObject({ code: 1 });
  });
});

describe('bsvc user delete --erase among references that keep what they refer to', () => {
  const erase = ['user', 'delete', 'bob@example.com', '--erase', '--yes', '--json'];
  const put = (collection: string, document: object) =>
    bsvc(['data', 'import', collection, '-', '--format', 'ndjson'], { stdin: JSON.stringify(document) });

  it('deletes nothing while one of others keeps the account, and what is theirs in an order that goes', async () => {
    const owned = (name: string, field: string) =>
      bsvc(['collection', 'add', name, '--field', field, '--field', 'userId:String', '--rls', 'private']);
    await owned('albums', 'title:String');
    await owned('songs', 'album:Ref(albums)!{onDelete:restrict}');
    await bsvc(['collection', 'add', 'seats', '--field', 'guest:Ref(users){onDelete:restrict}']);
    const { bob, ann } = ids;
    const album = new ObjectId().toHexString();
    expect((await put('albums', { _id: album, title: 'a', userId: bob })).code).toBe(0);
    expect((await put('songs', { album, userId: bob })).code).toBe(0);
    await put('seats', { guest: bob });
    const asked = await bsvc(['user', 'delete', 'bob@example.com', '--erase', '--dry-run', '--json']);
    expect(asked.json<{ mentioned: object[] }>().mentioned).toContainEqual({
      ...{ kind: 'documents', place: 'seats.guest', count: 1, onDelete: 'restrict' },
    });
    const refused = await bsvc(erase);
    expect([refused.code === 0, refused.stderr]).toEqual([
      false,
      expect.stringMatching(/1 document refers to the user by seats\.guest.*--also seats\.guest/s),
    ]);
    expect(await Promise.all(['albums', 'songs', 'seats'].map(count))).toEqual([1, 1, 1]);

    // A song of somebody else keeps the album of Bob, until it is gone.
    await put('songs', { album, userId: ann });
    const also = [...erase, '--also', 'seats.guest'];
    expect(await bsvc(also)).toMatchObject({ stderr: expect.stringContaining('refer') as string });
    expect(await Promise.all(['albums', 'songs', 'seats'].map(count))).toEqual([1, 1, 0]);
    await withApp({ BSVC_DATA_DIR: join(home.dir, 'data'), BSVC_DURABILITY: 'relaxed' }, async (app) => {
      const songs = await requireCollection(app, (await requireProject(app, 'shop'))._id, 'songs');
      await storedDocuments(app, songs).deleteMany({});
    });
    expect((await bsvc(also)).json<{ removed: object[] }>().removed).toContainEqual({
      ...{ kind: 'documents', place: 'albums.userId', count: 1 },
    });
    expect(await count('albums')).toBe(0);
  });
});
